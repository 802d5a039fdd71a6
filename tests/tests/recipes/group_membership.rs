//! The stock group membership on a real server: names that are taken, members that are lost, what is
//! told to whom, lost replies, and what it costs.

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
use wok_tests::process::{Ended, OrderFile, Program, Running, Signal};
use wok_tests::proxy::Match;
use wok_tests::scene::Scene;
use wok_tests::{losses, zookeeper};

/// `wok hold` as a member of that name, with a shell script as its command.
async fn hold(path: &str, name: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    Program::wok()?
        .args(["hold", "group-membership", "--mount", path, "--connect", server.address()])
        .args(["--session-timeout", "4s", "join", &format!("name={name}"), "data=here"])
        .args(["--", "sh", "-c", script])
        .start()
}

async fn call(path: &str, arguments: &[&str]) -> Result<Ended> {
    let server = zookeeper::shared().await;
    let options = ["call", "group-membership", "--mount", path, "--connect", server.address()];
    Program::wok()?.args(options).args(["--output", "json"]).args(arguments).run().await
}

fn answer(told: &Ended) -> Result<Value> {
    assert_eq!(told.code(), Some(0), "{told:?}");
    serde_json::from_str(told.stdout.trim()).with_context(|| format!("{told:?}"))
}

/// The names and the data of a view.
fn shown(view: &Value) -> Vec<(&str, &str)> {
    let members = view["members"].as_array().unwrap();
    members.iter().map(|it| (it["name"].as_str().unwrap(), it["data"].as_str().unwrap())).collect()
}

