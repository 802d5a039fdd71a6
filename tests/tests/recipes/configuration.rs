//! The stock recipe `configuration` as its users call it, on a real server whose replies get lost.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Program, Running, Signal};
use wok_tests::proxy::{Match, Proxy};
use wok_tests::{losses, zookeeper};

fn program(address: &str, path: &str, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "configuration", "--mount", path, "--connect", address];
    Ok(Program::wok()?.args(options).args(["--output", "json"]).args(arguments))
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    program(zookeeper::shared().await.address(), path, arguments)?.run().await
}

/// What a call answers, which has to succeed.
async fn answer(path: &str, arguments: &[&str]) -> Result<Value> {
    answer_of(&call(path, arguments).await?)
}

#[track_caller]
fn answer_of(ended: &Ended) -> Result<Value> {
    assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    serde_json::from_str(&ended.stdout).with_context(|| ended.stdout.clone())
}

#[track_caller]
fn check_refused(ended: &Ended, error: &str) {
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(70), ""), "{ended:?}");
    assert!(ended.stderr.contains(error), "{error:?} is not in {}", ended.stderr);
}

/// How many sessions watch the znode.
async fn watchers(path: &str) -> Result<usize> {
    Ok(zookeeper::shared().await.watchers(path).await?.len())
}

/// Starts to wait for what comes after the revision, and waits until the server has its watch.
async fn waiter(path: &str, after: &str) -> Result<Running> {
    let before = watchers(path).await?;
    let after = format!("after={after}");
    let waiter = program(zookeeper::shared().await.address(), path, &["wait", &after])?.start()?;
    eventually("a watch of the root", async || {
        Ok((watchers(path).await? == before + 1).then_some(()))
    })
    .await?;
    assert_eq!(waiter.status(), None, "it waits");
    Ok(waiter)
}

