//! `barrier` beside Curator's `DistributedBarrier` and kazoo's `Barrier`.

use anyhow::{Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::peers::Peer;
use wok_tests::process::{Program, Running};
use wok_tests::zookeeper;

async fn program(path: &str, operation: &str) -> Result<Program> {
    let server = zookeeper::shared().await;
    let options = ["call", "barrier", "--mount", path, "--connect", server.address()];
    Ok(Program::wok()?.args(options).args(["--output", "json", operation]))
}

/// What wok answers to a call.
async fn wok(path: &str, operation: &str) -> Result<String> {
    let ended = program(path, operation).await?.run().await?;
    ensure!(ended.code() == Some(0), "{operation}: {ended:?}");
    Ok(ended.stdout.trim().to_owned())
}

async fn passes(waiter: Running) -> Result<()> {
    let ended = waiter.ended().await?;
    ensure!(ended.code() == Some(0), "{ended:?}");
    Ok(())
}

/// Waits until so many sessions watch the barrier.
async fn waiting(path: &str, count: usize) -> Result<()> {
    eventually("those who wait at the barrier", async || {
        Ok((zookeeper::shared().await.watchers(path).await?.len() == count).then_some(()))
    })
    .await
}

/// Each of them raises a barrier, at which both wait and which the other one lowers.
async fn check(mut peer: Peer, mut other: Peer, was_up: impl Fn(&str) -> bool) -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    peer.call(&format!("barrier wait {path}")).await?;
    assert_eq!(wok(&path, "wait").await?, "null", "there is none");

    assert_eq!(wok(&path, "raise").await?, r#""raised""#);
    let raised = admin.stat(&path).await?;
    peer.call(&format!("barrier raise {path}")).await?;
    assert_eq!(admin.stat(&path).await?, raised, "a barrier that is up is left as it is");
    peer.send(&format!("barrier wait {path}"))?;
    let waiter = program(&path, "wait").await?.start()?;
    waiting(&path, 2).await?;
    assert!(!peer.has_answered() && waiter.status().is_none(), "both wait");
    other.call(&format!("barrier lower {path}")).await?;
    peer.answer().await?;
    passes(waiter).await?;

    peer.call(&format!("barrier raise {path}")).await?;
    let told = wok(&path, "raise").await?;
    assert!(was_up(&told), "{told}");
    peer.send(&format!("barrier wait {path}"))?;
    let waiter = program(&path, "wait").await?.start()?;
    waiting(&path, 2).await?;
    assert_eq!(wok(&path, "lower").await?, "null");
    peer.answer().await?;
    passes(waiter).await?;
    assert_eq!(admin.stat(&path).await?, None);
    Ok(())
}

#[tokio::test]
async fn wok_and_curator_wait_at_one_barrier_and_each_lowers_it_for_both() -> Result<()> {
    let address = zookeeper::shared().await.address();
    let (peer, other) = (Peer::curator(address).await?, Peer::curator(address).await?);
    // Curator writes an address.
    check(peer, other, |told| told.starts_with(r#"{"was-up":""#)).await
}

#[tokio::test]
async fn wok_and_kazoo_wait_at_one_barrier_and_each_lowers_it_for_both() -> Result<()> {
    let address = zookeeper::shared().await.address();
    let (peer, other) = (Peer::kazoo(address).await?, Peer::kazoo(address).await?);
    check(peer, other, |told| told == r#"{"was-up":""}"#).await
}
