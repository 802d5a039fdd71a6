//! The stock barrier on a real server: waiters that are processes, and openings that are short.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::guide::play_example;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Program, Running};
use wok_tests::proxy::{Action, Cut, Direction, Match, Proxy};
use wok_tests::{losses, zookeeper};

fn program(address: &str, path: &str, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "barrier", "--mount", path, "--connect", address];
    Ok(Program::wok()?.args(options).args(["--output", "json"]).args(arguments))
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    program(zookeeper::shared().await.address(), path, arguments)?.run().await
}

#[track_caller]
fn check(ended: &Ended, answer: &str) {
    let said = (ended.code(), ended.stdout.trim());
    assert_eq!(said, (Some(0), answer), "{ended:?}");
}

/// How many sessions watch the znode.
async fn watchers(path: &str) -> Result<usize> {
    Ok(zookeeper::shared().await.watchers(path).await?.len())
}

/// Starts a waiter at a barrier that is up, and waits until the server has its watch.
async fn waiter(address: &str, path: &str) -> Result<Running> {
    let before = watchers(path).await?;
    let waiter = program(address, path, &["wait"])?.start()?;
    eventually("a waiter to watch the barrier", async || {
        Ok((watchers(path).await? == before + 1).then_some(()))
    })
    .await?;
    assert_eq!(waiter.status(), None, "it waits");
    Ok(waiter)
}

#[tokio::test]
async fn a_barrier_is_raised_and_lowered_from_the_command_line() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    check(&call(&path, &["wait"]).await?, "null");
    check(&call(&path, &["lower"]).await?, "null");
    assert_eq!(admin.stat(&path).await?, None, "neither creates anything");

    check(&call(&path, &["--owner", "the database team", "raise"]).await?, "\"raised\"");
    let (data, stat) = admin.get(&path).await?.context("the barrier")?;
    assert!(data.starts_with(b"the database team\nraise-"), "{data:?}");
    assert_eq!(stat.ephemeral_owner, 0, "it outlives the one who raised it");
    assert_eq!(stat.version, 0, "kazoo's waiters take a change of the data for the last event");
    check(&call(&path, &["raise"]).await?, r#"{"was-up":"the database team"}"#);
    assert_eq!(admin.get(&path).await?.context("the barrier")?, (data, stat), "it stays as it is");

    let waits = call(&path, &["--wait", "1s", "wait"]).await?;
    assert_eq!((waits.code(), waits.stdout.as_str()), (Some(75), ""), "{waits:?}");
    check(&call(&path, &["lower"]).await?, "null");
    assert_eq!(admin.stat(&path).await?, None);
    check(&call(&path, &["wait"]).await?, "null");
    // Its parents are there now, so one request raises it.
    check(&call(&path, &["--owner", "one line", "raise"]).await?, "\"raised\"");
    let (data, _) = admin.get(&path).await?.context("the barrier")?;
    // Another client may have said more of itself.
    let said = String::from_utf8(data)?.replace("one line", "two\nlines");
    admin.set(&path, said.as_bytes()).await?;
    check(&call(&path, &["raise"]).await?, r#"{"was-up":"two\nlines"}"#);
    Ok(())
}

#[tokio::test]
async fn all_who_wait_pass_at_one_lowering_with_one_look_each_and_leave_no_watch() -> Result<()> {
    const WAITERS: usize = 4;
    let server = zookeeper::shared().await;
    let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
    check(&call(&path, &["raise"]).await?, "\"raised\"");
    let mut waiters = Vec::new();
    for _ in 0..WAITERS {
        waiters.push(waiter(proxy.address(), &path).await?);
    }
    check(&call(&path, &["lower"]).await?, "null");
    for waiter in &waiters {
        check(&waiter.ended().await?, "null");
    }
    assert_eq!(watchers(&path).await?, 0);
    let asked = proxy.requests(&Match::any().under(&path));
    let of = |opcode: Opcode| asked.iter().filter(|seen| seen.opcode == opcode).count();
    let counts = (of(Opcode::Multi), of(Opcode::GetData), asked.len());
    assert_eq!(counts, (WAITERS, 2 * WAITERS, 3 * WAITERS), "{asked:?}");
    Ok(())
}

/// Curator's barrier waits on here: it looks whether there is one.
#[tokio::test]
async fn who_waits_at_an_opening_passes_though_it_is_raised_again_before_the_look() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    for is_cut in [false, true] {
        let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
        check(&call(&path, &["raise"]).await?, "\"raised\"");
        let waiter = waiter(proxy.address(), &path).await?;
        // The server has the watch before the waiter has the reply, and a waiter that loses the reply
        // has met no barrier yet. One that looks again has met this one.
        admin.set(&path, b"somebody else's").await?;
        let looks = Match::opcode(Opcode::GetData).under(&path);
        eventually("the waiter to look again", async || {
            Ok((proxy.requests(&looks).len() == 2).then_some(()))
        })
        .await?;
        // The waiter hears of nothing until the barrier is up again.
        if is_cut {
            proxy.refuse();
            proxy.cut_all(Cut::Reset);
        } else {
            proxy.stall(Direction::Replies);
        }
        check(&call(&path, &["lower"]).await?, "null");
        check(&call(&path, &["raise"]).await?, "\"raised\"");
        proxy.heal();
        check(&waiter.ended().await?, "null");
        assert!(admin.stat(&path).await?.is_some(), "it is up");
    }
    Ok(())
}

