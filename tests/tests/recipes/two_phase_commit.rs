//! The stock two-phase commit on a real server: from the command line, with lost replies, and its example;
//! with killed coordinators and sites on three servers. In simulation, each death at each step, all pairs of
//! them, and clocks that differ.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod kills;
mod simulated;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::{Value, json};
use wok::participant::Notice;
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{Ended, Program};
use wok_tests::proxy::Proxy;
use wok_tests::stock::Stock;
use wok_tests::{losses, zookeeper};

fn program(address: &str, path: &str, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "two-phase-commit", "--mount", path, "--connect", address];
    Ok(Program::wok()?.args(options).args(["--output", "json"]).args(arguments))
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    program(zookeeper::shared().await.address(), path, arguments)?.run().await
}

#[track_caller]
fn answer(ended: &Ended) -> Value {
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[track_caller]
fn check_refused(ended: &Ended, told: &str) {
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(70), ""), "{ended:?}");
    assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
}

async fn begin(path: &str, sites: &[&str], within_ms: u64) -> Result<String> {
    let sites = format!("sites={}", json!(sites));
    let within = format!("within-ms={within_ms}");
    let begun = answer(&call(path, &["begin", &sites, "payload=order 7", &within]).await?);
    Ok(begun.as_str().context("a path")?.to_owned())
}

fn vote(transaction: &str, site: &str, choice: &str) -> [String; 4] {
    [
        "vote".to_owned(),
        format!("transaction={transaction}"),
        format!("site={site}"),
        format!("choice={choice}"),
    ]
}

async fn cast(path: &str, transaction: &str, site: &str, choice: &str) -> Result<Ended> {
    let words = vote(transaction, site, choice);
    call(path, &words.each_ref().map(String::as_str)).await
}

async fn outcome(path: &str, transaction: &str) -> Result<Value> {
    Ok(answer(&call(path, &["outcome", &format!("transaction={transaction}")]).await?))
}

async fn version(admin: &Admin, path: &str) -> Result<i32> {
    Ok(admin.get(path).await?.with_context(|| path.to_owned())?.1.version)
}

/// Longer than any test takes.
const LONG_MS: u64 = 600_000;

#[tokio::test]
async fn a_transaction_commits_from_the_command_line() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    let none = answer(&call(&path, &["transactions", "site=a"]).await?);
    assert_eq!((none, admin.stat(&path).await?), (json!([]), None), "a look makes nothing");
    let tx = begin(&path, &["a", "b"], LONG_MS).await?;
    for site in ["a", "b"] {
        let site = format!("site={site}");
        let asked = answer(&call(&path, &["transactions", &site]).await?);
        assert_eq!(asked[0]["path"], json!(tx));
        assert_eq!(asked[0]["payload"], json!("order 7"));
    }
    assert_eq!(answer(&call(&path, &["transactions", "site=c"]).await?), json!([]));

    assert_eq!(answer(&cast(&path, &tx, "a", "commit").await?), Value::Null);
    assert_eq!(answer(&cast(&path, &tx, "a", "commit").await?), Value::Null);
    check_refused(&cast(&path, &tx, "a", "abort").await?, "a has voted to commit");
    check_refused(&cast(&path, &tx, "c", "commit").await?, "does not ask the site");
    check_refused(&cast(&path, &tx, "a/b", "commit").await?, "has a slash");
    let status = answer(&call(&path, &["status", &format!("transaction={tx}")]).await?);
    assert_eq!(status["outcome"], Value::Null);
    assert_eq!(status["sites"][0]["vote"], json!("commit"));
    assert_eq!(status["sites"][1]["vote"], Value::Null);
    check_refused(&call(&path, &["forget", &format!("transaction={tx}")]).await?, "is not decided");

    assert_eq!(answer(&cast(&path, &tx, "b", "commit").await?), Value::Null);
    assert_eq!(outcome(&path, &tx).await?["decision"], json!("commit"));
    check_refused(&cast(&path, &tx, "b", "abort").await?, "b has voted to commit");
    let absolute = format!("{path}{tx}");
    assert_eq!(version(&admin, &absolute).await?, 3, "two votes and the decision");
    assert_eq!(admin.children(&format!("{absolute}/present")).await?, Vec::<String>::new());
    assert_eq!(admin.stat(&format!("{absolute}/coordinator")).await?, None);
    answer(&call(&path, &["forget", &format!("transaction={tx}")]).await?);
    assert_eq!(admin.stat(&absolute).await?, None, "nothing is left");
    check_refused(&call(&path, &["outcome", &format!("transaction={tx}")]).await?, "no-node");
    Ok(())
}

