//! The stock name service on a real server: instances that come, go and are killed, lost replies, what
//! it costs, and its example.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::frames::Opcode;
use wok_tests::guide::play_example;
use wok_tests::process::{Ended, OrderFile, Program, Running, Signal};
use wok_tests::scene::Scene;
use wok_tests::{losses, zookeeper};

/// `wok hold` of an instance of `web`, with a command that says when it begins, and goes on until it is
/// asked to stop.
async fn hold(path: &str, address: &str, order: &OrderFile) -> Result<Running> {
    let server = zookeeper::shared().await;
    let begin = order.append(&format!("{address} begins"));
    let script = format!("trap 'exit 0' TERM; {begin}; while :; do sleep 0.05; done");
    Program::wok()?
        .args(["hold", "name-service", "--mount", path, "--connect", server.address()])
        .args(["--session-timeout", "4s", "register", "name=web"])
        .args([&format!("address={address}"), r#"metadata=[["zone", "b"]]"#])
        .args(["--", "sh", "-c", &script])
        .start()
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    let server = zookeeper::shared().await;
    let options = ["call", "name-service", "--mount", path, "--connect", server.address()];
    Program::wok()?.args(options).args(["--output", "json"]).args(arguments).run().await
}

fn answer(told: &Ended) -> Result<Value> {
    assert_eq!(told.code(), Some(0), "{told:?}");
    serde_json::from_str(told.stdout.trim()).with_context(|| format!("{told:?}"))
}

/// The addresses that were resolved.
fn addresses(found: &Value) -> Vec<&str> {
    let instances = found["instances"].as_array().unwrap();
    instances.iter().map(|it| it["address"].as_str().unwrap()).collect()
}

fn web() -> Value {
    json!({ "name": "web" })
}

fn at(address: &str) -> Value {
    json!({ "name": "web", "address": address, "metadata": [["zone", "b"]] })
}

#[tokio::test]
async fn instances_are_found_while_they_are_held_and_a_killed_one_goes_with_its_session()
-> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    assert_eq!(answer(&call(&path, &["list"]).await?)?, json!([]));
    let first = hold(&path, "a:80", &order).await?;
    order.wait_for("a:80 begins").await?;
    let second = hold(&path, "b:80", &order).await?;
    order.wait_for("b:80 begins").await?;
    assert_eq!(answer(&call(&path, &["list"]).await?)?, json!(["web"]));
    let found = answer(&call(&path, &["resolve", "name=web"]).await?)?;
    assert_eq!(addresses(&found), ["a:80", "b:80"], "the oldest first");
    assert_eq!(found["instances"][0]["metadata"], json!([["zone", "b"]]));

    first.signal(Signal::KILL)?;
    let after = format!("after={}", found["revision"]);
    answer(&call(&path, &["wait", "name=web", &after]).await?)?;
    let found = answer(&call(&path, &["resolve", "name=web"]).await?)?;
    assert_eq!(addresses(&found), ["b:80"]);
    second.signal(Signal::TERM)?;
    assert_eq!(second.ended().await?.code(), Some(0));
    let found = answer(&call(&path, &["resolve", "name=web"]).await?)?;
    assert_eq!(addresses(&found), Vec::<&str>::new());
    assert_eq!(answer(&call(&path, &["list"]).await?)?, json!([]));
    Ok(())
}

#[tokio::test]
async fn what_is_no_instance_is_ignored_and_what_would_be_none_is_refused() -> Result<()> {
    let scene = Scene::open("name-service").await?;
    let (who, _follower) = scene.stock.join()?;
    for (wrong, told) in [
        (json!({ "name": "a/b", "address": "x", "metadata": [] }), "a slash"),
        (json!({ "name": "web", "address": "", "metadata": [] }), "the address"),
        (json!({ "name": "web", "address": "x", "metadata": [["a=b", "c"]] }), "the key"),
        (json!({ "name": "web", "address": "x", "metadata": [["a", "b\nc"]] }), "the value"),
    ] {
        let refused = scene.value(&who, "register", wrong).await.unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
    }
    assert_eq!(scene.sent(), [], "the ensemble was asked for nothing");
    let foreign = format!("{}/web", scene.path);
    scene.admin.create(&format!("{foreign}/notes"), b"\xff").await?;
    let lasting = format!("{foreign}/00000000-0000-4000-8000-000000000000");
    scene.admin.create(&lasting, b"c:80\n").await?;
    let private = format!("{foreign}/00000000-0000-4000-8000-000000000001");
    scene.admin.create_unreadable(&private, b"c:81\n").await?;
    scene.admin.create_unreadable(&format!("{}/private", scene.path), b"").await?;
    scene.value(&who, "register", at("a:80")).await?;
    let again = scene.value(&who, "register", at("a:81")).await.unwrap_err();
    assert!(again.to_string().contains("an instance already"), "{again}");
    let found = scene.value(&who, "resolve", web()).await?;
    assert_eq!(addresses(&found), ["a:80"]);
    assert_eq!(scene.value(&who, "list", Value::Null).await?, json!(["web"]));
    Ok(())
}

#[tokio::test]
async fn one_registers_and_deregisters_once_whichever_request_or_reply_is_lost() -> Result<()> {
    let played = losses::each(&losses::EVERY, async |loss| {
        let scene = Scene::open("name-service").await?;
        let fault = loss.befall(&scene.proxy, &scene.path);
        let (who, _follower) = scene.stock.join()?;
        scene.value(&who, "register", at("a:80")).await?;
        let found = scene.value(&who, "resolve", web()).await?;
        assert_eq!(addresses(&found), ["a:80"], "{loss}");
        scene.value(&who, "deregister", Value::Null).await?;
        let left = scene.admin.children(&format!("{}/web", scene.path)).await?;
        assert_eq!(left, Vec::<String>::new(), "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    assert!(played >= 3 * 4, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn each_operation_sends_what_the_table_says() -> Result<()> {
    let scene = Scene::open("name-service").await?;
    let (who, _follower) = scene.stock.join()?;
    // The first of a name makes its directory.
    scene.value(&who, "register", at("a:80")).await?;
    scene.value(&who, "deregister", Value::Null).await?;
    scene.proxy.clear_log();
    scene.value(&who, "register", at("a:80")).await?;
    assert_eq!(scene.sent(), [Opcode::Multi, Opcode::GetData]);
    scene.proxy.clear_log();
    scene.value(&who, "resolve", web()).await?;
    let reads = [Opcode::Multi, Opcode::GetChildren2, Opcode::GetData, Opcode::Exists];
    assert_eq!(scene.sent(), reads);
    scene.proxy.clear_log();
    scene.value(&who, "list", Value::Null).await?;
    assert_eq!(scene.sent(), [Opcode::Multi, Opcode::GetChildren2, Opcode::GetChildren2]);
    scene.proxy.clear_log();
    scene.value(&who, "observe", web()).await?;
    assert_eq!(scene.sent(), [Opcode::GetData, Opcode::GetChildren2]);
    Ok(())
}

#[tokio::test]
async fn the_upstreams_do_what_their_page_says() -> Result<()> {
    play_example("upstreams", &["follow"]).await
}
