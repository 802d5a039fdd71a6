//! The stock count-down latch on a real server: counts at one time, lost replies, and what others do to
//! its znodes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::guide::play_example;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Program, Running};
use wok_tests::proxy::{Cut, Match, Proxy};
use wok_tests::{losses, zookeeper};

fn program(address: &str, path: &str, count: u32, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "count-down-latch", "--mount", path, "--connect", address];
    let config = format!("count={count}");
    let program = Program::wok()?.args(options).args(["--config", &config, "--output", "json"]);
    Ok(program.args(arguments))
}

async fn call(path: &str, count: u32, arguments: &[&str]) -> Result<Ended> {
    program(zookeeper::shared().await.address(), path, count, arguments)?.run().await
}

#[track_caller]
fn check(ended: &Ended, answer: &str) {
    let said = (ended.code(), ended.stdout.trim());
    assert_eq!(said, (Some(0), answer), "{ended:?}");
}

#[track_caller]
fn check_refused(ended: &Ended, told: &[&str]) {
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(70), ""), "{ended:?}");
    for told in told {
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
}

/// How many sessions watch the znode.
async fn watchers(path: &str) -> Result<usize> {
    Ok(zookeeper::shared().await.watchers(path).await?.len())
}

/// Starts a waiter at a closed latch, and waits until the server has its watch.
async fn waiter(address: &str, path: &str, count: u32) -> Result<Running> {
    let gate = format!("{path}/gate");
    let before = watchers(&gate).await?;
    let waiter = program(address, path, count, &["wait"])?.start()?;
    eventually("a waiter to watch the gate", async || {
        Ok((watchers(&gate).await? == before + 1).then_some(()))
    })
    .await?;
    assert_eq!(waiter.status(), None, "it waits");
    Ok(waiter)
}

async fn data(admin: &Admin, path: &str) -> Result<String> {
    let (data, _) = admin.get(path).await?.with_context(|| path.to_owned())?;
    Ok(String::from_utf8(data)?)
}

async fn children(admin: &Admin, path: &str) -> Result<Vec<String>> {
    let mut children = admin.children(path).await?;
    children.sort();
    Ok(children)
}

#[tokio::test]
async fn a_latch_is_counted_down_from_the_command_line() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    check(&call(&path, 3, &["remaining"]).await?, "3");
    assert_eq!(admin.stat(&path).await?, None, "a look makes nothing");

    check(&call(&path, 3, &["count-down", "id=a"]).await?, "2");
    check(&call(&path, 3, &["count-down", "id=a"]).await?, "2");
    for (id, told) in [("", "1 to 64 bytes"), ("b/", "a slash or a control character")] {
        let refused = call(&path, 3, &["count-down", &format!("id={id}")]).await?;
        check_refused(&refused, &[told]);
    }
    assert_eq!(data(&admin, &path).await?, "2 of 3");
    assert_eq!(children(&admin, &path).await?, ["count-a", "gate"]);
    let waits = call(&path, 3, &["--wait", "1s", "wait"]).await?;
    assert_eq!((waits.code(), waits.stdout.as_str()), (Some(75), ""), "{waits:?}");

    // As the command line has it, digits alone are a number unless they are in quotes.
    check(&call(&path, 3, &["count-down", "id=\"7\""]).await?, "1");
    check(&call(&path, 3, &["count-down", "id=the last"]).await?, "0");
    check(&call(&path, 3, &["wait"]).await?, "null");
    // It stays open, and counts nobody any more.
    check(&call(&path, 3, &["count-down", "id=another"]).await?, "0");
    check(&call(&path, 3, &["count-down", "id=a"]).await?, "0");
    check(&call(&path, 3, &["remaining"]).await?, "0");
    let counted = ["count-7", "count-a", "count-the last"];
    assert_eq!(children(&admin, &path).await?, counted, "what is counted outlives who counted");
    assert_eq!(data(&admin, &path).await?, "0 of 3");
    Ok(())
}