#[tokio::test]
async fn one_vote_aborts_and_so_does_the_deadline() -> Result<()> {
    let path = zookeeper::unique_path();
    let tx = begin(&path, &["a", "b"], LONG_MS).await?;
    answer(&cast(&path, &tx, "b", "abort").await?);
    assert_eq!(outcome(&path, &tx).await?["reason"], json!("b voted to abort"));
    check_refused(&cast(&path, &tx, "a", "commit").await?, "is decided, to abort");

    let tx = begin(&path, &["a", "b"], 500).await?;
    assert_eq!(outcome(&path, &tx).await?["reason"], json!("a had not voted in time"));
    check_refused(&cast(&path, &tx, "b", "commit").await?, "is decided, to abort");
    Ok(())
}

#[tokio::test]
async fn what_somebody_else_has_written_blocks_nobody() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    let in_it = |tx: &str, name: &str| format!("{path}{tx}/{name}");
    // Perhaps it was a vote, before or after: nobody can tell any more.
    let tx = begin(&path, &["a", "b"], LONG_MS).await?;
    answer(&cast(&path, &tx, "a", "commit").await?);
    admin.set(&in_it(&tx, "sites/a"), b"commit").await?;
    let of_a = in_it(&tx, "sites/a").replace(&path, "");
    check_refused(&cast(&path, &tx, "a", "commit").await?, &of_a);
    assert_eq!(outcome(&path, &tx).await?["reason"], json!("the vote of a was overwritten"));
    check_refused(&cast(&path, &tx, "b", "commit").await?, "is decided, to abort");

    // What is missing or in the way of an end is named, or does not matter.
    let forget = async |tx: &str| {
        call(&path, &["--wait", "20s", "forget", &format!("transaction={tx}")]).await
    };
    admin.create(&in_it(&tx, "registered/notes"), b"").await?;
    check_refused(&forget(&tx).await?, "/registered has a child");
    admin.delete(&in_it(&tx, "registered/notes")).await?;
    admin.delete(&in_it(&tx, "payload")).await?;
    answer(&forget(&tx).await?);
    assert_eq!(admin.stat(&format!("{path}{tx}")).await?, None);

    let tx = begin(&path, &["a"], LONG_MS).await?;
    admin.delete(&in_it(&tx, "present")).await?;
    let (transaction, words) = (format!("transaction={tx}"), ["--wait", "20s", "register"]);
    let refused = call(&path, &[&words[..], &[&transaction, "site=a"]].concat()).await?;
    check_refused(&refused, "/present/a cannot be created");
    Ok(())
}

