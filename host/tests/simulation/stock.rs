//! Every stock recipe keeps its promises, whatever is done to it.

use wok::base::user_cache;
use wok::modules::{ModuleSource, stock_names};
use wok::simulation::history::{FaultKind, Outcome, What};
use wok::simulation::search::{Findings, Search};
use wok::simulation::subject::{Given, Subject};
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::{number, stock};

#[test]
fn stock_recipes_keep_their_promises_in_a_thousand_seeds_that_count() {
    let counting = number("WOK_SEEDS", 1_000);
    let first = number("WOK_FIRST_SEED", 1);
    for name in stock_names() {
        let subject = stock(name);
        let mut findings = search(&subject, name, first, counting);
        // What comes rarely in the middle of a rare call may take more seeds, but not twice as many.
        while never_struck(&findings).is_some() && findings.counted < counting * 2 {
            let more = search(&subject, name, first + findings.runs, counting.div_ceil(10));
            findings.runs += more.runs;
            findings.counted += more.counted;
            findings.grants += more.grants;
            findings.coverage.add(more.coverage);
        }
        let (fault, call, hits) = findings.coverage.least().unwrap();
        println!("{}", findings.coverage.table());
        println!(
            "figure: {name}: {} runs, {} counted, {} grants, least hit: {} in the middle of \
             {call}, {hits} times",
            findings.runs,
            findings.counted,
            findings.grants,
            fault.name()
        );
        assert_eq!(never_struck(&findings), None, "{name}");
        let is_held = !subject.claims() || findings.grants > counting;
        assert!(is_held, "{name}: only {} grants", findings.grants);
    }
}

/// Seeds from `first` on, none of which breaks an invariant.
fn search(subject: &Subject, name: &str, first: u64, counting: u64) -> Findings {
    let threads = std::thread::available_parallelism().unwrap().get();
    let mut told = 0;
    let findings = Search { first, counting, threads }.run(subject, |findings| {
        let tenths = findings.counted * 10 / counting;
        if tenths > told {
            told = tenths;
            println!("{name}: {} of {counting} counted", findings.counted);
        }
    });
    let findings = findings.unwrap();
    if let Some(failure) = findings.failure {
        let violation = &failure.violations[0];
        panic!(
            "{}: {}\nwok test {name} --seed {}",
            violation.invariant, violation.sentence, failure.plan.seed
        );
    }
    findings
}

/// A fault, and a call that it has never struck.
fn never_struck(findings: &Findings) -> Option<(FaultKind, &str)> {
    let (fault, call, hits) = findings.coverage.least()?;
    (hits == 0).then_some((fault, call))
}

/// Each was told to be broken once, for what the simulator, a judge or the host had wrong.
#[test]
fn seeds_that_were_wronged_hold() {
    let seeds = [
        ("lock", &[1_655, 1_997, 7_791, 8_323, 13_011, 32_132, 1_007_764][..]),
        ("leader-election", &[822, 936, 548_205]),
        ("group-membership", &[502_015]),
        ("configuration", &[91]),
        ("read-write-lock", &[15, 621, 1_538, 9_970, 49_528]),
        ("name-service", &[964]),
        ("priority-queue", &[945]),
        ("queue", &[495]),
    ];
    for (name, seeds) in seeds {
        let subject = stock(name);
        for seed in seeds {
            let verdict = Verdict::of(&subject, workload::plan(&subject, *seed)).unwrap();
            assert_eq!(verdict.violations, [], "{name}, seed {seed}");
        }
    }
}

