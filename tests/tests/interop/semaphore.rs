//! `semaphore` beside Curator's `InterProcessSemaphoreV2`.

use anyhow::{Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::peers::Peer;
use wok_tests::process::{Program, Running};
use wok_tests::zookeeper;

/// `wok hold` of so many of two permits, until a line comes in.
async fn wok(path: &str, wanted: u32) -> Result<Running> {
    Program::wok()?
        .args(["hold", "semaphore", "--mount", path, "--session-timeout", "4s"])
        .args(["--connect", zookeeper::shared().await.address(), "--config", "permits=2"])
        .args(["acquire", &format!("permits={wanted}"), "--", "sh", "-c", "read line"])
        .start()
}

async fn give_back(mut held: Running) -> Result<()> {
    held.write("\n")?;
    let ended = held.ended().await?;
    ensure!(ended.code() == Some(0), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn permits_go_from_wok_to_curator_and_back() -> Result<()> {
    let path = zookeeper::unique_path();
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    let first = wok(&path, 2).await?;
    first.wait_for_text("holding").await?;
    let none = curator.call(&format!("semaphore try {path} 2 1 500")).await?;
    assert_eq!(none, "none", "wok holds both");
    curator.send(&format!("semaphore acquire {path} 2 1"))?;
    give_back(first).await?;
    curator.answer().await?;
    let second = wok(&path, 2).await?;
    second.wait_for_text("standing in line").await?;
    assert!(!second.lines().iter().any(|line| line.text.contains("holding")));
    curator.call("semaphore release").await?;
    second.wait_for_text("holding").await?;
    give_back(second).await
}

#[tokio::test]
async fn the_permits_of_a_curator_that_dies_go_to_wok() -> Result<()> {
    let path = zookeeper::unique_path();
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    curator.call(&format!("semaphore acquire {path} 2 2")).await?;
    let next = wok(&path, 1).await?;
    next.wait_for_text("standing in line").await?;
    curator.kill();
    next.wait_for_text("holding").await?;
    give_back(next).await
}

#[tokio::test]
async fn a_child_of_somebody_else_is_a_lease_for_both_and_a_place_for_none() -> Result<()> {
    let path = zookeeper::unique_path();
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    let first = wok(&path, 1).await?;
    first.wait_for_text("holding").await?;
    for part in ["locks", "leases"] {
        admin.create(&format!("{path}/{part}/a note"), b"").await?;
    }
    let none = curator.call(&format!("semaphore try {path} 2 1 500")).await?;
    assert_eq!(none, "none", "one is held, and the note counts");
    let second = wok(&path, 1).await?;
    second.wait_for_text("standing in line").await?;
    assert!(!second.lines().iter().any(|line| line.text.contains("holding")));
    admin.delete(&format!("{path}/leases/a note")).await?;
    second.wait_for_text("holding").await?;
    give_back(first).await?;
    curator.call(&format!("semaphore acquire {path} 2 1")).await?;
    curator.call("semaphore release").await?;
    give_back(second).await
}
