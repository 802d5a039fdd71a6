//! The stock priority queue as its users have it, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::guide::play_example;
use wok_tests::process::Program;
use wok_tests::proxy::Proxy;
use wok_tests::scene::Scene;
use wok_tests::{losses, zookeeper};

const ONCE: &str = "delivery=at-most-once";

fn program(address: &str, path: &str, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "priority-queue", "--mount", path, "--connect", address];
    Ok(Program::wok()?.args(options).args(["--output", "json"]).args(arguments))
}

async fn call(path: &str, arguments: &[&str]) -> Result<Value> {
    let ended = program(zookeeper::shared().await.address(), path, arguments)?.run().await?;
    assert_eq!(ended.code(), Some(0), "{arguments:?}: {ended:?}");
    serde_json::from_str(ended.stdout.trim()).with_context(|| format!("{ended:?}"))
}

async fn take(path: &str) -> Result<(String, i64)> {
    let taken = call(path, &["--config", ONCE, "take"]).await?;
    let data = taken["data"].as_str().context("text")?.to_owned();
    Ok((data, taken["priority"].as_i64().context("a number")?))
}

#[tokio::test]
async fn the_most_urgent_item_is_taken_first_and_of_one_priority_the_oldest() -> Result<()> {
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    for (data, priority) in
        [("a", 5), ("b", 10), ("c", -1), ("d", 5), ("e", i32::MIN), ("f", i32::MAX)]
    {
        call(&path, &["put", &format!("data={data}"), &format!("priority={priority}")]).await?;
    }
    call(&path, &["put", "data=usual"]).await?;
    call(&path, &["put-all", "items=[\"g\", \"h\"]", "priority=5"]).await?;
    let first = call(&path, &["peek"]).await?;
    assert_eq!((&first["data"], &first["priority"]), (&json!("e"), &json!(i32::MIN)));
    for (data, priority) in [("e", i64::from(i32::MIN)), ("c", -1), ("usual", 0), ("a", 5)] {
        assert_eq!(take(&path).await?, (data.to_owned(), priority));
    }
    let many = call(&path, &["--config", ONCE, "take-many", "max=3"]).await?;
    let data: Vec<_> = many.as_array().unwrap().iter().map(|it| it["data"].clone()).collect();
    assert_eq!(data, ["d", "g", "h"]);
    assert_eq!(take(&path).await?, ("b".to_owned(), 10));
    assert_eq!(take(&path).await?, ("f".to_owned(), i64::from(i32::MAX)));
    Ok(())
}

/// kazoo's Queue keeps its list, with priorities.
#[tokio::test]
async fn what_becomes_urgent_between_two_takes_is_taken_next() -> Result<()> {
    let once = json!({ "delivery": "at-most-once" });
    let scene = Scene::open("priority-queue").await?.configured(once);
    let (participant, _follower) = scene.stock.join()?;
    let put = json!({ "items": ["a", "b", "c"], "priority": 3 });
    scene.value(&participant, "put-all", put).await?;
    let first = scene.value(&participant, "take", Value::Null).await?;
    assert_eq!(first["data"], "a");
    call(&scene.path, &["put", "data=urgent", "priority=-3"]).await?;
    scene.proxy.clear_log();
    let next = scene.value(&participant, "take", Value::Null).await?;
    assert_eq!((&next["data"], &next["priority"]), (&json!("urgent"), &json!(-3)));
    let list = [Opcode::Sync, Opcode::GetChildren2, Opcode::GetChildren2];
    assert_eq!(scene.sent(), [&list[..], &[Opcode::GetData, Opcode::Multi]].concat());
    Ok(())
}

#[tokio::test]
async fn a_take_loses_nothing_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let struck = losses::each(&losses::EITHER, async |loss| {
        let path = zookeeper::unique_path();
        call(&path, &["put", "data=late", "priority=1"]).await?;
        call(&path, &["put", "data=soon"]).await?;
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        let ended = program(proxy.address(), &path, &["--config", ONCE, "take"])?.run().await?;
        let what = format!("{loss}: {ended:?}");
        assert!(ended.code() == Some(0) && ended.stdout.contains("\"soon\""), "{what}");
        let markers = admin.children(&format!("{path}/markers")).await?;
        assert_eq!(markers, Vec::<String>::new(), "{what}");
        assert_eq!(take(&path).await?, ("late".to_owned(), 1), "{what}");
        Ok(fault.has_struck())
    })
    .await?;
    // The sync, two lists, the read, the transaction, the look at the marker, and its deletion.
    assert!(struck >= 2 * 7, "only {struck} faults struck");
    Ok(())
}

#[tokio::test]
async fn the_example_of_the_urgent_orders_does_what_it_says() -> Result<()> {
    play_example("urgent-orders", &["order", "ship", "pack"]).await
}
