//! In simulation: the coordinator and each site killed at each of their requests, alone and in pairs; clocks
//! that differ by a minute; a server that is behind; and a vote that comes while another participant registers.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use wok::base::user_cache;
use wok::modules::ModuleSource;
use wok::simulation::exhaustive::exhaust;
use wok::simulation::history::{Change, Outcome, What};
use wok::simulation::subject::Subject;
use wok::simulation::verdict::Verdict;

/// How long the sites have.
const WITHIN_MS: u64 = 15_000;

fn subject() -> Result<Subject> {
    let bytes = ModuleSource::Stock("two-phase-commit".to_owned()).read(None)?;
    Ok(Subject::new("two-phase-commit", &bytes, None, user_cache())?)
}

fn call(operation: &str, arguments: Value) -> Value {
    json!({ "call": { "operation": operation, "arguments": arguments } })
}

fn bound(operation: &str, arguments: Value, name: &str) -> Value {
    json!({ "call": { "operation": operation, "arguments": arguments, "bind": name } })
}

fn rest(ms: u64) -> Value {
    json!({ "rest": { "ms": ms } })
}

fn on(host: usize, notify: &str, steps: &[Value]) -> Value {
    json!({ "host": host, "config": { "notify": notify }, "steps": steps })
}

/// Begins the transaction of `a` and `b`.
fn begin() -> Value {
    let terms = json!({ "sites": ["a", "b"], "payload": "x", "within-ms": WITHIN_MS });
    bound("begin", terms, "tx")
}

/// Begins it, and waits for its outcome.
fn coordinator(notify: &str) -> Value {
    on(0, notify, &[begin(), call("outcome", json!({ "transaction": "$tx" }))])
}

/// Looks after so many milliseconds what the site is asked, and does that.
fn asked(host: usize, notify: &str, site: &str, after_ms: u64, steps: &[Value]) -> Value {
    let look = bound("transactions", json!({ "site": site }), "asked");
    on(host, notify, &[&[rest(after_ms), look], steps].concat())
}

fn register(site: &str) -> Value {
    call("register", json!({ "transaction": "$asked.0.path", "site": site }))
}

fn commit(site: &str) -> Value {
    let vote = json!({ "transaction": "$asked.0.path", "site": site, "choice": "commit" });
    call("vote", vote)
}

fn outcome() -> Value {
    call("outcome", json!({ "transaction": "$asked.0.path" }))
}

fn fault(kind: &str, host: usize, when: Value, ms: u64) -> Value {
    json!({ "fault": kind, "host": host, "when": when, "ms": ms })
}

/// Until long after the sites' time is over.
fn killed(host: usize, nth: usize) -> Value {
    fault("host-kill", host, json!({ "request": { "nth": nth } }), 25_000)
}

/// Runs it; answers what happened once nothing is broken.
fn play(subject: &Subject, seed: u64, applications: &[Value], faults: &[Value]) -> Result<Verdict> {
    let hosts = applications.len();
    let plan = json!({
        "seed": seed, "hosts": hosts, "applications": applications, "faults": faults,
    });
    let told = plan.to_string();
    let verdict = Verdict::of(subject, serde_json::from_value(plan)?)?;
    ensure!(verdict.violations.is_empty(), "{:?}\nof {told}", verdict.violations);
    Ok(verdict)
}

/// What was written of the one transaction of a run, and when, in microseconds.
#[derive(Debug, Default)]
struct Written {
    begun_us: Option<u64>,
    /// The sites that have voted, and when the last one did.
    voted: BTreeSet<String>,
    voted_us: Option<u64>,
    /// When it was decided, and what was written: the word, and the reason in a line of its own.
    decided: Option<(u64, String)>,
}

/// The decision, as it was written down.
#[derive(Debug)]
struct Decision<'a> {
    /// How long after the beginning.
    after_ms: u64,
    word: &'a str,
    reason: &'a str,
}

impl Written {
    fn of(verdict: &Verdict) -> Written {
        let mut written = Written::default();
        for entry in &verdict.history {
            let What::Txn { changes, .. } = &entry.what else { continue };
            for change in changes {
                match change {
                    Change::Created { path, .. } if path.ends_with("/payload") => {
                        written.begun_us = Some(entry.at_us);
                    }
                    Change::DataSet { path, data, .. } if path.ends_with("/decision") => {
                        let text = String::from_utf8_lossy(data.bytes()).into_owned();
                        written.decided = Some((entry.at_us, text));
                    }
                    Change::DataSet { path, .. } => {
                        if let Some((_, site)) = path.split_once("/sites/") {
                            written.voted.insert(site.to_owned());
                            written.voted_us = Some(entry.at_us);
                        }
                    }
                    _ => {}
                }
            }
        }
        written
    }

