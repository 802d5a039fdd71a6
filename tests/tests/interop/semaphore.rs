//! `semaphore` beside Curator's `InterProcessSemaphoreV2`.

use anyhow::{Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::peers::Peer;
use wok_tests::process::{Program, Running};
use wok_tests::zookeeper;

/// `wok hold` of so many of two permits, until a line comes in.
async fn wok(path: &str, wanted: u32) -> Result<Running> {
    hold(path, &["--config", "permits=2"], wanted).await
}

/// The same of as many permits as are stored.
async fn wok_by_the_stored_number(path: &str, wanted: u32) -> Result<Running> {
    hold(path, &[], wanted).await
}

async fn hold(path: &str, settings: &[&str], wanted: u32) -> Result<Running> {
    Program::wok()?
        .args(["hold", "semaphore", "--mount", path, "--session-timeout", "4s"])
        .args(["--connect", zookeeper::shared().await.address()])
        .args(settings)
        .args(["acquire", &format!("permits={wanted}"), "--", "sh", "-c", "read line"])
        .start()
}

async fn resize(path: &str, permits: u32) -> Result<()> {
    let ended = Program::wok()?
        .args(["call", "semaphore", "--mount", path])
        .args(["--connect", zookeeper::shared().await.address()])
        .args(["resize", &format!("permits={permits}")])
        .run()
        .await?;
    ensure!(ended.code() == Some(0), "{ended:?}");
    Ok(())
}

async fn curator() -> Result<Peer> {
    Peer::curator(zookeeper::shared().await.address()).await
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
    let mut curator = curator().await?;
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
    let mut curator = curator().await?;
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
    let mut curator = curator().await?;
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

#[tokio::test]
async fn wok_and_a_shared_count_follow_one_number_whichever_of_them_changes_it() -> Result<()> {
    let path = zookeeper::unique_path();
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let (mut first, mut count, mut last) = (curator().await?, curator().await?, curator().await?);
    resize(&path, 2).await?;
    // By its seed there would be one.
    first.call(&format!("semaphore acquire-counted {path} 2")).await?;
    assert_eq!(count.call(&format!("shared-count open {path}/leases")).await?, "2");
    let next = wok_by_the_stored_number(&path, 1).await?;
    next.wait_for_text("standing in line").await?;
    assert!(!next.lines().iter().any(|line| line.text.contains("holding")));
    count.call("shared-count set 3").await?;
    next.wait_for_text("holding").await?;

    last.send(&format!("semaphore acquire-counted {path} 1"))?;
    // Curator's first in the queue makes its lease, and then waits until there is a permit for it.
    let leases = format!("{path}/leases");
    admin.wait_children(&leases, "a lease that waits", |leases| leases.len() == 4).await?;
    assert!(!last.has_answered(), "four of three");
    resize(&path, 4).await?;
    last.answer().await?;
    give_back(next).await?;
    first.call("semaphore release").await?;
    last.call("semaphore release").await?;
    Ok(())
}

#[tokio::test]
async fn a_grant_of_wok_calls_the_listeners_of_a_shared_count_and_is_a_newer_version() -> Result<()>
{
    let path = zookeeper::unique_path();
    let open = format!("shared-count open {path}/leases");
    let mut count = curator().await?;
    resize(&path, 2).await?;
    assert_eq!(count.call(&open).await?, "2");
    let held = wok_by_the_stored_number(&path, 1).await?;
    held.wait_for_text("holding").await?;
    assert_eq!(count.call("shared-count await").await?, "2", "the same number, written again");
    assert_eq!(count.call("shared-count try-set 3").await?, "refused");
    assert_eq!(count.call(&open).await?, "2", "what was refused was not written");
    assert_eq!(count.call("shared-count try-set 3").await?, "set");
    give_back(held).await
}