#[tokio::test]
async fn a_configuration_is_read_and_written_from_the_command_line() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    assert_eq!(answer(&path, &["get", "key=limit"]).await?, Value::Null);
    let nothing = json!({ "revision": 0, "entries": [] });
    assert_eq!(answer(&path, &["snapshot"]).await?, nothing);
    assert_eq!(admin.stat(&path).await?, None, "a read creates nothing");

    let first = answer(&path, &["set", "key=limit", "data=low", "expected=absent"]).await?;
    assert_eq!(first["version"], 0);
    let (data, root) = admin.get(&path).await?.context("the root")?;
    assert_eq!(data, b"limit", "the root says what was changed last");
    assert_eq!(first["revision"], root.mzxid, "the revision is the root's mzxid");
    let second = answer(&path, &["set", "key=mode", "data=\"7\"", "expected=any"]).await?;
    assert_eq!(answer(&path, &["get", "key=mode"]).await?, json!({ "data": "7", "version": 0 }));
    let entries = json!([
        { "key": "limit", "data": "low", "version": 0 },
        { "key": "mode", "data": "7", "version": 0 },
    ]);
    let all = json!({ "revision": second["revision"], "entries": entries });
    assert_eq!(answer(&path, &["snapshot"]).await?, all);

    let removed = answer(&path, &["remove", "key=mode", r#"expected={"version":0}"#]).await?;
    assert!(removed.as_i64() > second["revision"].as_i64(), "{removed} {second}");
    assert_eq!(admin.children(&path).await?, ["limit"], "markers go with their makers");
    Ok(())
}

#[tokio::test]
async fn of_two_operators_who_have_read_the_same_one_is_refused() -> Result<()> {
    let path = zookeeper::unique_path();
    answer(&path, &["set", "key=limit", "data=low", "expected=absent"]).await?;
    let expected = r#"expected={"version":0}"#;
    let one = program(
        zookeeper::shared().await.address(),
        &path,
        &["set", "key=limit", "data=one's", expected],
    )?
    .start()?;
    let other = call(&path, &["set", "key=limit", "data=other's", expected]).await?;
    let ended = [one.ended().await?, other];
    let won: Vec<bool> = ended.iter().map(|ended| ended.code() == Some(0)).collect();
    assert!(won == [true, false] || won == [false, true], "{ended:?}");
    let (winner, loser) = if won[0] { (0, 1) } else { (1, 0) };
    check_refused(&ended[loser], "bad-version");
    assert_eq!(answer_of(&ended[winner])?["version"], 1);
    let stands = answer(&path, &["get", "key=limit"]).await?;
    let won = ["one's", "other's"][winner];
    assert_eq!(stands, json!({ "data": won, "version": 1 }));
    Ok(())
}

#[tokio::test]
async fn what_is_not_as_expected_is_refused_and_changes_nothing() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    let set = answer(&path, &["set", "key=a", "data=one", "expected=any"]).await?;
    let version = |version: i32| format!(r#"expected={{"version":{version}}}"#);
    for (arguments, error) in [
        (["set", "key=a", "data=x", "expected=absent"], "node-exists"),
        (["set", "key=a", "data=x", &version(1)], "bad-version"),
        (["set", "key=b", "data=x", &version(0)], "no-node"),
        // On the wire this is any version.
        (["set", "key=a", "data=x", &version(-1)], "expect `any`"),
        (["set", "key=a/b", "data=x", "expected=any"], "a slash"),
        (["set", "key=.a", "data=x", "expected=any"], "begins with a dot"),
        (["set", "key=", "data=x", "expected=any"], "1 to 128 bytes"),
    ] {
        check_refused(&call(&path, &arguments).await?, error);
    }
    for (arguments, error) in [
        (["remove", "key=a", &version(7)], "bad-version"),
        (["remove", "key=b", "expected=any"], "no-node"),
        (["remove", "key=a", "expected=absent"], "absent cannot be removed"),
        (["remove", "key=a", &version(-1)], "expect `any`"),
    ] {
        check_refused(&call(&path, &arguments).await?, error);
    }
    let (_, root) = admin.get(&path).await?.context("the root")?;
    assert_eq!(set["revision"], root.mzxid, "the root is as it was");
    assert_eq!(answer(&path, &["get", "key=a"]).await?, json!({ "data": "one", "version": 0 }));
    Ok(())
}

/// Curator and kazoo write again on a lost connection, and refuse what they have written themselves.
#[tokio::test]
async fn a_value_is_written_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let played = losses::each(&losses::EVERY, async |loss| {
        let path = zookeeper::unique_path();
        answer(&path, &["set", "key=a", "data=one", "expected=absent"]).await?;
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        let set = ["set", "key=a", "data=two", r#"expected={"version":0}"#];
        let ended = program(proxy.address(), &path, &set)?.run().await?;
        assert_eq!(ended.code(), Some(0), "{loss}: {ended:?}");
        let answer: Value = serde_json::from_str(&ended.stdout)?;
        let (data, stat) = admin.get(&format!("{path}/a")).await?.context("the key")?;
        assert_eq!((data.as_slice(), stat.version), (&b"two"[..], 1), "{loss}");
        let told = json!({ "version": 1, "revision": stat.mzxid });
        assert_eq!(answer, told, "{loss}");
        assert_eq!(admin.children(&path).await?, ["a"], "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    // The write, the look at the marker, and its deletion.
    assert!(played >= 3 * 3, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn a_snapshot_is_whole_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    for key in ["key=a", "key=b"] {
        answer(&path, &["set", key, "data=one", "expected=any"]).await?;
    }
    let whole = answer(&path, &["snapshot"]).await?;
    let played = losses::each(&losses::EITHER, async |loss| {
        let proxy = Proxy::start(server.address())?;
        let fault = loss.befall(&proxy, &path);
        let ended = program(proxy.address(), &path, &["snapshot"])?.run().await?;
        assert_eq!(ended.code(), Some(0), "{loss}: {ended:?}");
        let answer: Value = serde_json::from_str(&ended.stdout)?;
        assert_eq!(answer, whole, "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    assert!(played >= 2 * 9, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn a_change_costs_a_multi_and_a_snapshot_two_round_trips() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    answer(&path, &["set", "key=a", "data=one", "expected=any"]).await?;
    let asked = async |arguments: &[&str]| {
        let proxy = Proxy::start(server.address())?;
        answer_of(&program(proxy.address(), &path, arguments)?.run().await?)?;
        let asked = proxy.requests(&Match::any().under(&path));
        anyhow::Ok(asked.iter().map(|seen| format!("{:?}", seen.opcode)).collect::<Vec<_>>())
    };
    // The look at the new marker goes behind the multi; what follows is the end of its participant.
    let set = asked(&["set", "key=a", "data=two", r#"expected={"version":0}"#]).await?;
    assert_eq!(set[..2], ["Multi", "Exists"], "{set:?}");
    assert_eq!(set.last().map(String::as_str), Some("Delete"), "{set:?}");
    assert_eq!(asked(&["get", "key=a"]).await?, ["Sync", "GetData"]);
    let snapshot = asked(&["snapshot"]).await?;
    let (list, whole) = snapshot.split_at(4);
    assert_eq!(list[0], "Sync", "{snapshot:?}");
    assert_eq!((list[1].as_str(), list[3].as_str()), ("GetData", "GetData"), "{snapshot:?}");
    assert!(list[2].starts_with("GetChildren"), "{snapshot:?}");
    // The root, the list, one key, the root.
    assert_eq!(whole.len(), 4, "{snapshot:?}");
    Ok(())
}

#[tokio::test]
async fn who_waits_hears_of_the_next_change_and_leaves_no_watch() -> Result<()> {
    let path = zookeeper::unique_path();
    let first = answer(&path, &["set", "key=a", "data=one", "expected=any"]).await?;
    let after = first["revision"].to_string();
    let (hears, killed) = (waiter(&path, &after).await?, waiter(&path, &after).await?);
    killed.signal(Signal::KILL)?;
    let second = answer(&path, &["set", "key=b", "data=one", "expected=any"]).await?;
    assert_eq!(answer_of(&hears.ended().await?)?, second["revision"]);
    // It goes on from what it has seen, and misses nothing that came before it asks again.
    let missed = answer(&path, &["wait", &format!("after={after}")]).await?;
    assert_eq!(missed, second["revision"]);
    let waits = call(&path, &["--wait", "1s", "wait", &format!("after={missed}")]).await?;
    assert_eq!((waits.code(), waits.stdout.as_str()), (Some(75), ""), "{waits:?}");
    eventually("no watch to be left", async || Ok((watchers(&path).await? == 0).then_some(())))
        .await
}

#[tokio::test]
async fn who_waits_hears_of_the_first_change_of_all() -> Result<()> {
    let path = zookeeper::unique_path();
    let waits = waiter(&path, "0").await?;
    let first = answer(&path, &["set", "key=a", "data=one", "expected=any"]).await?;
    let heard = answer_of(&waits.ended().await?)?;
    // The root comes a moment before its first key.
    assert!(heard.as_i64() <= first["revision"].as_i64() && heard.as_i64() > Some(0), "{heard}");
    Ok(())
}

#[tokio::test]
async fn a_key_that_another_client_writes_is_told_when_it_writes_the_root() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    let first = answer(&path, &["set", "key=a", "data=one", "expected=any"]).await?;
    let waits = waiter(&path, &first["revision"].to_string()).await?;
    admin.set(&format!("{path}/a"), b"from elsewhere").await?;
    admin.create(&format!("{path}/not.of.ours"), b"\xff").await?;
    let elsewhere = json!({ "data": "from elsewhere", "version": 1 });
    assert_eq!(answer(&path, &["get", "key=a"]).await?, elsewhere);
    assert_eq!(waits.status(), None, "nothing has told it");
    let root = admin.set(&path, b"a").await?;
    assert_eq!(answer_of(&waits.ended().await?)?, root.mzxid);
    let all = answer(&path, &["snapshot"]).await?;
    assert_eq!(all["revision"], root.mzxid);
    assert_eq!(all["entries"][1]["data"], json!({ "base64": "/w==" }), "{all}");
    // Whose version it was is refused.
    let stale = call(&path, &["set", "key=a", "data=x", r#"expected={"version":0}"#]).await?;
    check_refused(&stale, "bad-version");
    Ok(())
}

#[tokio::test]
async fn a_snapshot_of_more_keys_than_a_pipeline_takes_is_whole_and_one_of_too_many_is_refused()
-> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    let key = |number: usize| format!("{path}/key-{number:04}");
    for number in 0..300 {
        admin.create(&key(number), number.to_string().as_bytes()).await?;
    }
    let all = answer(&path, &["snapshot"]).await?;
    let entries = all["entries"].as_array().context("entries")?;
    assert_eq!(entries.len(), 300);
    for (number, entry) in entries.iter().enumerate() {
        let expected = json!({
            "key": format!("key-{number:04}"), "data": number.to_string(), "version": 0
        });
        assert_eq!(*entry, expected);
    }
    for number in 300..1001 {
        admin.create(&key(number), b"").await?;
    }
    check_refused(&call(&path, &["snapshot"]).await?, "1001 keys");
    let path = zookeeper::unique_path();
    // As many of the largest as it says.
    for number in 0..12 {
        admin.create(&format!("{path}/{number}"), &vec![b'x'; 64 * 1024]).await?;
    }
    let all = answer(&path, &["snapshot"]).await?;
    assert_eq!(all["entries"].as_array().context("entries")?.len(), 12);
    admin.create(&format!("{path}/12"), b"x").await?;
    check_refused(&call(&path, &["snapshot"]).await?, "more than 786432 bytes");
    let large = format!("data={}", "x".repeat(64 * 1024 + 1));
    check_refused(&call(&path, &["set", "key=a", &large, "expected=any"]).await?, "65536");
    Ok(())
}

#[tokio::test]
async fn the_feature_switches_do_what_their_page_says() -> Result<()> {
    play_example("feature-switches", &["switch", "follow"]).await
}

#[tokio::test]
async fn the_nightly_job_does_what_its_page_says() -> Result<()> {
    play_example("nightly-job", &["nightly", "unless-done", "make-report"]).await
}