    fn decision(&self) -> Result<Decision<'_>> {
        let (us, text) = self.decided.as_ref().context("nobody has decided it")?;
        let (word, reason) = text.split_once('\n').context("a decision without a reason")?;
        Ok(Decision { after_ms: self.after_ms(*us)?, word, reason })
    }

    fn after_ms(&self, us: u64) -> Result<u64> {
        let begun_us = self.begun_us.context("nobody has begun it")?;
        Ok((us - begun_us) / 1000)
    }
}

/// A coordinator, two sites, and one who asks for the outcome: each on a host of its own.
fn cast(notify: &str) -> Vec<Value> {
    let site =
        |host, name| asked(host, notify, name, 300, &[register(name), commit(name), outcome()]);
    // The one who asks looks before b has voted.
    let asks = asked(3, "all-sites", "b", 250, &[outcome()]);
    vec![coordinator(notify), site(1, "a"), site(2, "b"), asks]
}

/// How many faults struck the run, and how the transaction ended, if it was begun.
fn run_with_deaths(
    subject: &Subject,
    notify: &str,
    faults: &[Value],
) -> Result<(usize, Option<String>)> {
    let verdict = play(subject, 7, &cast(notify), faults)?;
    let written = Written::of(&verdict);
    if written.begun_us.is_none() {
        return Ok((verdict.came(), None));
    }
    let Decision { after_ms, word, .. } =
        written.decision().with_context(|| format!("{faults:?}"))?;
    // Whoever is left decides when the time is over, and has a death's timeout to notice it.
    ensure!(after_ms <= WITHIN_MS + 1000, "decided after {after_ms} ms: {faults:?}");
    Ok((verdict.came(), Some(word.to_owned())))
}

/// How many requests each of the three makes at most before the transaction is over.
fn requests(subject: &Subject, notify: &str) -> Result<[usize; 3]> {
    let mut most = [0; 3];
    for (host, most) in most.iter_mut().enumerate() {
        while run_with_deaths(subject, notify, &[killed(host, *most + 1)])?.0 > 0 {
            *most += 1;
        }
        ensure!(*most >= 8, "host {host} makes only {most} requests");
    }
    Ok(most)
}

