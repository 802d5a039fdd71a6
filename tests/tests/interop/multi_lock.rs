//! `multi-lock` beside Curator's `InterProcessMultiLock`, and beside the locks of Curator and kazoo.

use anyhow::{Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::peers::Peer;
use wok_tests::process::{Program, Running};
use wok_tests::zookeeper;

use crate::line::litter;

/// `wok hold` of the locks `a` and `b`, until a line comes in.
async fn wok(path: &str) -> Result<Running> {
    wok_as("curator", path).await
}

/// The same, in that format.
async fn wok_as(format: &str, path: &str) -> Result<Running> {
    Program::wok()?
        .args(["hold", "multi-lock", "--mount", path, "--session-timeout", "4s"])
        .args(["--connect", zookeeper::shared().await.address()])
        .args(["--config", &format!("format={format}")])
        .args(["acquire", r#"names=["b", "a"]"#, "--", "sh", "-c", "read line"])
        .start()
}

async fn give_back(mut held: Running) -> Result<()> {
    held.write("\n")?;
    let ended = held.ended().await?;
    ensure!(ended.code() == Some(0), "{ended:?}");
    Ok(())
}

fn is_holding(running: &Running) -> bool {
    running.lines().iter().any(|line| line.text.contains("holding"))
}

async fn check_both_ways(path: &str) -> Result<()> {
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    let first = wok(path).await?;
    first.wait_for_text("holding").await?;
    let none = curator.call(&format!("multi-lock try 500 {path}/a {path}/b")).await?;
    assert_eq!(none, "none", "wok holds both");
    curator.send(&format!("multi-lock acquire {path}/a {path}/b"))?;
    give_back(first).await?;
    curator.answer().await?;
    let second = wok(path).await?;
    second.wait_for_text(&format!("standing in line as {path}/a/")).await?;
    assert!(!is_holding(&second));
    curator.call("multi-lock release").await?;
    second.wait_for_text("holding").await?;
    give_back(second).await
}

#[tokio::test]
async fn both_locks_go_from_wok_to_curator_and_back() -> Result<()> {
    check_both_ways(&zookeeper::unique_path()).await
}

/// A peer has one of the locks.
async fn check_waits(format: &str, path: &str) -> Result<()> {
    let address = zookeeper::shared().await.address();
    let mut peer = match format {
        "curator" => Peer::curator(address).await?,
        _ => Peer::kazoo(address).await?,
    };
    peer.call(&format!("lock acquire {path}/b {format}")).await?;
    let next = wok_as(format, path).await?;
    next.wait_for_text(&format!("standing in line as {path}/b/")).await?;
    assert!(!is_holding(&next), "it is the first for `a`, and says that it holds something");
    peer.call("lock release").await?;
    next.wait_for_text("holding").await?;
    give_back(next).await
}

#[tokio::test]
async fn a_lock_of_a_peers_on_one_of_the_locks_is_waited_for() -> Result<()> {
    for format in ["curator", "kazoo"] {
        check_waits(format, &zookeeper::unique_path()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn children_that_are_no_contenders_keep_nobody_from_all_of_the_locks() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let littered = async |infix| {
        let path = zookeeper::unique_path();
        for lock in ["a", "b"] {
            litter(&admin, &format!("{path}/{lock}"), &[infix]).await?;
        }
        anyhow::Ok(path)
    };
    check_both_ways(&littered("-lock-").await?).await?;
    for (format, infix) in [("curator", "-lock-"), ("kazoo", "__lock__")] {
        check_waits(format, &littered(infix).await?).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_locks_of_a_curator_that_dies_go_to_wok() -> Result<()> {
    let path = zookeeper::unique_path();
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    curator.call(&format!("multi-lock acquire {path}/a {path}/b")).await?;
    let next = wok(&path).await?;
    next.wait_for_text(&format!("standing in line as {path}/a/")).await?;
    curator.kill();
    next.wait_for_text("holding").await?;
    give_back(next).await
}