#[tokio::test]
async fn another_count_is_refused_and_so_is_one_that_no_latch_has() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    check(&call(&path, 2, &["count-down", "id=a"]).await?, "1");
    for arguments in [&["count-down", "id=b"][..], &["wait"], &["remaining"]] {
        let refused = call(&path, 3, arguments).await?;
        check_refused(&refused, &["the latch is for 2", "`count` is 3 here"]);
    }
    assert_eq!(data(&admin, &path).await?, "1 of 2");
    for count in [0, 10_001] {
        let refused = call(&path, count, &["remaining"]).await?;
        assert_ne!(refused.code(), Some(0), "{refused:?}");
        assert!(refused.stderr.contains("is not from 1 to 10000"), "{}", refused.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_count_wakes_nobody_and_the_last_one_wakes_all() -> Result<()> {
    const WAITERS: usize = 3;
    let server = zookeeper::shared().await;
    let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
    check(&call(&path, 3, &["count-down", "id=a"]).await?, "2");
    let mut waiters = Vec::new();
    for _ in 0..WAITERS {
        waiters.push(waiter(proxy.address(), &path, 3).await?);
    }
    let before = proxy.requests(&Match::any().under(&path)).len();
    // The look at the latch, behind its transaction, and at the gate.
    assert_eq!(before, 3 * WAITERS);
    check(&call(&path, 3, &["count-down", "id=b"]).await?, "1");
    assert_eq!(watchers(&format!("{path}/gate")).await?, WAITERS, "they watch as before");
    check(&call(&path, 3, &["count-down", "id=c"]).await?, "0");
    for waiter in &waiters {
        check(&waiter.ended().await?, "null");
    }
    // One read each, when it opened: none of them was told of the count before.
    let after = proxy.requests(&Match::any().under(&path)).len();
    assert_eq!(after - before, WAITERS);
    assert_eq!(watchers(&format!("{path}/gate")).await?, 0);
    assert_eq!(watchers(&path).await?, 0);
    Ok(())
}

#[tokio::test]
async fn of_many_that_count_at_one_time_one_is_the_last() -> Result<()> {
    const COUNT: u32 = 12;
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let counting: Vec<Running> = (0..COUNT)
        .map(|id| {
            let id = format!("id=host-{id}");
            program(server.address(), &path, COUNT, &["count-down", &id])?.start()
        })
        .collect::<Result<_>>()?;
    let mut answers = BTreeSet::new();
    for one in &counting {
        let ended = one.ended().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        answers.insert(ended.stdout.trim().parse::<u32>()?);
    }
    assert_eq!(answers, (0..COUNT).collect::<BTreeSet<_>>(), "each is told its own");
    assert_eq!(data(&admin, &path).await?, format!("0 of {COUNT}"));
    assert_eq!(admin.stat(&format!("{path}/gate")).await?, None);
    check(&call(&path, COUNT, &["wait"]).await?, "null");
    Ok(())
}

#[tokio::test]
async fn an_id_counts_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let mut played = 0;
    // The first count makes the latch, and the second one opens it.
    for (before, remaining, left) in
        [(None, "1", &["count-b", "gate"][..]), (Some("id=a"), "0", &["count-a", "count-b"][..])]
    {
        played += losses::each(&losses::EVERY, async |loss| {
            let path = zookeeper::unique_path();
            if let Some(id) = before {
                check(&call(&path, 2, &["count-down", id]).await?, "1");
            }
            let proxy = Proxy::start(server.address())?;
            let fault = loss.befall(&proxy, &path);
            let arguments = ["count-down", "id=b"];
            let ended = program(proxy.address(), &path, 2, &arguments)?.run().await?;
            check(&ended, remaining);
            assert_eq!(data(&admin, &path).await?, format!("{remaining} of 2"), "{loss}");
            assert_eq!(children(&admin, &path).await?, left, "{loss}");
            Ok(fault.has_struck())
        })
        .await?;
    }
    // A transaction, a read, and the count.
    assert!(played >= 3 * 2 * 3, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn what_is_no_latch_is_left_alone_and_told_with_the_remedy() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    for foreign in [&b"2"[..], b"2 of 1", b"somebody else's"] {
        let path = zookeeper::unique_path();
        admin.create(&path, foreign).await?;
        for arguments in [&["count-down", "id=a"][..], &["wait"], &["remaining"]] {
            let refused = call(&path, 2, arguments).await?;
            check_refused(&refused, &["mount the latch elsewhere", "delete it"]);
        }
        let (there, stat) = admin.get(&path).await?.context("the znode")?;
        assert_eq!((there.as_slice(), stat.version), (foreign, 0));
        assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    }
    // One that was made for something to come, with a child of somebody else's.
    let path = zookeeper::unique_path();
    admin.create(&format!("{path}/somebody-elses"), b"").await?;
    check(&call(&path, 2, &["count-down", "id=a"]).await?, "1");
    assert_eq!(children(&admin, &path).await?, ["count-a", "gate", "somebody-elses"]);
    check(&call(&path, 2, &["count-down", "id=b"]).await?, "0");
    check(&call(&path, 2, &["wait"]).await?, "null");
    Ok(())
}

#[tokio::test]
async fn who_waits_at_a_latch_that_is_deleted_is_told_and_does_not_pass() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    for is_made_anew in [false, true] {
        let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
        check(&call(&path, 2, &["count-down", "id=a"]).await?, "1");
        let waiting = waiter(proxy.address(), &path, 2).await?;
        // The waiter hears of nothing until all is done.
        proxy.refuse();
        proxy.cut_all(Cut::Reset);
        admin.delete_tree(&path).await?;
        if is_made_anew {
            check(&call(&path, 2, &["count-down", "id=a"]).await?, "1");
        }
        proxy.heal();
        check_refused(&waiting.ended().await?, &["no-node"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_gate_that_somebody_deletes_lets_nobody_by() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let gate = format!("{path}/gate");
    check(&call(&path, 2, &["count-down", "id=a"]).await?, "1");
    let waiting = waiter(server.address(), &path, 2).await?;
    admin.delete(&gate).await?;
    check_refused(&waiting.ended().await?, &["somebody has deleted it", "create it again"]);
    check_refused(&call(&path, 2, &["count-down", "id=b"]).await?, &["create it again"]);
    assert_eq!(data(&admin, &path).await?, "1 of 2", "nothing is counted by halves");
    assert_eq!(children(&admin, &path).await?, ["count-a"]);

    admin.create(&gate, b"").await?;
    let waiting = waiter(server.address(), &path, 2).await?;
    check(&call(&path, 2, &["count-down", "id=b"]).await?, "0");
    check(&waiting.ended().await?, "null");
    Ok(())
}

#[tokio::test]
async fn a_count_costs_two_round_trips_however_many_there_are() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    for id in 0..5 {
        check(
            &call(&path, 7, &["count-down", &format!("id=host-{id}")]).await?,
            &(6 - id).to_string(),
        );
    }
    let proxy = Proxy::start(server.address())?;
    check(&program(proxy.address(), &path, 7, &["count-down", "id=x"])?.run().await?, "1");
    let asked = proxy.requests(&Match::any().under(&path));
    let asked: Vec<Opcode> = asked.iter().map(|seen| seen.opcode).collect();
    assert_eq!(asked, [Opcode::Multi, Opcode::GetData, Opcode::Multi]);
    Ok(())
}

#[tokio::test]
async fn the_deployment_does_what_its_page_says() -> Result<()> {
    play_example("deployment", &["report", "when-all-have-reported"]).await
}
