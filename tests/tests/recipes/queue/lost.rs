//! Whichever request or reply is lost, nothing is put in twice, and nothing is lost.

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::admin::Admin;
use wok_tests::proxy::Proxy;
use wok_tests::{losses, zookeeper};

use super::commands::{ONCE, call, program};

/// Calls it with the fault at each of its requests, on a queue in which `before` are. Answers how many
/// faults struck; `left` is what must be in the queue afterwards, the oldest first.
async fn strike(before: &str, arguments: &[&str], says: &str, left: &[&str]) -> Result<usize> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    losses::each(&losses::EVERY, async |loss| {
        let path = zookeeper::unique_path();
        call(&path, &["put-all", before]).await?;
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        let ended = program(proxy.address(), &path, arguments)?.run().await?;
        let what = format!("{loss}: {ended:?}");
        assert_eq!(ended.code(), Some(0), "{what}");
        assert!(ended.stdout.contains(says), "{what}");
        for directory in ["claims", "consumers", "markers"] {
            let there = admin.children(&format!("{path}/{directory}")).await.unwrap_or_default();
            assert_eq!(there, Vec::<String>::new(), "{directory}: {what}");
        }
        let there = call(&path, &["length"]).await?["items"].as_u64();
        assert_eq!(there, Some(left.len() as u64), "{what}");
        for expected in left {
            let taken = call(&path, &["--config", ONCE, "take"]).await?;
            assert_eq!(taken["data"], Value::from(*expected), "{what}");
        }
        Ok(fault.has_struck())
    })
    .await
}

/// Every client that repeats a create on `ConnectionLoss` puts the item in twice.
#[tokio::test]
async fn a_put_is_in_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let struck = strike("items=[\"a\"]", &["put", "data=b"], "null", &["a", "b"]).await?;
    // The transaction, the look at the marker, and its deletion.
    assert!(struck >= 3 * 3, "only {struck} faults struck");
    let many = ["put-all", "items=[\"b\", \"c\"]"];
    strike("items=[\"a\"]", &many, "null", &["a", "b", "c"]).await?;
    Ok(())
}

/// ZooKeeper's own queue deletes again, finds the item gone, and takes the next one.
#[tokio::test]
async fn a_take_at_most_once_loses_nothing_whichever_of_its_requests_or_replies_is_lost()
-> Result<()> {
    let take = ["--config", ONCE, "take"];
    let struck = strike("items=[\"a\", \"b\"]", &take, "\"a\"", &["b"]).await?;
    // Two lists, the read, the transaction, the look at the marker, and its deletion.
    assert!(struck >= 3 * 6, "only {struck} faults struck");
    let many = ["--config", ONCE, "take-many", "max=2"];
    strike("items=[\"a\", \"b\", \"c\"]", &many, "\"b\"", &["c"]).await?;
    Ok(())
}

/// Given back when it is answered, as `wok call` holds nothing.
#[tokio::test]
async fn a_take_at_least_once_claims_once_whichever_of_its_requests_or_replies_is_lost()
-> Result<()> {
    let before = "items=[\"a\", \"b\"]";
    let struck = strike(before, &["take"], "\"attempt\":1", &["a", "b"]).await?;
    // Two lists, the read, the transaction, the read of the claim, and its deletion.
    assert!(struck >= 3 * 6, "only {struck} faults struck");
    let path = zookeeper::unique_path();
    call(&path, &["put", "data=a"]).await?;
    call(&path, &["take"]).await?;
    let again = call(&path, &["take"]).await?;
    assert_eq!(again.get("attempt").and_then(Value::as_u64).context("a number")?, 2);
    Ok(())
}