/// Who asks for what a recipe says it refuses is refused, and no promise is broken by that, whatever
/// faults come.
#[test]
fn a_recipe_that_refuses_what_is_wrong_keeps_its_promises() {
    for (name, text) in [
        ("configuration", include_str!("wrong_arguments/configuration.toml")),
        ("group-membership", include_str!("wrong_arguments/group-membership.toml")),
        ("name-service", include_str!("wrong_arguments/name-service.toml")),
        ("two-phase-commit", include_str!("wrong_arguments/two-phase-commit.toml")),
    ] {
        let bytes = ModuleSource::Stock(name.to_owned()).read(None).unwrap();
        let file = format!("wrong_arguments/{name}.toml");
        let given = Given::File { name: file, text: text.to_owned() };
        let subject = Subject::with(name, &bytes, None, user_cache(), given).unwrap();
        let mut refused = 0;
        for seed in 1..=30 {
            let verdict = Verdict::of(&subject, workload::plan(&subject, seed)).unwrap();
            assert_eq!(verdict.violations, [], "{name}, seed {seed}");
            let is_refused = |what: &What| {
                matches!(
                    what,
                    What::Returned { outcome: Outcome::Err { value, .. }, .. }
                        if value.get("invalid").is_some()
                )
            };
            refused += verdict.history.iter().filter(|entry| is_refused(&entry.what)).count();
        }
        assert!(refused > 30, "{name}: only {refused} were refused");
    }
}

/// The verdict on a run that a scenario says all of.
pub(crate) fn played(name: &str, scenario: &str) -> Verdict {
    Verdict::of(&stock(name), toml::from_str(scenario).unwrap()).unwrap()
}

/// Somebody writes to the znode of a claim and deletes it later, while its holder calls faster than a look
/// at the znode is answered.
#[test]
fn a_look_at_a_claim_outlasts_the_calls_that_come_meanwhile() {
    let acquire = "{ call = { operation = \"acquire\" } }";
    let again = format!("{acquire}, {{ rest = {{ ms = 1 }} }},").repeat(3_000);
    let scenario = format!(
        r#"
        seed = 7
        hosts = 2
        session-timeout-ms = 1000

        [[applications]]
        host = 0
        steps = [{acquire}, {{ rest = {{ ms = 300 }} }}, {again}]

        [[applications]]
        host = 1
        config = {{ revocable = true, force-after-ms = 600 }}
        steps = [
            {{ rest = {{ ms = 200 }} }},
            {{ call = {{ operation = "contenders", bind = "line" }} }},
            {{ rest = {{ ms = 300 }} }},
            {{ call = {{ operation = "revoke", arguments = {{ path = "$line.0.path" }} }} }},
            {{ rest = {{ ms = 700 }} }},
            {acquire},
            {{ work = {{ ms = 3000 }} }},
            "leave",
        ]
        "#
    );
    let verdict = played("lock", &scenario);
    assert_eq!(verdict.violations, []);
    assert!(verdict.tally.grants >= 2, "{:?}", verdict.tally);
}

/// A create loses its connection as often as it may be sent again, and the last time it is made.
#[test]
fn a_write_is_looked_for_after_the_last_time_that_it_was_sent() {
    let lost = |fault: &str, nth: u32| {
        format!(
            "[[faults]]\nfault = \"{fault}\"\nhost = 0\nwhen = {{ request = {{ nth = {nth} }} }}\n"
        )
    };
    let before: String = (5..25).step_by(2).map(|nth| lost("lost-before", nth)).collect();
    let scenario = format!(
        r#"
        seed = 7
        hosts = 1
        servers = 1
        session-timeout-ms = 20000

        [[applications]]
        host = 0
        steps = [
            {{ call = {{ operation = "join", arguments = {{ name = "a", data = "x" }} }} }},
            {{ rest = {{ ms = 9000 }} }},
            "leave",
        ]

        [[applications]]
        host = 0
        steps = [{{ rest = {{ ms = 30000 }} }}, {{ call = {{ operation = "members" }} }}]

        {before}
        {}
        "#,
        lost("lost-after", 25)
    );
    let verdict = played("group-membership", &scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.tally.struck, 11, "{:?}", verdict.tally);
}