/// A command that says when it begins, and goes on until it is asked to stop.
fn until_term(order: &OrderFile, name: &str) -> String {
    let begin = order.append(&format!("{name} begins"));
    format!("trap 'exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

async fn data_of(scene: &Scene, name: &str) -> Result<Option<String>> {
    let found = scene.admin.get(&format!("{}/{name}", scene.path)).await?;
    found.map(|(data, _)| Ok(String::from_utf8(data)?)).transpose()
}

fn named(name: &str) -> Value {
    json!({ "name": name, "data": "x" })
}

#[tokio::test]
async fn a_command_runs_while_one_is_a_member_and_a_name_that_is_taken_is_waited_for() -> Result<()>
{
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let empty = answer(&call(&path, &["members"]).await?)?;
    assert_eq!(shown(&empty), []);
    let first = hold(&path, "a", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let view = answer(&call(&path, &["members"]).await?)?;
    assert_eq!(shown(&view), [("a", "here")]);
    let late = call(&path, &["--wait", "500ms", "join", "name=a", "data=late"]).await?;
    assert_eq!(late.code(), Some(75), "{late:?}");
    assert_eq!(shown(&answer(&call(&path, &["members"]).await?)?), [("a", "here")]);

    let second = hold(&path, "a", &until_term(&order, "second")).await?;
    first.signal(Signal::TERM)?;
    assert_eq!(first.ended().await?.code(), Some(0));
    order.wait_for("second begins").await?;
    second.signal(Signal::TERM)?;
    assert_eq!(second.ended().await?.code(), Some(0));
    assert_eq!(shown(&answer(&call(&path, &["members"]).await?)?), []);
    Ok(())
}

#[tokio::test]
async fn a_member_that_is_killed_goes_with_its_session_and_its_name_is_taken_over() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, "a", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let before = answer(&call(&path, &["members"]).await?)?;
    first.signal(Signal::KILL)?;
    let second = hold(&path, "a", &until_term(&order, "second")).await?;
    order.wait_for("second begins").await?;
    let after = answer(&call(&path, &["members"]).await?)?;
    let fence = |view: &Value| view["members"][0]["fence"].as_u64().unwrap();
    assert!(fence(&after) > fence(&before), "{before} {after}");
    second.signal(Signal::TERM)?;
    assert_eq!(second.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_command_whose_member_somebody_deletes_is_ended() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let held = hold(&path, "a", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    admin.delete(&format!("{path}/a")).await?;
    assert_eq!(held.ended().await?.code(), Some(76));
    Ok(())
}

/// As many of the largest as fit into one view.
const LARGEST_IN_A_VIEW: usize = 11;

#[tokio::test]
async fn a_view_has_as_much_data_as_it_says_and_no_more() -> Result<()> {
    let scene = Scene::open("group-membership").await?;
    let mut members = Vec::new();
    for number in 0..=LARGEST_IN_A_VIEW {
        let (member, follower) = scene.stock.join()?;
        if let Some((first, _)) = members.first() {
            let view = scene.value(first, "members", Value::Null).await?;
            assert_eq!(view["members"].as_array().map(Vec::len), Some(number));
        }
        let joining = json!({ "name": number.to_string(), "data": "x".repeat(64 * 1024) });
        scene.value(&member, "join", joining).await?;
        members.push((member, follower));
    }
    let refused = scene.stock.call(&members[0].0, "members").await?.value.unwrap_err().to_string();
    for told in ["over-limit", "786432 bytes", " has 65536 of them"] {
        assert!(refused.contains(told), "{told:?} is not in {refused}");
    }
    Ok(())
}

#[tokio::test]
async fn another_participant_of_one_host_is_not_taken_for_oneself() -> Result<()> {
    let scene = Scene::open("group-membership").await?;
    let (one, _follower) = scene.stock.join()?;
    let (other, _follower_of_other) = scene.stock.join()?;
    let first = scene.value(&one, "join", named("a")).await?;
    let joins = scene.value(&other, "join", named("a"));
    let leaves = async {
        // It has found the name taken, and watches it.
        let watched = Match::opcode(Opcode::GetData).under(&format!("{}/a", scene.path));
        wok_tests::patience::eventually("the name to be watched", async || {
            Ok((scene.proxy.requests(&watched).len() >= 3).then_some(()))
        })
        .await?;
        scene.value(&one, "leave", Value::Null).await
    };
    let (second, _) = tokio::try_join!(joins, leaves)?;
    assert!(second["fence"].as_u64() > first["fence"].as_u64(), "{first} {second}");
    Ok(())
}

#[tokio::test]
async fn names_that_are_none_are_refused_and_what_is_no_members_is_left_alone() -> Result<()> {
    let scene = Scene::open("group-membership").await?;
    let (who, _follower) = scene.stock.join()?;
    for (name, told) in [
        ("", "1 to 128 bytes"),
        ("a/b", "a slash or a control character"),
        (".hidden", "begins with a dot"),
    ] {
        let refused = scene.value(&who, "join", named(name)).await.unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
    }
    for operation in ["update", "leave"] {
        let with = if operation == "update" { json!({ "data": "x" }) } else { Value::Null };
        let refused = scene.value(&who, operation, with).await.unwrap_err();
        assert!(refused.to_string().contains("no member"), "{refused}");
    }
    assert_eq!(scene.sent(), [], "the ensemble was asked for nothing");

    scene.admin.create(&format!("{}/settings", scene.path), b"\xff").await?;
    let refused = scene.value(&who, "join", named("settings")).await.unwrap_err();
    assert!(refused.to_string().contains("not ephemeral"), "{refused}");
    scene.value(&who, "join", named("a")).await?;
    scene.admin.create_unreadable(&format!("{}/private", scene.path), b"y").await?;
    let again = scene.value(&who, "join", named("b")).await.unwrap_err();
    assert!(again.to_string().contains("a member already"), "{again}");
    let view = scene.value(&who, "members", Value::Null).await?;
    assert_eq!(shown(&view), [("a", "x")]);
    Ok(())
}

#[tokio::test]
async fn an_update_is_seen_by_who_waits_and_by_who_observes() -> Result<()> {
    let scene = Scene::open("group-membership").await?;
    let (member, _follower) = scene.stock.join()?;
    let (waiter, _follower_of_waiter) = scene.stock.join()?;
    scene.value(&member, "join", named("a")).await?;
    let seen = scene.value(&waiter, "observe", Value::Null).await?;
    let waits = scene.value(&waiter, "wait", json!({ "after": seen }));
    let says = scene.value(&member, "update", json!({ "data": "y" }));
    let (told, said) = tokio::try_join!(waits, says)?;
    assert_eq!(told, said, "the update's own revision");
    let view = scene.value(&waiter, "members", Value::Null).await?;
    assert_eq!((shown(&view), &view["revision"]), (vec![("a", "y")], &said));
    Ok(())
}

#[tokio::test]
async fn one_joins_updates_and_leaves_once_whichever_request_or_reply_is_lost() -> Result<()> {
    let played = losses::each(&losses::EVERY, async |loss| {
        let scene = Scene::open("group-membership").await?;
        let fault = loss.befall(&scene.proxy, &scene.path);
        let (who, _follower) = scene.stock.join()?;
        scene.value(&who, "join", named("a")).await?;
        assert_eq!(data_of(&scene, "a").await?.as_deref(), Some("x"), "{loss}");
        scene.value(&who, "update", json!({ "data": "y" })).await?;
        let (data, stat) = scene.admin.get(&format!("{}/a", scene.path)).await?.unwrap();
        assert_eq!((&data[..], stat.version), (&b"y"[..], 1), "{loss}");
        scene.value(&who, "leave", Value::Null).await?;
        assert_eq!(data_of(&scene, "a").await?, None, "{loss}");
        Ok(fault.has_struck())
    })
    .await?;
    assert!(played >= 3 * 4, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn each_operation_sends_what_the_table_says() -> Result<()> {
    let scene = Scene::open("group-membership").await?;
    let (who, _follower) = scene.stock.join()?;
    // The first of a group makes the directory.
    scene.value(&who, "join", named("a")).await?;
    scene.value(&who, "leave", Value::Null).await?;
    scene.proxy.clear_log();
    scene.value(&who, "join", named("a")).await?;
    assert_eq!(scene.sent(), [Opcode::Multi, Opcode::GetData]);
    scene.proxy.clear_log();
    scene.value(&who, "members", Value::Null).await?;
    let reads = [Opcode::Multi, Opcode::GetChildren2, Opcode::GetData, Opcode::Exists];
    assert_eq!(scene.sent(), reads);
    scene.proxy.clear_log();
    scene.value(&who, "observe", Value::Null).await?;
    assert_eq!(scene.sent(), [Opcode::GetData, Opcode::GetChildren2]);
    scene.proxy.clear_log();
    scene.value(&who, "update", json!({ "data": "y" })).await?;
    // The host, and the member that observes, look at what has changed.
    assert_eq!(scene.sent().first(), Some(&Opcode::Multi));
    scene.value(&who, "leave", Value::Null).await?;
    assert!(scene.sent().contains(&Opcode::Delete), "{:?}", scene.sent());
    Ok(())
}

#[tokio::test]
async fn the_shards_follow_the_members_as_their_page_says() -> Result<()> {
    play_example("shards", &["worker", "follow", "work"]).await
}