/// Each way to notify is played on a thread of its own: this takes longer than all other tests here.
#[test]
fn whoever_is_killed_at_whichever_request_and_whoever_else_the_others_decide() -> Result<()> {
    let subject = &subject()?;
    std::thread::scope(|scope| {
        let kill = |notify| scope.spawn(move || kill_two(subject, notify));
        let played = ["all-sites", "coordinator"].map(kill);
        played
            .into_iter()
            .try_for_each(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Two of the three that decide are killed at each of their requests.
fn kill_two(subject: &Subject, notify: &str) -> Result<()> {
    let (most, mut ends, mut both) = (requests(subject, notify)?, BTreeSet::new(), 0);
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        for nth in 1..=most[one] {
            for and in 1..=most[other] {
                let faults = [killed(one, nth), killed(other, and)];
                let (came, end) = run_with_deaths(subject, notify, &faults)?;
                both += usize::from(came == 2);
                ends.extend(end);
            }
        }
    }
    let pairs = most[0] * (most[1] + most[2]) + most[1] * most[2];
    ensure!(both > pairs / 2, "both were killed in {both} of {pairs} runs");
    let all = ["abort", "commit"].map(str::to_owned);
    ensure!(ends == BTreeSet::from(all), "{notify}: {ends:?}");
    Ok(())
}

/// Each request and each wait of all four is struck by a lost connection, the session's end, and a call that is
/// withdrawn.
#[test]
fn whichever_request_or_wait_of_a_transaction_is_struck_its_promises_are_kept() -> Result<()> {
    let subject = subject()?;
    for notify in ["all-sites", "coordinator"] {
        let plan = json!({ "seed": 7, "hosts": 4, "applications": cast(notify) });
        let exhausted = exhaust(&subject, serde_json::from_value(plan)?, |_, _| {})?;
        if let Some(failure) = exhausted.failure {
            bail!("{notify}: {:?}\nof {:?}", failure.violations, failure.plan);
        }
        ensure!(exhausted.struck > 100, "only {} faults struck", exhausted.struck);
    }
    Ok(())
}

/// How a host's clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Right,
    Ahead,
    Behind,
}

/// By a minute: a jump is an hour and what is said, forth if that is even and back if it is odd.
fn set(host: usize, set: Set) -> Vec<Value> {
    let jumps: &[u64] = match set {
        Set::Right => &[],
        Set::Ahead => &[60_000, 1],
        Set::Behind => &[0, 60_001],
    };
    let jump =
        |(at, ms): (usize, &u64)| fault("clock-jump", host, json!({ "at": { "ms": at } }), *ms);
    (1..).zip(jumps).map(jump).collect()
}

/// How a coordinator and two sites have their clocks set.
fn settings() -> impl Iterator<Item = [Set; 3]> {
    let all = [Set::Right, Set::Ahead, Set::Behind];
    let two = all.into_iter().flat_map(move |one| all.map(|other| [one, other]));
    two.flat_map(move |[one, two]| all.map(|three| [one, two, three]))
}

/// Site a votes after five seconds, and b never, or soon; where the coordinator is killed, that is when both
/// have looked.
#[track_caller]
fn check_clocks(subject: &Subject, sets: [Set; 3], notify: &str, b: &[Value], dies: bool) {
    let a = asked(1, notify, "a", 500, &[rest(4500), commit("a"), outcome()]);
    let b_votes = !b.is_empty();
    let b = asked(2, notify, "b", 500, &[b, &[outcome()]].concat());
    let mut faults: Vec<Value> = (0..).zip(sets).flat_map(|(host, it)| set(host, it)).collect();
    if dies {
        faults.push(fault("host-kill", 0, json!({ "at": { "ms": 2000 } }), 25_000));
    }
    let verdict = play(subject, 7, &[coordinator(notify), a, b], &faults).unwrap();
    let what = format!("{sets:?}, {notify}, b votes: {b_votes}, the coordinator dies: {dies}");
    let written = Written::of(&verdict);
    let Decision { after_ms, word, .. } = written.decision().expect(&what);
    assert!(after_ms <= WITHIN_MS + 500, "decided after {after_ms} ms: {what}");
    if !sets.contains(&Set::Ahead) {
        // Nobody gives up before the time is over.
        assert_eq!(word, if b_votes { "commit" } else { "abort" }, "{what}");
        assert!(b_votes || after_ms + 1 >= WITHIN_MS, "decided after {after_ms} ms: {what}");
    } else if !b_votes {
        assert_eq!(word, "abort", "{what}");
    }
}

#[test]
fn clocks_that_differ_by_a_minute_only_abort_early_and_keep_nobody_beyond_the_deadline()
-> Result<()> {
    let subject = subject()?;
    for sets in settings() {
        for notify in ["all-sites", "coordinator"] {
            for dies in [false, true] {
                check_clocks(&subject, sets, notify, &[], dies);
                check_clocks(&subject, sets, notify, &[commit("b")], dies);
            }
        }
    }
    Ok(())
}

/// Nobody follows the transaction any more when the time is over, since the coordinator and site a have left:
/// so nobody has decided it when site b comes, two seconds later.
#[track_caller]
fn check_late_vote(subject: &Subject, of_b: Set, notify: &str) {
    let begins = on(0, notify, &[begin(), json!("leave")]);
    let a = asked(1, notify, "a", 500, &[commit("a"), json!("leave")]);
    let b = asked(2, notify, "b", WITHIN_MS + 2000, &[commit("b"), outcome()]);
    let verdict = play(subject, 7, &[begins, a, b], &set(2, of_b)).unwrap();
    let what = format!("b's clock is {of_b:?}, {notify}");
    let written = Written::of(&verdict);
    let Decision { after_ms, word, reason } = written.decision().expect(&what);
    assert!(after_ms > WITHIN_MS, "decided after {after_ms} ms: {what}");
    // A clock that is behind does not keep its host from voting. That it has voted, and too late, is what
    // this is about.
    let is_behind = of_b == Set::Behind;
    assert_eq!(written.voted.contains("b"), is_behind, "{what}");
    if is_behind {
        let voted_ms = written.after_ms(written.voted_us.expect(&what)).expect(&what);
        assert!(voted_ms > WITHIN_MS, "b voted after {voted_ms} ms: {what}");
    }
    let expected = if is_behind { "b voted too late" } else { "b had not voted in time" };
    assert_eq!((word, reason), ("abort", expected), "{what}");
}

#[test]
fn a_vote_from_after_the_deadline_only_aborts_whatever_clock_its_voter_has() -> Result<()> {
    let subject = subject()?;
    for of_b in [Set::Right, Set::Ahead, Set::Behind] {
        for notify in ["all-sites", "coordinator"] {
            check_late_vote(&subject, of_b, notify);
        }
    }
    Ok(())
}

/// What the coordinator was answered by `begin`, and when.
fn begun(verdict: &Verdict) -> Result<(Value, u64)> {
    let answered = verdict.history.iter().find_map(|entry| match &entry.what {
        What::Returned { outcome: Outcome::Ok { value, .. }, .. } => {
            Some((value.clone(), entry.at_us / 1000))
        }
        _ => None,
    });
    answered.context("a transaction")
}

/// Whether somebody had a server catch up: then the mount itself is what a request is about.
fn caught_up(verdict: &Verdict) -> bool {
    let mount = verdict.history.iter().find_map(|entry| match &entry.what {
        What::Joined { mount, .. } => Some(mount),
        _ => None,
    });
    verdict.history.iter().any(|entry| match &entry.what {
        What::HostCall { paths, .. } => paths.len() > 1 && paths.first() == mount,
        _ => false,
    })
}

/// Somebody was told of a transaction by other means, and asks a server that does not have it yet.
#[test]
fn a_server_that_is_behind_denies_no_transaction() -> Result<()> {
    let subject = subject()?;
    for operation in ["outcome", "status", "register", "vote"] {
        let mut met = 0;
        for (seed, server) in (1..=8).flat_map(|seed| [(seed, 0), (seed, 1)]) {
            let asks = |tx: &Value, after_ms: u64| {
                let arguments = match operation {
                    "register" => json!({ "transaction": tx, "site": "b" }),
                    "vote" => json!({ "transaction": tx, "site": "b", "choice": "commit" }),
                    _ => json!({ "transaction": tx }),
                };
                on(1, "all-sites", &[rest(after_ms), call(operation, arguments)])
            };
            // Both have their sessions by then.
            let lags = [fault("lag", server, json!({ "at": { "ms": 500 } }), 4000)];
            let begins = on(0, "all-sites", &[rest(1000), begin()]);
            let alone = [begins.clone(), on(1, "all-sites", &[rest(1)])];
            let (tx, at_ms) = begun(&play(&subject, seed, &alone, &lags)?)?;
            let both = [begins, asks(&tx, at_ms)];
            let verdict = play(&subject, seed, &both, &lags)?;
            ensure!(begun(&verdict)?.0 == tx, "another transaction than without who asks");
            met += usize::from(caught_up(&verdict));
        }
        ensure!(met > 0, "{operation}: no server was behind");
    }
    Ok(())
}

/// Whether a participant voted for b while another one's mark was there.
fn voted_beside_a_mark(verdict: &Verdict) -> bool {
    let mut mark = None;
    for entry in &verdict.history {
        let What::Txn { session, changes, .. } = &entry.what else { continue };
        for change in changes {
            match change {
                Change::Created { path, .. } if path.ends_with("/present/b") => {
                    mark = Some(*session);
                }
                Change::DataSet { path, .. } if path.ends_with("/sites/b") => {
                    return mark.is_some_and(|owner| owner != *session);
                }
                _ => {}
            }
        }
    }
    false
}

/// When the operation was answered.
fn answered_ms(verdict: &Verdict, operation: &str) -> Option<u64> {
    let is_it =
        |what: &What| matches!(what, What::Invoked { operation: it, .. } if it == operation);
    let asked = verdict.history.iter().find(|entry| is_it(&entry.what))?;
    let What::Invoked { call: asked, .. } = &asked.what else { return None };
    let answers = |what: &What| matches!(what, What::Returned { call, .. } if call == asked);
    let answered = verdict.history.iter().find(|entry| answers(&entry.what))?;
    Some(answered.at_us / 1000)
}

/// The vote of the one who voted first did not see the other one register, and has left its mark there; whoever
/// forgets the transaction would wait for the mark, were it taken for one that the vote has deleted.
#[test]
fn who_finds_its_sites_vote_cast_by_another_gives_its_own_mark_back() -> Result<()> {
    let (subject, mut met) = (subject()?, 0);
    for seed in 1..=5 {
        for late_ms in 0..20 {
            let registers = [register("b"), rest(500), commit("b"), rest(15_000)];
            let registers = asked(1, "all-sites", "b", 1000, &registers);
            let votes = asked(2, "all-sites", "b", 1000 + late_ms, &[commit("b"), outcome()]);
            let forget = call("forget", json!({ "transaction": "$asked.0.path" }));
            let last = [rest(4000), commit("a"), outcome(), forget];
            let last = asked(3, "all-sites", "a", 1000, &last);
            let cast = [coordinator("all-sites"), registers, votes, last];
            let verdict = play(&subject, seed, &cast, &[])?;
            let forgotten_ms = answered_ms(&verdict, "forget").context("an answer")?;
            ensure!(forgotten_ms < 10_000, "seed {seed}, {late_ms} ms: only at {forgotten_ms} ms");
            met += usize::from(voted_beside_a_mark(&verdict));
        }
    }
    assert!(met > 0, "none of the votes came while the other one registered");
    Ok(())
}
