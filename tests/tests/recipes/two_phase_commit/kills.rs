//! Ten processes, each killed in the middle of its part, on three servers: the others decide all the same, and
//! all are told the same.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Program};
use wok_tests::proxy::{Action, Match, Proxy};
use wok_tests::zookeeper::{self, Ensemble, Options};

use super::{LONG_MS, answer};

/// Of those who are killed: their sessions end soon.
const SHORT: &str = "3s";

/// Three servers, and a path.
struct Ground {
    ensemble: Ensemble,
}

impl Ground {
    async fn start() -> Result<Ground> {
        let options = Options::default()
            .tick(Duration::from_millis(500))
            .setting("minSessionTimeout", "1000")
            .setting("maxSessionTimeout", "40000")
            .setting("syncLimit", "240")
            .setting("initLimit", "20");
        Ok(Ground { ensemble: Ensemble::start_with(3, options).await? })
    }

    fn address(&self, server: usize) -> &str {
        self.ensemble.servers()[server % 3].address()
    }

    fn program(&self, address: &str, path: &str, words: &[&str]) -> Result<Program> {
        let about = ["call", "two-phase-commit", "--mount", path, "--connect", address];
        let how = ["--output", "json", "--session-timeout", SHORT];
        Ok(Program::wok()?.args(about).args(how).args(words))
    }

    /// Calls by way of that server.
    async fn call(&self, server: usize, path: &str, words: &[&str]) -> Result<Ended> {
        self.program(self.address(server), path, words)?.run().await
    }
}

/// When it is killed: at its n-th transaction of ZooKeeper, which the servers have not got, or have carried out.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Before(usize),
    Behind(usize),
}

/// Who is killed in which moment, and what is decided then. The words stand for what it calls.
struct Kill {
    words: &'static [&'static str],
    moment: Moment,
    /// How many milliseconds the sites have.
    within_ms: u64,
    /// Who votes to commit before, and who after it.
    before: &'static [&'static str],
    after: &'static [&'static str],
    decision: &'static str,
    reason: &'static str,
}

/// Of a transaction that its coordinator begins and leaves, and that is not decided before it is asked for, also
/// on a machine that is busy.
const ENOUGH_MS: u64 = 6000;

const ALL: &str = "all sites voted to commit";
const VOTE: &[&str] = &["vote", "TX", "site=b", "choice=commit"];
const REGISTER: &[&str] = &["register", "TX", "site=b"];
const OUTCOME: &[&str] = &["outcome", "TX"];

impl Kill {
    const fn of(words: &'static [&'static str], moment: Moment) -> Kill {
        let (before, after): (&[&str], &[&str]) = (&["a"], &["b"]);
        let (decision, reason, within_ms) = ("commit", ALL, LONG_MS);
        Kill { words, moment, within_ms, before, after, decision, reason }
    }

    const fn votes(self, before: &'static [&'static str], after: &'static [&'static str]) -> Kill {
        Kill { before, after, ..self }
    }

    const fn aborts(self, reason: &'static str, within_ms: u64) -> Kill {
        Kill { decision: "abort", reason, within_ms, ..self }
    }
}

/// Those of sites, and of one who asks; the coordinator's are below.
const KILLS: [Kill; 8] = [
    // A vote that was not cast can be cast, and one that was stands.
    Kill::of(VOTE, Moment::Before(1)).votes(&[], &["b", "a"]),
    Kill::of(VOTE, Moment::Behind(1)).votes(&[], &["a"]),
    // The last one to vote decides; where it cannot, whoever asks does.
    Kill::of(VOTE, Moment::Before(2)).votes(&["a"], &[]),
    Kill::of(VOTE, Moment::Behind(2)).votes(&["a"], &[]),
    // Who had not registered may come again, and who had has died.
    Kill::of(REGISTER, Moment::Before(1)).votes(&["a"], &["b"]),
    Kill::of(REGISTER, Moment::Behind(1))
        .votes(&["a"], &[])
        .aborts("b died before it voted", LONG_MS),
    // Who asks when the time is over decides; where it cannot, the next one that asks does.
    Kill::of(OUTCOME, Moment::Before(1))
        .votes(&[], &[])
        .aborts("a had not voted in time", ENOUGH_MS),
    Kill::of(OUTCOME, Moment::Behind(1))
        .votes(&[], &[])
        .aborts("a had not voted in time", ENOUGH_MS),
];