/// Somebody creates a znode by way of the new leader, the reply is lost, the caller withdraws, and the
/// session moves to the old leader, which does not know yet that it is cut off: it answers a `sync` at once,
/// and shows a tree without the znode.
#[test]
fn a_leader_that_is_cut_off_is_not_asked_what_became_of_a_create() {
    for (recipe, scenario) in [
        ("lock", include_str!("cut_off_leader/lock.toml")),
        ("group-membership", include_str!("cut_off_leader/group-membership.toml")),
        ("queue", include_str!("cut_off_leader/queue.toml")),
    ] {
        assert_eq!(played(recipe, scenario).violations, [], "{recipe}");
    }
}

/// The second in line is forced out of it while it waits. The third looks again and waits for the holder, and
/// both are told when the holder has gone: the second has a list that showed it, from before it was forced.
#[test]
fn who_was_forced_out_while_it_waited_is_not_told_that_it_holds() {
    for (recipe, first, second) in
        [("lock", "acquire", "acquire"), ("read-write-lock", "acquire-write", "acquire-read")]
    {
        let scenario = format!(
            r#"
            seed = 5
            hosts = 3
            session-timeout-ms = 40000

            [[applications]]
            host = 0
            steps = [
                {{ call = {{ operation = "{first}" }} }},
                {{ rest = {{ ms = 1300 }} }},
                {{ call = {{ operation = "release" }} }},
                "leave",
            ]

            [[applications]]
            host = 1
            steps = [
                {{ rest = {{ ms = 1000 }} }},
                {{ call = {{ operation = "{second}", deadline-ms = 20000 }} }},
                {{ work = {{ ms = 500 }} }},
                "leave",
            ]

            [[applications]]
            host = 2
            steps = [
                {{ rest = {{ ms = 1030 }} }},
                {{ call = {{ operation = "{first}", deadline-ms = 20000 }} }},
                {{ work = {{ ms = 500 }} }},
                "leave",
            ]

            [[applications]]
            host = 0
            config = {{ force-after-ms = 1 }}
            steps = [
                {{ rest = {{ ms = 1080 }} }},
                {{ call = {{ operation = "contenders", bind = "line" }} }},
                {{ call = {{ operation = "revoke", arguments = {{ path = "$line.1.path" }} }} }},
                "leave",
            ]
            "#
        );
        let verdict = played(recipe, &scenario);
        assert_eq!(verdict.violations, [], "{recipe}");
        assert_eq!(verdict.tally.grants, 2, "{recipe}: {:?}", verdict.tally);
    }
}

/// A member of another size finds nobody in a generation and makes the next one, while a member of the first
/// size is about to wait in the generation that nobody will look at again.
#[test]
fn a_member_does_not_wait_in_a_generation_that_is_given_up() {
    let scenario = include_str!("given_up_generation.toml");
    let verdict = played("double-barrier", scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.tally.grants, 3, "{:?}", verdict.tally);
}

/// Found by seed 609,712: a session moves as its turn comes, to a server that does not know yet of the leases
/// that the one ahead in the queue has taken.
#[test]
fn who_moves_as_its_turn_comes_takes_no_permit_too_many() {
    let verdict = played("semaphore", include_str!("moves_as_its_turn_comes.toml"));
    assert_eq!(verdict.violations, []);
}

/// Found by seed 60,003,229 of `two-phase-commit`: an application that follows one transaction after another
/// still follows one when the run is over. Its caller would have given up later, so nobody waits for ever;
/// a caller that never gives up would.
#[test]
fn a_call_is_no_broken_promise_while_its_caller_has_not_given_up() {
    for (deadline, broken) in [("deadline-ms = 250000", None), ("", Some("W1"))] {
        let scenario = format!(
            r#"
            seed = 1
            hosts = 1
            session-timeout-ms = 3000

            [[applications]]
            host = 0

            [[applications.steps]]
            call = {{ operation = "begin", bind = "tx", arguments = {{ payload = "", sites = ["a"], within-ms = 300000 }} }}

            [[applications.steps]]
            [applications.steps.call]
            operation = "outcome"
            arguments = {{ transaction = "$tx" }}
            {deadline}
            "#
        );
        let verdict = played("two-phase-commit", &scenario);
        let found: Vec<_> = verdict.violations.iter().map(|found| &*found.invariant).collect();
        assert_eq!(found, Vec::from_iter(broken), "{deadline}");
    }
}

