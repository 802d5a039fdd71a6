//! What it costs, counted by a proxy, and who is woken.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wok::participant::{Call, CallError, Participant};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::proxy::{Match, Proxy};
use wok_tests::scene::Scene;
use wok_tests::zookeeper;

use super::commands::{ONCE, call, program};

async fn open(config: Value) -> Result<Scene> {
    Ok(Scene::open("queue").await?.configured(config))
}

/// The operation's answer, and what was sent for it.
async fn counted(
    queue: &Scene,
    participant: &Participant,
    operation: &str,
    arguments: Value,
) -> Result<(Value, Vec<Opcode>)> {
    queue.proxy.clear_log();
    let answer = queue.value(participant, operation, arguments).await?;
    Ok((answer, queue.sent()))
}

#[tokio::test]
async fn a_put_is_one_request_and_so_is_one_of_many() -> Result<()> {
    let queue = open(json!({})).await?;
    let (participant, _follower) = queue.stock.join()?;
    // The first one makes the directories and the marker.
    counted(&queue, &participant, "put", json!({ "data": "first" })).await?;
    let (_, sent) = counted(&queue, &participant, "put", json!({ "data": "second" })).await?;
    assert_eq!(sent, [Opcode::Multi]);
    let items: Vec<String> = (0..64).map(|number| number.to_string()).collect();
    let (_, sent) = counted(&queue, &participant, "put-all", json!({ "items": items })).await?;
    assert_eq!(sent, [Opcode::Multi]);
    Ok(())
}

#[tokio::test]
async fn a_take_at_most_once_is_a_read_and_a_transaction() -> Result<()> {
    let queue = open(json!({ "delivery": "at-most-once" })).await?;
    let (participant, _follower) = queue.stock.join()?;
    counted(&queue, &participant, "put-all", json!({ "items": ["a", "b", "c", "d"] })).await?;
    let (taken, sent) = counted(&queue, &participant, "take", json!({})).await?;
    assert_eq!(taken["data"], "a");
    assert_eq!(sent, [Opcode::GetChildren2, Opcode::GetChildren2, Opcode::GetData, Opcode::Multi]);
    let (taken, sent) = counted(&queue, &participant, "take", json!({})).await?;
    assert_eq!((&taken["data"], sent), (&json!("b"), vec![Opcode::GetData, Opcode::Multi]));
    let (taken, sent) = counted(&queue, &participant, "take-many", json!({})).await?;
    assert_eq!(taken.as_array().map(Vec::len), Some(2));
    let looks = [Opcode::Exists, Opcode::Exists, Opcode::GetData, Opcode::GetData, Opcode::Multi];
    assert_eq!(sent, looks);
    Ok(())
}

#[tokio::test]
async fn a_take_at_least_once_and_its_ack_are_four_requests() -> Result<()> {
    let queue = open(json!({})).await?;
    let (participant, _follower) = queue.stock.join()?;
    counted(&queue, &participant, "put-all", json!({ "items": ["a", "b", "c"] })).await?;
    counted(&queue, &participant, "take", json!({})).await?;
    // Asked again, it answers the same.
    let (again, sent) = counted(&queue, &participant, "take", json!({})).await?;
    assert_eq!(
        (&again["data"], &again["attempt"], sent),
        (&json!("a"), &json!(1), vec![Opcode::GetData])
    );
    counted(&queue, &participant, "ack", json!({})).await?;
    let (taken, sent) = counted(&queue, &participant, "take", json!({})).await?;
    // The second read watches the claim, behind the transaction.
    let expected = vec![Opcode::GetData, Opcode::Multi, Opcode::GetData];
    assert_eq!((&taken["data"], sent), (&json!("b"), expected));
    let (_, sent) = counted(&queue, &participant, "reject", json!({})).await?;
    assert_eq!(sent, [Opcode::Multi]);
    // What came back is the oldest again, also for the participant that has listed the queue without it.
    let (taken, _) = counted(&queue, &participant, "take-many", json!({})).await?;
    let taken = taken.as_array().context("a list")?;
    assert_eq!(taken.iter().map(|item| &item["data"]).collect::<Vec<_>>(), ["b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_put_wakes_one_of_those_who_wait() -> Result<()> {
    const WAITING: usize = 4;
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (proxy, path) = (Proxy::start(server.address())?, zookeeper::unique_path());
    call(&path, &["put", "data=first"]).await?;
    call(&path, &["--config", ONCE, "take"]).await?;
    let items = format!("{path}/items");
    let lists = || proxy.requests(&Match::opcode(Opcode::GetChildren2).under(&items)).len();
    let listed = async |count: usize| {
        let what = format!("{count} lists of the items");
        eventually(&what, async || Ok((lists() >= count).then_some(()))).await
    };
    let mut waiting = Vec::new();
    for number in 1..=WAITING {
        waiting.push(program(proxy.address(), &path, &["--config", ONCE, "take"])?.start()?);
        let is_there = |line: &[String]| line.len() == number;
        admin.wait_children(&format!("{path}/consumers"), "a place in line", is_there).await?;
        // Each looks whether there is an item, and the first lists once more, with a watch.
        listed(number + 1).await?;
    }
    proxy.clear_log();
    call(&path, &["put", "data=a"]).await?;
    let first = waiting.remove(0).ended().await?;
    assert!(first.stdout.contains("\"a\""), "first come, first served: {first:?}");
    // The one that was woken, and the next one, which is the first from then on.
    listed(2).await?;
    call(&path, &["put-all", "items=[\"b\", \"c\", \"d\"]"]).await?;
    for waiting in waiting {
        assert_eq!(waiting.ended().await?.code(), Some(0));
    }
    assert!(lists() <= 4 * WAITING, "{} lists", lists());
    assert_eq!(admin.children(&format!("{path}/consumers")).await?, Vec::<String>::new());
    Ok(())
}

/// As kazoo's `LockingQueue` does with each `get` that finds nothing in time (kazoo#175).
#[tokio::test]
async fn waits_that_are_given_up_leave_no_watch_however_many_there_are() -> Result<()> {
    // A participant has 64 watches at most.
    const WAITS: usize = 70;
    let queue = open(json!({ "delivery": "at-most-once" })).await?;
    let (participant, _follower) = queue.stock.join()?;
    counted(&queue, &participant, "put", json!({ "data": "first" })).await?;
    counted(&queue, &participant, "take", json!({})).await?;
    let lists = Match::opcode(Opcode::GetChildren2).under(&format!("{}/items", queue.path));
    for _ in 0..WAITS {
        queue.proxy.clear_log();
        let withdrawn = CancellationToken::new();
        let arguments = queue.stock.arguments("take", &json!({}))?;
        let call = Call { arguments, deadline: None, withdrawn: Some(withdrawn.clone()) };
        let give_up = async {
            // One that looks whether there is an item, and one with a watch.
            let waits = async || Ok((queue.proxy.requests(&lists).len() >= 2).then_some(()));
            eventually("a wait", waits).await?;
            withdrawn.cancel();
            anyhow::Ok(())
        };
        let (taken, given_up) = tokio::join!(participant.call(call), give_up);
        assert!(matches!(taken, Err(CallError::Cancelled)), "{taken:?}");
        given_up?;
    }
    counted(&queue, &participant, "put", json!({ "data": "last" })).await?;
    let (taken, _) = counted(&queue, &participant, "take", json!({})).await?;
    assert_eq!(taken["data"], "last");
    Ok(())
}