/// Has it call by a proxy before that server, and kills it in that moment.
async fn kill(
    ground: &Ground,
    server: usize,
    path: &str,
    words: &[&str],
    at: Moment,
) -> Result<()> {
    let proxy = Proxy::start(ground.address(server))?;
    let (nth, action) = match at {
        Moment::Before(nth) => (nth, Action::StallRequests),
        Moment::Behind(nth) => (nth, Action::StallReplies),
    };
    let writes = Match::opcode(Opcode::Multi).under(path);
    let fault = proxy.inject(writes.clone().nth(nth), action);
    let running = ground.program(proxy.address(), path, words)?.start()?;
    fault.struck().await?;
    if let Moment::Behind(_) = at {
        eventually("the transaction to be carried out", async || {
            let seen = proxy.requests(&writes);
            Ok(seen.last().and_then(|last| last.answer).map(drop))
        })
        .await?;
    }
    running.signal(Signal::KILL)?;
    running.tree_gone().await?;
    Ok(())
}

async fn begin(ground: &Ground, server: usize, path: &str, within_ms: u64) -> Result<String> {
    let within = format!("within-ms={within_ms}");
    let words = ["begin", "sites=[\"a\",\"b\"]", "payload=x", &within];
    let begun = answer(&ground.call(server, path, &words).await?);
    Ok(format!("transaction={}", begun.as_str().context("a path")?))
}

async fn vote(ground: &Ground, server: usize, path: &str, tx: &str, site: &str) -> Result<()> {
    let site = format!("site={site}");
    let voted = ground.call(server, path, &["vote", tx, &site, "choice=commit"]).await?;
    assert_eq!(answer(&voted), Value::Null);
    Ok(())
}

/// Whoever asks any of the servers is told that.
async fn check_outcome(ground: &Ground, path: &str, tx: &str, told: &Value) -> Result<()> {
    for server in 0..3 {
        assert_eq!(answer(&ground.call(server, path, &["outcome", tx]).await?), *told, "{tx}");
    }
    answer(&ground.call(0, path, &["forget", tx]).await?);
    let admin = Admin::connect(ground.address(1)).await?;
    eventually("nothing to be left", async || {
        let tree = admin.tree(path).await.unwrap_or_default();
        Ok((tree.len() <= 1).then_some(()))
    })
    .await
}

async fn play(ground: &Ground, server: usize, it: &Kill) -> Result<()> {
    let path = zookeeper::unique_path();
    let tx = begin(ground, server, &path, it.within_ms).await?;
    for site in it.before {
        vote(ground, server + 1, &path, &tx, site).await?;
    }
    let words: Vec<&str> =
        it.words.iter().map(|word| if *word == "TX" { tx.as_str() } else { word }).collect();
    kill(ground, server + 2, &path, &words, it.moment).await?;
    for site in it.after {
        vote(ground, server + 1, &path, &tx, site).await?;
    }
    let told = json!({ "decision": it.decision, "reason": it.reason });
    check_outcome(ground, &path, &tx, &told).await
}

/// A coordinator that is killed before anybody has its transaction has begun none; one that is killed then has
/// left it to the sites, which find it and decide.
async fn play_coordinator(ground: &Ground, server: usize, at: Moment) -> Result<()> {
    let path = zookeeper::unique_path();
    // The mount is there.
    let first = begin(ground, server, &path, LONG_MS).await?;
    let within = format!("within-ms={LONG_MS}");
    let words = ["begin", "sites=[\"b\",\"c\"]", "payload=y", &within];
    kill(ground, server + 1, &path, &words, at).await?;
    let asked = answer(&ground.call(server + 2, &path, &["transactions", "site=c"]).await?);
    match at {
        Moment::Before(_) => assert_eq!(asked, json!([]), "nobody has begun it"),
        Moment::Behind(_) => {
            assert_eq!(asked[0]["payload"], json!("y"));
            let tx = format!("transaction={}", asked[0]["path"].as_str().context("a path")?);
            // They leave it to the coordinator for as long as that has a session.
            for site in ["site=b", "site=c"] {
                let config = ["--config", "notify=coordinator"];
                let words = [&config[..], &["vote", &tx, site, "choice=commit"]].concat();
                answer(&ground.call(server, &path, &words).await?);
            }
            let words = ["--config", "notify=coordinator", "outcome", &tx];
            let told = answer(&ground.call(server + 1, &path, &words).await?);
            assert_eq!(told, json!({ "decision": "commit", "reason": ALL }));
        }
    }
    for site in ["a", "b"] {
        vote(ground, server, &path, &first, site).await?;
    }
    let told = answer(&ground.call(server, &path, &["outcome", &first]).await?);
    assert_eq!(told["decision"], json!("commit"));
    Ok(())
}

#[tokio::test]
async fn whoever_is_killed_on_three_servers_the_others_decide() -> Result<()> {
    let ground = Ground::start().await?;
    play_coordinator(&ground, 0, Moment::Before(1)).await?;
    play_coordinator(&ground, 1, Moment::Behind(1)).await?;
    for (server, kill) in KILLS.iter().enumerate() {
        play(&ground, server, kill)
            .await
            .with_context(|| format!("{:?} is killed {:?}", kill.words, kill.moment))?;
    }
    Ok(())
}