/// Found by seed 60,082,963 of `multi-lock`: when the run is over, several stand in line, each for longer than a
/// run waits for a call that nobody answers.
#[test]
fn who_stands_in_line_while_those_ahead_are_answered_is_not_blocked() {
    let in_line = r#"
        [[applications]]
        host = 0
        steps = [
            { rest = { ms = 99900 } },
            { call = { operation = "acquire" } },
            { work = { ms = 6000 } },
            { call = { operation = "release" } },
        ]
    "#;
    let scenario = format!("seed = 1\nhosts = 1\nsession-timeout-ms = 2000\n{}", in_line.repeat(4));
    let verdict = played("lock", &scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.tally.grants, 4, "{:?}", verdict.tally);
}

/// Found by seed 30,042,516: a reply, and no new connection, tells a host that its session has expired. The
/// session is over with that reply, and a host call that waits for contact has an end.
#[test]
fn who_is_told_by_a_reply_that_the_session_expired_waits_for_contact_no_longer() {
    let verdict = played("queue", include_str!("expired_by_a_reply.toml"));
    assert_eq!(verdict.violations, []);
}

/// Found by seed 60,054,743: two consumers of one session claim an item one after the other, the request of
/// the second one is lost, and the claim of the first goes while the host looks what became of that
/// request. The look was sent before it went.
#[test]
fn a_claim_that_goes_while_the_next_one_is_looked_for_is_not_the_next_one() {
    let verdict = played("queue", include_str!("gone_while_looked_for.toml"));
    assert_eq!(verdict.violations, []);
}

/// Found by seed 607,893: a host comes back after a pause of almost its session timeout and asks for
/// contact, and what the leader sends does not come to the host's server any more, its pings among it. What
/// the host asks for next comes to the leader nevertheless, and is answered when the leader has ended the
/// session.
#[test]
fn what_a_leader_answers_to_a_server_that_its_pings_do_not_reach_is_no_contact() {
    let scenario = r#"
        seed = 607893
        servers = 3
        hosts = 3
        session-timeout-ms = 5000

        [[applications]]
        host = 2
        steps = [
            { rest = { ms = 200 } },
            { call = { operation = "join", arguments = { data = "here", name = "d" } } },
        ]

        [[faults]]
        fault = "pause"
        host = 2
        ms = 4663
        when = { host-call = { name = "ensure", nth = 1 } }

        [[faults]]
        fault = "link-cut"
        host = 0
        ms = 550
        way = "out"
        when = { at = { ms = 4968 } }
    "#;
    let verdict = played("group-membership", scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.tally.operations, verdict.tally.grants), (1, 0), "{:?}", verdict.tally);
}

/// Where an item's name has no UUID, it comes back once all items have gone and their directory with them:
/// who keeps the claim of an item that was acknowledged long ago has nothing to do with the new one.
#[test]
fn an_item_that_has_the_name_of_one_acknowledged_before_is_left_alone() {
    let ack = r#"{ call = { operation = "ack-item", arguments = { item = "$item.path", fence = "$item.fence" } } }"#;
    let takes_again = r#"{ call = { operation = "take" } }"#;
    for (layout, again) in
        [("curator-simple", ack), ("kazoo", ack), ("curator-simple", takes_again)]
    {
        let scenario = format!(
            r#"
            seed = 1
            hosts = 2

            [[applications]]
            host = 0
            config = {{ layout = "{layout}" }}
            steps = [
                {{ call = {{ operation = "put", arguments = {{ data = "old" }} }} }},
                {{ call = {{ operation = "take", bind = "item" }} }},
                {ack},
                {{ rest = {{ ms = 12000 }} }},
                {again},
                {{ rest = {{ ms = 6000 }} }},
            ]

            [[applications]]
            host = 1
            config = {{ layout = "{layout}" }}
            steps = [
                {{ rest = {{ ms = 10000 }} }},
                {{ call = {{ operation = "put", arguments = {{ data = "new" }} }} }},
                {{ rest = {{ ms = 5000 }} }},
                {{ call = {{ operation = "take", deadline-ms = 30000 }} }},
            ]
            "#
        );
        let verdict = played("queue", &scenario);
        assert_eq!(verdict.violations, [], "{layout}, {again}");
        // The new item was taken by the other one, unless it was taken in between, and given back.
        let grants = if again == ack { 2 } else { 3 };
        assert_eq!(verdict.tally.grants, grants, "{layout}, {again}: {:?}", verdict.tally);
    }
}