#[tokio::test]
async fn what_is_no_transaction_is_refused() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    for (sites, told) in [
        (&[][..], "1 to 40 sites"),
        (&["a", "a"], "is named twice"),
        (&["a/b"], "has a slash"),
        (&[".."], "step of a path"),
    ] {
        let sites = format!("sites={}", json!(sites));
        let refused = call(&path, &["begin", &sites, "payload=x", "within-ms=1000"]).await?;
        check_refused(&refused, told);
    }
    let large = format!("payload={}", "x".repeat(16_385));
    let refused = call(&path, &["begin", "sites=[\"a\"]", &large, "within-ms=1000"]).await?;
    check_refused(&refused, "at most 16384");
    assert_eq!(admin.stat(&path).await?, None, "nothing was made");
    // Other children are none of the recipe's.
    admin.create(&format!("{path}/tx-of-somebody-else"), b"theirs").await?;
    admin.create(&format!("{path}/notes"), b"").await?;
    assert_eq!(answer(&call(&path, &["transactions", "site=a"]).await?), json!([]));
    for foreign in ["/tx-of-somebody-else", "/notes", "/tx-x/sites", "tx-x"] {
        let refused = call(&path, &["outcome", &format!("transaction={foreign}")]).await?;
        assert_eq!(refused.code(), Some(70), "{refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_vote_is_cast_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let played = losses::each(&losses::EVERY, async |loss| {
        let path = zookeeper::unique_path();
        let tx = begin(&path, &["a", "b"], LONG_MS).await?;
        answer(&cast(&path, &tx, "a", "commit").await?);
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        // The last vote, which decides as well.
        let words = vote(&tx, "b", "commit");
        let words = words.each_ref().map(String::as_str);
        answer(&program(proxy.address(), &path, &words)?.run().await?);
        let decision = format!("{path}{tx}/decision");
        let (written, stat) = admin.get(&decision).await?.context("the decision")?;
        let expected = "commit\nall sites voted to commit";
        assert_eq!((written.as_slice(), stat.version), (expected.as_bytes(), 1), "{loss}");
        assert_eq!(version(&admin, &format!("{path}{tx}")).await?, 3, "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    assert!(played >= 3 * 6, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn a_transaction_is_begun_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let played = losses::each(&losses::EITHER, async |loss| {
        let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
        let fault = loss.befall(&proxy, &path);
        let words = ["begin", "sites=[\"a\",\"b\"]", "payload=x", "within-ms=600000"];
        let tx = answer(&program(proxy.address(), &path, &words)?.run().await?);
        let tx = tx.as_str().context("a path")?;
        assert_eq!(admin.children(&path).await?, [tx.trim_start_matches('/')], "{loss}");
        let coordinator = format!("{path}{tx}/coordinator");
        assert_eq!(admin.stat(&coordinator).await?, None, "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    assert!(played >= 2 * 3, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn who_waits_learns_the_outcome_when_others_are_killed() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let tx = begin(&path, &["a", "b"], LONG_MS).await?;
    let words = ["outcome", &format!("transaction={tx}")];
    let waiting = program(server.address(), &path, &words)?.start()?;
    let killed = program(server.address(), &path, &words)?.start()?;
    answer(&cast(&path, &tx, "a", "commit").await?);
    killed.signal(Signal::KILL)?;
    answer(&cast(&path, &tx, "b", "commit").await?);
    let told = answer(&waiting.ended().await?);
    assert_eq!(told["decision"], json!("commit"));
    assert_eq!(outcome(&path, &tx).await?, told, "and so does everybody later");
    Ok(())
}

/// As many as a participant follows.
const MOST: usize = 24;

// On threads of their own: sessions go on while a module is compiled.
#[tokio::test(flavor = "multi_thread")]
async fn who_follows_as_many_as_it_can_leaves_the_next_one_to_others() -> Result<()> {
    let server = zookeeper::shared().await;
    let (admin, path) = (Admin::connect(server.address()).await?, zookeeper::unique_path());
    let stock = Stock::open(server.address(), "two-phase-commit", &path).await?;
    let (busy, other) = (stock.join()?, stock.join()?);
    let mut begun = Vec::new();
    for _ in 0..=MOST {
        let terms = json!({ "sites": ["a"], "payload": "x", "within-ms": LONG_MS });
        let answer = stock.call_with(&busy.0, "begin", &terms).await?;
        begun.push(answer.value.map_err(anyhow::Error::msg)?);
    }
    let (followed, next) = (&begun[MOST - 1], &begun[MOST]);
    let mark = |tx: &Value| format!("{path}{}/coordinator", tx.as_str().unwrap());
    assert!(admin.stat(&mark(followed)).await?.is_some());
    assert_eq!(admin.stat(&mark(next)).await?, None, "no site waits for who does not follow it");
    let registering = json!({ "transaction": next, "site": "a" });
    let refused = stock.call_with(&busy.0, "register", &registering).await?;
    let told = format!("{:?}", refused.value.expect_err("there is no room"));
    assert!(told.contains("24 transactions"), "{told}");
    // It still waits for the outcome of one more.
    let about = json!({ "transaction": next });
    let voting = json!({ "transaction": next, "site": "a", "choice": "commit" });
    let waits = stock.call_with(&busy.0, "outcome", &about);
    let (told, voted) = tokio::try_join!(waits, stock.call_with(&other.0, "vote", &voting))?;
    assert_eq!(voted.value, Ok(Value::Null));
    assert_eq!(told.value.map_err(anyhow::Error::msg)?["decision"], json!("commit"));
    Ok(())
}

/// As many as are answered.
const MOST_ANSWERED: usize = 64;

// As above.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_told_of_all_that_ask_it_and_first_of_those_whose_time_is_not_over() -> Result<()>
{
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let stock = Stock::open(server.address(), "two-phase-commit", &path).await?;
    let (coordinator, (site, mut follower)) = (stock.join()?, stock.join()?);
    let begin = async |within_ms: u64, payload: &str| -> Result<Value> {
        let terms = json!({ "sites": ["a"], "payload": payload, "within-ms": within_ms });
        let begun = stock.call_with(&coordinator.0, "begin", &terms).await?;
        begun.value.map_err(anyhow::Error::msg)
    };
    // Beyond those that the coordinator follows, so that nobody decides the late one.
    let mut begun = Vec::new();
    for _ in 0..MOST {
        begun.push(begin(LONG_MS, "x").await?);
    }
    let late = begin(1, "x").await?;
    for _ in MOST..=MOST_ANSWERED {
        begun.push(begin(LONG_MS, "x").await?);
    }
    let asking = stock.call_with(&site, "transactions", &json!({ "site": "a" })).await?;
    let asking = asking.value.map_err(anyhow::Error::msg)?;
    let told: Vec<&Value> = asking.as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(told, begun[..MOST_ANSWERED].iter().collect::<Vec<_>>());
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let notice = follower.next().await.context("the participant has ended")?;
        if let Notice::Emitted { event, detail } = notice
            && event == "asked"
        {
            asked.extend(detail.into_iter().map(|(_, path)| Value::from(path)));
        }
    }
    asked.sort_unstable_by_key(Value::to_string);
    let mut rest = vec![late, begun[MOST_ANSWERED].clone()];
    rest.sort_unstable_by_key(Value::to_string);
    assert_eq!(asked, rest);
    Ok(())
}

// As above.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_hears_of_all_that_ask_it_however_many_there_are() -> Result<()> {
    // More events than a participant may send in a second.
    const MORE: usize = 450;
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let stock = Stock::open(server.address(), "two-phase-commit", &path).await?;
    let (coordinator, (site, mut follower)) = (stock.join()?, stock.join()?);
    let terms = json!({ "sites": ["a"], "payload": "x", "within-ms": LONG_MS });
    for _ in 0..MOST_ANSWERED + MORE {
        let begun = stock.call_with(&coordinator.0, "begin", &terms).await?;
        begun.value.map_err(anyhow::Error::msg)?;
    }
    let asking = stock.call_with(&site, "transactions", &json!({ "site": "a" })).await?;
    let asking = asking.value.map_err(anyhow::Error::msg)?;
    assert_eq!(asking.as_array().map(Vec::len), Some(MOST_ANSWERED));
    let hearing = async {
        let mut asked = BTreeSet::new();
        while asked.len() < MORE {
            let notice = follower.next().await.context("the participant has ended")?;
            if let Notice::Emitted { detail, .. } = notice {
                asked.extend(detail.into_iter().map(|(_, path)| path));
            }
        }
        Ok(())
    };
    within("all of them", hearing).await?
}

// As above.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_has_decided_takes_no_place_among_those_that_are_followed() -> Result<()>
{
    let server = zookeeper::shared().await;
    let (admin, path) = (Admin::connect(server.address()).await?, zookeeper::unique_path());
    let stock = Stock::open(server.address(), "two-phase-commit", &path).await?;
    let (busy, other) = (stock.join()?, stock.join()?);
    let terms = json!({ "sites": ["a"], "payload": "x", "within-ms": LONG_MS });
    for _ in 0..MOST {
        let begun = stock.call_with(&busy.0, "begin", &terms).await?.value;
        let begun = begun.map_err(anyhow::Error::msg)?;
        let transaction = format!("{path}{}", begun.as_str().context("a path")?);
        admin.set(&format!("{transaction}/decision"), b"theirs").await?;
        // Who follows it looks when this changes.
        let (own, _) = admin.get(&transaction).await?.context("the transaction")?;
        admin.set(&transaction, &own).await?;
    }
    let next = stock.call_with(&other.0, "begin", &terms).await?.value;
    let registering = json!({ "transaction": next.map_err(anyhow::Error::msg)?, "site": "a" });
    eventually("a place for another one", async || {
        let registered = stock.call_with(&busy.0, "register", &registering).await?;
        Ok(registered.value.is_ok().then_some(()))
    })
    .await
}

// As above.
#[tokio::test(flavor = "multi_thread")]
async fn the_payloads_that_are_answered_together_have_a_bound() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let stock = Stock::open(server.address(), "two-phase-commit", &path).await?;
    let (coordinator, site) = (stock.join()?, stock.join()?);
    let terms = json!({ "sites": ["a"], "payload": "x".repeat(16_384), "within-ms": LONG_MS });
    for _ in 0..50 {
        let begun = stock.call_with(&coordinator.0, "begin", &terms).await?;
        begun.value.map_err(anyhow::Error::msg)?;
    }
    let asking = stock.call_with(&site.0, "transactions", &json!({ "site": "a" })).await?;
    let asking = asking.value.map_err(anyhow::Error::msg)?;
    assert_eq!(asking.as_array().map(Vec::len), Some(48));
    Ok(())
}

#[tokio::test]
async fn the_payment_does_what_its_page_says() -> Result<()> {
    play_example("payment", &["pay", "site"]).await
}
