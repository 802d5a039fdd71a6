//! `wok hold` and `wok call`, and the example.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::zookeeper;

/// `wok hold` of so many permits, with a shell script as its command.
async fn hold(path: &str, config: &str, wanted: u32, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    Program::wok()?
        .args(["hold", "semaphore", "--mount", path, "--connect", server.address()])
        .args(["--session-timeout", "4s", "--config", config])
        .args(["acquire", &format!("permits={wanted}"), "--", "sh", "-c", script])
        .start()
}

/// A command that says when it begins, and goes on until it is asked to stop.
fn until_term(order: &OrderFile, name: &str) -> String {
    let begin = order.append(&format!("{name} begins"));
    format!("trap 'exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

async fn stop(held: Running) -> Result<()> {
    held.signal(Signal::TERM)?;
    assert_eq!(held.ended().await?.code(), Some(0));
    Ok(())
}

async fn call(path: &str, call: &[&str]) -> Result<Value> {
    let server = zookeeper::shared().await;
    let options = ["call", "semaphore", "--mount", path, "--connect", server.address()];
    let told = Program::wok()?.args(options).args(["--output", "json"]).args(call).run().await?;
    assert_eq!(told.code(), Some(0), "{told:?}");
    serde_json::from_str(told.stdout.trim()).with_context(|| format!("{told:?}"))
}

#[tokio::test]
async fn several_permits_are_taken_all_or_none_in_turn_and_nothing_is_left_behind() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, "permits=3", 2, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let second = hold(&path, "permits=3", 2, &until_term(&order, "second")).await?;
    second.wait_for_text("standing in line").await?;
    let third = hold(&path, "permits=3", 1, &until_term(&order, "third")).await?;
    third.wait_for_text("standing in line").await?;
    assert_eq!(call(&path, &["available"]).await?, json!({ "available": 1, "permits": 3 }));
    assert_eq!(order.labels()?, ["first begins"], "nobody takes a part, and nobody overtakes");
    stop(first).await?;
    order.wait_for("third begins").await?;
    assert_eq!(call(&path, &["available"]).await?, json!({ "available": 0, "permits": 3 }));
    stop(second).await?;
    stop(third).await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    for part in ["locks", "leases"] {
        let left = admin.children(&format!("{path}/{part}")).await?;
        assert_eq!(left, Vec::<String>::new(), "{part}");
    }
    Ok(())
}

#[tokio::test]
async fn more_permits_than_before_go_to_who_waits() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, "permits=1", 1, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    // Its settings are those that are stored: they are compared before anything changes.
    let second = hold(&path, "permits=1", 1, &until_term(&order, "second")).await?;
    second.wait_for_text("standing in line").await?;
    zookeeper_watches(&format!("{path}/leases")).await?;
    call(&path, &["resize", "permits=2"]).await?;
    order.wait_for("second begins").await?;
    stop(second).await?;
    stop(first).await
}

/// Waits until somebody watches that znode, by the server's own word.
async fn zookeeper_watches(path: &str) -> Result<()> {
    wok_tests::patience::eventually("a watch", async || {
        let watchers = zookeeper::shared().await.watchers(path).await?;
        Ok((!watchers.is_empty()).then_some(()))
    })
    .await
}

#[tokio::test]
async fn the_permits_of_a_holder_that_is_killed_come_back() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, "permits=2", 2, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let second = hold(&path, "permits=2", 2, &until_term(&order, "second")).await?;
    second.wait_for_text("standing in line").await?;
    first.signal(Signal::KILL)?;
    order.wait_for("second begins").await?;
    stop(second).await
}

#[tokio::test]
async fn the_example_of_the_crawlers_does_what_it_says() -> Result<()> {
    play_example("polite-crawlers", &["crawl.sh", "fetch.sh"]).await
}