/// Somebody who has acknowledged an item by its name acknowledges all that it has taken: what is done is done.
#[test]
fn what_was_acknowledged_by_its_name_is_acknowledged_once_more() {
    for recipe in ["queue", "priority-queue"] {
        let priority = if recipe == "queue" { "" } else { ", priority = 3" };
        let scenario = format!(
            r#"
            seed = 1
            hosts = 1

            [[applications]]
            host = 0
            steps = [
                {{ call = {{ operation = "put-all", arguments = {{ items = ["a", "b", "c"]{priority} }} }} }},
                {{ call = {{ operation = "take-many", arguments = {{ max = 2 }}, bind = "items" }} }},
                {{ call = {{ operation = "ack-item", arguments = {{ item = "$items.0.path", fence = "$items.0.fence" }} }} }},
                {{ call = {{ operation = "ack" }} }},
                {{ call = {{ operation = "take", bind = "item" }} }},
                {{ call = {{ operation = "ack-item", arguments = {{ item = "$item.path", fence = "$item.fence" }} }} }},
                {{ call = {{ operation = "ack" }} }},
                {{ call = {{ operation = "length" }} }},
                "leave",
            ]
            "#
        );
        let verdict = played(recipe, &scenario);
        assert_eq!(verdict.violations, [], "{recipe}");
        let answers = verdict.history.iter().filter_map(|entry| match &entry.what {
            What::Returned { outcome: Outcome::Ok { value, .. }, .. } => Some(value),
            What::Returned { outcome, .. } => panic!("{recipe}: {outcome:?}"),
            _ => None,
        });
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers.len(), 8, "{recipe}: {answers:?}");
        assert_eq!(answers[7]["items"], 0, "{recipe}");
        assert_eq!(answers[7]["taken"], 0, "{recipe}");
    }
}

/// A call that waits until the component has been woken does not wait longer than its caller.
#[test]
fn a_call_that_waits_for_a_wake_is_over_at_its_deadline() {
    let scenario = r#"
        seed = 7
        hosts = 2
        session-timeout-ms = 40000

        [[applications]]
        host = 0
        steps = [
            { call = { operation = "volunteer" } },
            { rest = { ms = 1000 } },
            "leave",
        ]

        [[applications]]
        host = 1
        steps = [
            { rest = { ms = 100 } },
            { call = { operation = "observe" } },
            { rest = { ms = 1500 } },
            { call = { operation = "leader", deadline-ms = 500 } },
            { rest = { ms = 500 } },
            "leave",
        ]

        [[faults]]
        fault = "half-open"
        when = { host-call = { name = "get-children", nth = 2 } }
        host = 1
    "#;
    let verdict = played("leader-election", scenario);
    assert_eq!(verdict.violations, []);
    let mut entries = verdict.history.iter();
    let withdrawn = entries.find(|entry| matches!(entry.what, What::Withdrawn { .. })).unwrap();
    let returned = entries.find(|entry| matches!(entry.what, What::Returned { .. })).unwrap();
    assert_eq!(returned.at_us, withdrawn.at_us);
}
