//! The stock recipe `counter` as its users call it, on a real server whose replies get lost.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use wok_tests::admin::{self, Admin};
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Program};
use wok_tests::proxy::{Action, Cut, Match, Proxy};
use wok_tests::{losses, zookeeper};

async fn call_at(address: &str, path: &str, arguments: &[&str]) -> Result<Ended> {
    let options = ["call", "counter", "--mount", path, "--connect", address];
    Program::wok()?.args(options).args(arguments).run().await
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    call_at(zookeeper::shared().await.address(), path, arguments).await
}

#[track_caller]
fn check(ended: &Ended, answer: &str) {
    let said = (ended.code(), ended.stdout.trim(), ended.stderr.as_str());
    assert_eq!(said, (Some(0), answer, ""), "{ended:?}");
}

#[tokio::test]
async fn a_number_is_counted_from_the_command_line() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    check(&call(&path, &["get"]).await?, "0");
    assert_eq!(admin.get(&path).await?, None, "a read creates nothing");
    check(&call(&path, &["add", "by=5"]).await?, "5");
    check(&call(&path, &["add", "by=-7"]).await?, "-2");
    check(&call(&path, &["compare-and-set", "expected=-2", "value=40"]).await?, "\"set\"");
    let differs = call(&path, &["compare-and-set", "expected=1", "value=0", "--output", "json"]);
    check(&differs.await?, "{\"differs\":40}");
    check(&call(&path, &["get"]).await?, "40");
    let (data, stat) = admin.get(&path).await?.context("the counter")?;
    assert_eq!((data, stat.ephemeral_owner), (40_i64.to_be_bytes().to_vec(), 0));
    assert_eq!(admin.children(&path).await?, Vec::<String>::new(), "markers go with their makers");
    Ok(())
}

#[tokio::test]
async fn a_sum_that_does_not_fit_is_refused_and_changes_nothing() -> Result<()> {
    let path = zookeeper::unique_path();
    let most = i64::MAX.to_string();
    let set = call(&path, &["compare-and-set", "expected=0", &format!("value={most}")]).await?;
    check(&set, "\"set\"");
    let refused = call(&path, &["add", "by=1"]).await?;
    assert_eq!((refused.code(), refused.stdout.as_str()), (Some(70), ""), "{refused:?}");
    assert!(refused.stderr.contains("more than 64 bits hold"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&most), "{}", refused.stderr);
    check(&call(&path, &["get"]).await?, &format!("\"{most}\""));
    check(&call(&path, &["add", &format!("by=-{most}")]).await?, "0");
    Ok(())
}

#[tokio::test]
async fn what_is_no_counter_is_left_alone_and_told_with_the_remedy() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    // kazoo's counter, Curator's shared count, and more than a counter has.
    for data in [&b"17"[..], &[0, 0, 0, 17], &[0; 9]] {
        let path = zookeeper::unique_path();
        admin.create(&path, data).await?;
        for arguments in
            [&["get"][..], &["add", "by=1"], &["compare-and-set", "expected=0", "value=1"]]
        {
            let ended = call(&path, arguments).await?;
            assert_eq!((ended.code(), ended.stdout.as_str()), (Some(70), ""), "{ended:?}");
            let bytes = format!("the mount's own znode has {} bytes", data.len());
            for told in [&bytes, "mount the counter elsewhere", "delete it"] {
                assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
            }
        }
        let (there, stat) = admin.get(&path).await?.context("the znode")?;
        assert_eq!((there.as_slice(), stat.version), (data, 0));
    }
    // One that was made for something to come, as by `zkCli.sh create`.
    let path = zookeeper::unique_path();
    admin.create(&path, b"").await?;
    check(&call(&path, &["add", "by=3"]).await?, "3");
    Ok(())
}

/// Curator and kazoo write again on a lost connection, and add twice.
#[tokio::test]
async fn an_addition_counts_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let played = losses::each(&losses::EVERY, async |loss| {
        let path = zookeeper::unique_path();
        admin.create(&path, &40_i64.to_be_bytes()).await?;
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        let ended = call_at(proxy.address(), &path, &["add", "by=2"]).await?;
        assert_eq!((ended.code(), ended.stdout.trim()), (Some(0), "42"), "{ended:?}");
        let (data, stat) = admin.get(&path).await?.context("the counter")?;
        assert_eq!((data, stat.version), (42_i64.to_be_bytes().to_vec(), 1), "{loss}");
        assert_eq!(admin.children(&path).await?, Vec::<String>::new(), "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    // The read, the write, the look at the marker, and its deletion.
    assert!(played >= 3 * 4, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn an_addition_costs_a_read_and_a_multi() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    admin.create(&path, b"").await?;
    let proxy = Proxy::start(server.address())?;
    check(&call_at(proxy.address(), &path, &["add", "by=1"]).await?, "1");
    let asked = proxy.requests(&Match::any().under(&path));
    let asked: Vec<String> = asked.iter().map(|seen| format!("{:?}", seen.opcode)).collect();
    // The look at the new marker goes behind the multi; what follows is the end of its participant.
    assert_eq!(asked[..3], ["GetData", "Multi", "Exists"], "{asked:?}");
    assert_eq!(asked.last().map(String::as_str), Some("Delete"), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn an_add_whose_session_ends_is_told_as_one_that_may_have_been_made() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (path, proxy) = (zookeeper::unique_path(), Proxy::start(server.address())?);
    check(&call(&path, &["add", "by=1"]).await?, "1");
    proxy.inject(Match::opcode(Opcode::Multi).under(&path), Action::StallReplies);
    let options = ["call", "counter", "--mount", &path, "--connect", proxy.address()];
    let add = ["--session-timeout", "4s", "add", "by=1"];
    let adding = Program::wok()?.args(options).args(add).start()?;
    eventually("the counter to have grown", async || {
        let (data, _) = admin.get(&path).await?.context("the counter")?;
        Ok((data == 2_i64.to_be_bytes()).then_some(()))
    })
    .await?;
    // The host must not be back before the session is over: it would look what became of the write.
    proxy.refuse();
    proxy.cut_all(Cut::Reset);
    for session in proxy.sessions() {
        // One that asked for the servers' tick may be over.
        admin::expire(server.address(), &session).await.ok();
    }
    proxy.welcome();
    let ended = adding.ended().await?;
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(76), ""), "{ended:?}");
    assert!(ended.stderr.contains("may have been written, so look"), "{}", ended.stderr);
    Ok(())
}