/// kazoo's barrier takes the first event for the last one, and never passes after this.
#[tokio::test]
async fn a_change_of_the_data_lets_nobody_by_and_keeps_nobody_back() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
    check(&call(&path, &["raise"]).await?, "\"raised\"");
    let waiter = waiter(proxy.address(), &path).await?;
    for changes in 1..=2 {
        admin.set(&path, b"somebody else's").await?;
        let looks = Match::opcode(Opcode::GetData).under(&path);
        eventually("the waiter to look again", async || {
            Ok((proxy.requests(&looks).len() == 1 + changes).then_some(()))
        })
        .await?;
        eventually("the waiter to watch again", async || {
            Ok((watchers(&path).await? == 1).then_some(()))
        })
        .await?;
        assert_eq!(waiter.status(), None, "it waits on");
    }
    check(&call(&path, &["raise"]).await?, r#"{"was-up":"somebody else's"}"#);
    check(&call(&path, &["lower"]).await?, "null");
    check(&waiter.ended().await?, "null");
    Ok(())
}

#[tokio::test]
async fn a_lower_whose_reply_is_lost_leaves_the_next_barrier_alone() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
    check(&call(&path, &["raise"]).await?, "\"raised\"");
    let deletes = Match::opcode(Opcode::Delete).under(&path);
    proxy.inject(deletes, Action::StallReplies);
    let lower = program(proxy.address(), &path, &["lower"])?.start()?;
    admin.wait_gone(&path).await?;
    check(&call(&path, &["raise"]).await?, "\"raised\"");
    let raised = admin.stat(&path).await?;
    assert!(raised.is_some());
    proxy.cut_all(Cut::Reset);
    check(&lower.ended().await?, "null");
    assert_eq!(admin.stat(&path).await?, raised, "somebody relies on it");
    Ok(())
}

#[tokio::test]
async fn a_barrier_is_raised_and_lowered_whichever_request_or_reply_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let mut played = 0;
    for below in ["", "/below/new/parents"] {
        losses::each(&losses::EVERY, async |loss| {
            let path = format!("{}{below}", zookeeper::unique_path());
            let proxy = Proxy::start(server.address())?;
            let raising = loss.befall(&proxy, &path);
            let ended = program(proxy.address(), &path, &["raise"])?.run().await?;
            check(&ended, "\"raised\"");
            let (data, _) = admin.get(&path).await?.context("the barrier")?;
            assert!(String::from_utf8(data)?.contains("\nraise-"), "{loss}");
            let has_struck = raising.has_struck();
            proxy.heal();
            proxy.clear_log();
            let lowering = loss.befall(&proxy, &path);
            let ended = program(proxy.address(), &path, &["lower"])?.run().await?;
            check(&ended, "null");
            assert_eq!(admin.stat(&path).await?, None, "{loss}");
            played += usize::from(has_struck) + usize::from(lowering.has_struck());
            Ok(has_struck || lowering.has_struck())
        })
        .await?;
    }
    // One request to raise it, and three to lower it.
    assert!(played >= 3 * 2 * 4, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn a_znode_with_children_is_not_lowered_and_the_children_stay() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    admin.create(&format!("{path}/somebody-elses"), b"").await?;
    check(&call(&path, &["raise"]).await?, r#"{"was-up":""}"#);
    let refused = call(&path, &["lower"]).await?;
    assert_eq!((refused.code(), refused.stdout.as_str()), (Some(70), ""), "{refused:?}");
    assert!(refused.stderr.contains("not-empty: the znode there"), "{}", refused.stderr);
    assert_eq!(admin.children(&path).await?, ["somebody-elses"]);
    Ok(())
}

#[tokio::test]
async fn the_maintenance_window_does_what_its_page_says() -> Result<()> {
    play_example("maintenance-window", &["job", "maintenance"]).await
}

#[tokio::test]
async fn who_is_overtaken_while_it_makes_the_parents_has_raised_nothing() -> Result<()> {
    let server = zookeeper::shared().await;
    let (proxy, admin) = (Proxy::start(server.address())?, Admin::connect(server.address()).await?);
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    // The first one is of the barrier itself, whose parents are missing.
    let second = proxy.inject(Match::creates().nth(2), Action::StallRequests);
    let raising = program(proxy.address(), &path, &["raise"])?.start()?;
    second.struck().await?;
    admin.create(&path, b"somebody else's").await?;
    proxy.heal();
    let ended = raising.ended().await?;
    assert!(ended.stdout.contains("was-up"), "{ended:?}");
    let (data, stat) = admin.get(&path).await?.context("the barrier")?;
    assert_eq!((data, stat.version), (b"somebody else's".to_vec(), 0));
    Ok(())
}

#[tokio::test]
async fn a_barrier_below_new_parents_comes_with_its_data_or_is_another_clients() -> Result<()> {
    let server = zookeeper::shared().await;
    let (proxy, admin) = (Proxy::start(server.address())?, Admin::connect(server.address()).await?);
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    // The first one is refused, since the parents are missing.
    let second = proxy.inject(Match::creates().under(&path).nth(2), Action::StallRequests);
    let raising = program(proxy.address(), &path, &["raise"])?.start()?;
    second.struck().await?;
    assert_eq!(admin.stat(&path).await?, None, "only its parents are there");
    // As kazoo raises it.
    admin.create(&path, b"").await?;
    let raised = admin.get(&path).await?;
    proxy.heal();
    check(&raising.ended().await?, r#"{"was-up":""}"#);
    assert_eq!(admin.get(&path).await?, raised, "kazoo's waiters have heard of nothing");
    Ok(())
}
