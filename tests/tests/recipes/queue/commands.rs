//! `wok call` and `wok hold`, what others do to the znodes, and the example.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok::participant::Participant;
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::process::{Ended, OrderFile, Program, Running, Signal, wok_binary};
use wok_tests::scene::Scene;
use wok_tests::stock::Stock;
use wok_tests::zookeeper::{self, Options, Server};

pub(crate) const ONCE: &str = "delivery=at-most-once";

pub(crate) fn program(address: &str, path: &str, arguments: &[&str]) -> Result<Program> {
    let options = ["call", "queue", "--mount", path, "--connect", address, "--output", "json"];
    Ok(Program::wok()?.args(options).args(arguments))
}

async fn run(path: &str, arguments: &[&str]) -> Result<Ended> {
    program(zookeeper::shared().await.address(), path, arguments)?.run().await
}

pub(crate) async fn call(path: &str, arguments: &[&str]) -> Result<Value> {
    let ended = run(path, arguments).await?;
    assert_eq!(ended.code(), Some(0), "{arguments:?}: {ended:?}");
    serde_json::from_str(ended.stdout.trim()).with_context(|| format!("{ended:?}"))
}

/// `wok hold` of the next item, with a shell script as its command, in which `$wok` is wok's `call`.
async fn hold(path: &str, config: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    let wok = wok_binary()?;
    let call =
        format!("{} call queue --mount {path} --connect {}", wok.display(), server.address());
    Program::wok()?
        .args(["hold", "queue", "--mount", path, "--connect", server.address()])
        .args(["--session-timeout", "4s", "--config", config])
        .args(["take", "--", "sh", "-c", script])
        .env("wok", call)
        .start()
}

/// The item that is held is acknowledged.
const ACK: &str = "$wok ack-item item=$WOK_CLAIM_PATH fence=$WOK_FENCE";

async fn length(path: &str) -> Result<(u64, u64, u64)> {
    let told = call(path, &["length"]).await?;
    let count = |key: &str| told[key].as_u64().unwrap();
    Ok((count("items"), count("taken"), count("dead-letters")))
}

async fn take_once(path: &str) -> Result<String> {
    let told = call(path, &["--config", ONCE, "take"]).await?;
    Ok(told["data"].as_str().context("text")?.to_owned())
}

#[tokio::test]
async fn items_are_taken_in_the_order_in_which_they_were_put_in() -> Result<()> {
    let path = format!("{}/below/new/parents", zookeeper::unique_path());
    assert_eq!(call(&path, &["peek"]).await?, Value::Null);
    assert_eq!(length(&path).await?, (0, 0, 0));
    call(&path, &["put", "data=a"]).await?;
    call(&path, &["put-all", "items=[\"b\", \"\", \"d\"]"]).await?;
    call(&path, &["put", "data=e"]).await?;
    assert_eq!(length(&path).await?, (5, 0, 0));
    let first = call(&path, &["peek"]).await?;
    assert_eq!((&first["data"], &first["attempts"]), (&json!("a"), &json!(0)));
    let taken = call(&path, &["--config", ONCE, "take"]).await?;
    assert_eq!((&taken["czxid"], &taken["attempt"]), (&first["czxid"], &json!(1)));
    let many = call(&path, &["--config", ONCE, "take-many", "max=2"]).await?;
    let data: Vec<_> = many.as_array().unwrap().iter().map(|it| it["data"].clone()).collect();
    assert_eq!(data, ["b", ""]);
    for expected in ["d", "e"] {
        assert_eq!(take_once(&path).await?, expected);
    }
    assert_eq!(length(&path).await?, (0, 0, 0));
    Ok(())
}

#[tokio::test]
async fn text_that_reads_as_something_else_is_text() -> Result<()> {
    let path = zookeeper::unique_path();
    for text in ["42", "true", "null", "{\"to\":\"ann\"}", "[1, 2]", "say \"hi\""] {
        call(&path, &["put", &format!("data={text}")]).await?;
        assert_eq!(take_once(&path).await?, text);
    }
    // What is written as a JSON string is one.
    call(&path, &["put", r#"data="42""#]).await?;
    assert_eq!(take_once(&path).await?, "42");
    Ok(())
}

#[tokio::test]
async fn a_dead_letter_whose_name_is_in_use_blocks_nobody() -> Result<()> {
    let (path, admin) =
        (zookeeper::unique_path(), Admin::connect(zookeeper::shared().await.address()).await?);
    let config = ["--config", "layout=curator-simple", "--config", "max-attempts=1"];
    let take = async || call(&path, &[&config[..], &["take"]].concat()).await;
    // The server removes an empty directory, and the next one's counter begins anew.
    admin.create(&format!("{path}/dead-letters/qn-0000000000"), b"from before").await?;
    for data in ["data=bad", "data=good"] {
        call(&path, &[&config[..], &["put", data]].concat()).await?;
    }
    assert_eq!(take().await?["data"], "bad");
    assert_eq!(take().await?["data"], "good", "the first is a dead letter by now");
    assert_eq!(length(&path).await?.2, 2);
    let (before, _) = admin.get(&format!("{path}/dead-letters/qn-0000000000")).await?.unwrap();
    assert_eq!(before, b"from before");
    Ok(())
}

#[tokio::test]
async fn an_item_that_is_in_the_way_is_named() -> Result<()> {
    let (path, admin) =
        (zookeeper::unique_path(), Admin::connect(zookeeper::shared().await.address()).await?);
    call(&path, &["put", "data=a"]).await?;
    let item = call(&path, &["peek"]).await?["path"].as_str().context("a path")?.to_owned();
    admin.create(&format!("{path}{item}/child"), b"").await?;
    let ended = run(&path, &["--config", ONCE, "take"]).await?;
    assert_eq!(ended.code(), Some(70), "{ended:?}");
    assert!(
        ended.stderr.contains(&format!("{item} cannot be taken: it has children")),
        "{ended:?}"
    );
    Ok(())
}

#[tokio::test]
async fn an_item_that_cannot_be_removed_keeps_nobody_from_the_others() -> Result<()> {
    let queue = Scene::open("queue").await?.configured(json!({ "max-attempts": 2 }));
    let (consumer, _follower) = queue.stock.join()?;
    let taken = async || -> Result<Vec<Value>> {
        let taken = queue.value(&consumer, "take-many", json!({})).await?;
        let items = taken.as_array().context("a list")?;
        Ok(items.iter().map(|item| item["data"].clone()).collect())
    };
    queue.value(&consumer, "put-all", json!({ "items": ["a", "stuck", "c"] })).await?;
    let mut items = queue.admin.children(&format!("{}/items", queue.path)).await?;
    items.sort_by(|one, other| one.rsplit('-').next().cmp(&other.rsplit('-').next()));
    let stuck = format!("{}/items/{}", queue.path, items[1]);
    queue.admin.create(&format!("{stuck}/note"), b"").await?;
    for expected in [vec!["a", "stuck", "c"], vec!["stuck"]] {
        assert_eq!(taken().await?, expected);
        let refused = queue.stock.call(&consumer, "ack").await?.value.unwrap_err().to_string();
        let told = format!("/items/{} cannot be removed: it has children", items[1]);
        assert!(refused.contains(&told), "{refused}");
        let left = queue.admin.children(&format!("{}/items", queue.path)).await?;
        assert_eq!(left, items[1..2], "what is done is done");
    }
    // It was taken as often as it may be, and cannot become a dead letter.
    for (data, letters) in [("next", 0), ("last", 1)] {
        queue.value(&consumer, "put", json!({ "data": data })).await?;
        assert_eq!(taken().await?, [data]);
        queue.value(&consumer, "ack", json!({})).await?;
        assert_eq!(length(&queue.path).await?.2, letters);
        if letters == 0 {
            queue.admin.delete(&format!("{stuck}/note")).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn dead_letters_that_cannot_be_written_keep_nobody_from_the_others() -> Result<()> {
    for recipe in ["queue", "priority-queue"] {
        let queue = Scene::open(recipe).await?.configured(json!({ "max-attempts": 1 }));
        let (consumer, _follower) = queue.stock.join()?;
        let take = async || -> Result<Value> {
            Ok(queue.value(&consumer, "take", json!({})).await?["data"].clone())
        };
        queue.value(&consumer, "put-all", json!({ "items": ["bad", "good"] })).await?;
        queue.admin.create_unreadable(&format!("{}/dead-letters", queue.path), b"").await?;
        assert_eq!(take().await?, "bad");
        queue.value(&consumer, "reject", json!({})).await?;
        assert_eq!(take().await?, "good", "{recipe}");
        queue.value(&consumer, "ack", json!({})).await?;
        let items = queue.admin.children(&format!("{}/items", queue.path)).await?;
        assert_eq!(items.len(), 1, "it stays");
    }
    Ok(())
}

#[tokio::test]
async fn however_many_cannot_be_buried_keep_nobody_from_the_others() -> Result<()> {
    // More than the names of a list that are kept.
    for (recipe, count) in [("queue", 1_030), ("priority-queue", 130)] {
        let queue = Scene::open(recipe).await?.configured(json!({ "max-attempts": 1 }));
        let (consumer, _follower) = queue.stock.join()?;
        let bad = vec!["bad"; count];
        for items in bad.chunks(60) {
            queue.value(&consumer, "put-all", json!({ "items": items })).await?;
        }
        let items = format!("{}/items", queue.path);
        // Each has been taken once, so far as its version says.
        for item in queue.admin.children(&items).await? {
            queue.admin.set(&format!("{items}/{item}"), b"bad").await?;
        }
        queue.value(&consumer, "put", json!({ "data": "good" })).await?;
        queue.admin.create_unreadable(&format!("{}/dead-letters", queue.path), b"").await?;
        let taken = queue.value(&consumer, "take", json!({})).await?;
        assert_eq!(taken["data"], "good", "{recipe}");
        queue.value(&consumer, "ack", json!({})).await?;
        assert_eq!(queue.admin.children(&items).await?.len(), count, "they stay");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_put_in_when_the_counter_is_used_up_is_taken_all_the_same() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    let recipes = ["queue", "priority-queue"];
    for recipe in recipes {
        let path = format!("/{recipe}");
        let queue = Stock::open(server.address(), recipe, &path).await?;
        let (producer, _follower) = queue.join()?;
        answered(&queue, &producer, "put", json!({ "data": "first" })).await?;
    }
    let admin = Admin::connect(server.address()).await?;
    let mut first = Vec::new();
    for recipe in recipes {
        let items = format!("/{recipe}/items");
        let name = admin.children(&items).await?.pop().context("an item")?;
        first.push(format!("{items}/{name}"));
    }
    server.kill();
    for item in first {
        server.count_to(&item, i32::MAX - 2)?;
    }
    server.restart().await?;
    for recipe in recipes {
        let queue = Stock::open(server.address(), recipe, &format!("/{recipe}")).await?;
        let (both, _follower) = queue.join()?;
        let others = ["second", "third", "fourth", "fifth"];
        for data in others {
            answered(&queue, &both, "put", json!({ "data": data })).await?;
        }
        let mut taken = Vec::new();
        for _ in 0..5 {
            let item = answered(&queue, &both, "take", json!({})).await?;
            taken.push(item["data"].as_str().context("text")?.to_owned());
            answered(&queue, &both, "ack", json!({})).await?;
        }
        taken.sort();
        assert_eq!(taken, ["fifth", "first", "fourth", "second", "third"], "{recipe}");
    }
    Ok(())
}

async fn answered(queue: &Stock, who: &Participant, operation: &str, with: Value) -> Result<Value> {
    let answer = queue.call_with(who, operation, &with).await?;
    answer.value.map_err(|error| anyhow::anyhow!("{operation}: {error}"))
}

#[tokio::test]
async fn a_take_does_not_show_one_of_several_that_are_taken() -> Result<()> {
    for recipe in ["queue", "priority-queue"] {
        let queue = Scene::open(recipe).await?;
        let (consumer, _follower) = queue.stock.join()?;
        queue.value(&consumer, "put-all", json!({ "items": ["a", "b"] })).await?;
        // Its answer may be lost; and who takes the next one may know of one only.
        queue.value(&consumer, "take-many", json!({})).await?;
        let refused = queue.stock.call(&consumer, "take").await?.value.unwrap_err().to_string();
        assert!(refused.contains("take-many"), "{refused}");
        let again = queue.value(&consumer, "take-many", json!({ "max": 1 })).await?;
        assert_eq!(again.as_array().map(Vec::len), Some(2), "{recipe}: {again}");
        queue.value(&consumer, "reject", json!({})).await?;
        // Of one alone it answers the same again.
        for _ in 0..2 {
            let taken = queue.value(&consumer, "take", json!({})).await?;
            assert_eq!(taken["data"], "a", "{recipe}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_item_of_another_layout_is_warned_of() -> Result<()> {
    let path = zookeeper::unique_path();
    call(&path, &["--config", "layout=curator-simple", "put", "data=a"]).await?;
    for layout in ["layout=own", "layout=kazoo"] {
        let settings = ["--config", ONCE, "--config", layout];
        let ended = run(&path, &[&settings[..], &["--wait", "5s", "take"]].concat()).await?;
        assert_eq!(ended.code(), Some(75), "{ended:?}");
        let told = "qn-0000000000 is no item of the layout in use";
        assert!(ended.stderr.contains(told), "{layout}: {ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_remedy() -> Result<()> {
    let path = zookeeper::unique_path();
    for (arguments, code, told) in [
        (&["take-many", "max=65"][..], 70, "65 is not from 1 to 64"),
        (&["ack"], 70, "nothing is taken"),
        (&["reject"], 70, "nothing is taken"),
        (&["ack-item", "item=x", "fence=7"], 70, "not taken under fence 7"),
        (&["--config", "max-attempts=0", "length"], 78, "max-attempts: 0 is not from 1"),
        (
            &["--config", "{\"delivery\":\"at-most-once\",\"max-attempts\":3}", "length"],
            78,
            "taken once",
        ),
    ] {
        let ended = run(&path, arguments).await?;
        assert_eq!((ended.code(), ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn what_others_have_put_there_is_left_alone() -> Result<()> {
    let (path, admin) =
        (zookeeper::unique_path(), Admin::connect(zookeeper::shared().await.address()).await?);
    call(&path, &["put", "data=a"]).await?;
    let foreign = ["qn-", "qn-0000000000", "notes", "entry-100-0000000000", "qn-x-item-12"];
    for name in foreign {
        admin.create(&format!("{path}/items/{name}"), b"foreign").await?;
    }
    call(&path, &["put", "data=b"]).await?;
    for expected in ["a", "b"] {
        assert_eq!(take_once(&path).await?, expected);
    }
    let ended = run(&path, &["--config", ONCE, "--wait", "300ms", "take"]).await?;
    assert_eq!(ended.code(), Some(75), "{ended:?}");
    assert_eq!(length(&path).await?.0, 5, "every child counts");
    Ok(())
}

#[tokio::test]
async fn an_item_that_is_not_acknowledged_comes_back_and_one_that_is_does_not() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    call(&path, &["put", "data=a"]).await?;
    // It fails, and gives the item back at once.
    let failed = hold(&path, "max-attempts=9", "exit 3").await?.ended().await?;
    assert_eq!(failed.code(), Some(3), "{failed:?}");
    // It is killed at its work.
    let begun = order.append("begun");
    let killed = hold(&path, "max-attempts=9", &format!("{begun}; exec sleep 600")).await?;
    order.wait_for("begun").await?;
    assert_eq!(length(&path).await?, (1, 1, 0));
    assert_eq!(call(&path, &["peek"]).await?, Value::Null, "somebody has it");
    killed.signal(Signal::KILL)?;
    // It waits until the item is back, does the work, and says so.
    let script = format!(
        "$wok peek item=$WOK_CLAIM_PATH --output json && {ACK} && $wok length --output json"
    );
    let done = hold(&path, "max-attempts=9", &script).await?.ended().await?;
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(done.stdout.contains("\"attempts\":3") && done.stdout.contains("\"a\""), "{done:?}");
    // The claim of an item that is acknowledged still stands, and the item is not taken any more.
    assert!(done.stdout.contains("\"taken\":0"), "{done:?}");
    assert_eq!(length(&path).await?, (0, 0, 0));
    Ok(())
}

#[tokio::test]
async fn an_item_that_was_taken_as_often_as_it_may_be_is_a_dead_letter() -> Result<()> {
    let (path, admin) =
        (zookeeper::unique_path(), Admin::connect(zookeeper::shared().await.address()).await?);
    call(&path, &["put-all", "items=[\"poison\", \"food\"]"]).await?;
    let name = call(&path, &["peek"]).await?["path"].as_str().unwrap().replace("/items/", "");
    for _ in 0..2 {
        let failed = hold(&path, "max-attempts=2", "exit 3").await?.ended().await?;
        assert_eq!(failed.code(), Some(3), "{failed:?}");
    }
    let script = format!("$wok peek item=$WOK_CLAIM_PATH --output json && {ACK}");
    let done = hold(&path, "max-attempts=2", &script).await?.ended().await?;
    assert!(done.stdout.contains("food"), "{done:?}");
    assert_eq!(length(&path).await?, (0, 0, 1));
    let letters = admin.children(&format!("{path}/dead-letters")).await?;
    assert_eq!(letters, std::slice::from_ref(&name));
    let (data, stat) = admin.get(&format!("{path}/dead-letters/{name}")).await?.context("kept")?;
    assert_eq!((data.as_slice(), stat.ephemeral_owner), (&b"poison"[..], 0));
    Ok(())
}

#[tokio::test]
async fn a_directory_that_the_server_has_removed_keeps_nobody_waiting() -> Result<()> {
    let path = zookeeper::unique_path();
    call(&path, &["put", "data=a"]).await?;
    assert_eq!(take_once(&path).await?, "a");
    let waiting = program(zookeeper::shared().await.address(), &path, &["--config", ONCE, "take"])?;
    let waiting = waiting.start()?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let stands = |line: &[String]| line.len() == 1;
    admin.wait_children(&format!("{path}/consumers"), "a place in line", stands).await?;
    // As a server does with a container that was empty for a minute (CURATOR-308).
    admin.delete(&format!("{path}/items")).await?;
    call(&path, &["put", "data=b"]).await?;
    let ended = waiting.ended().await?;
    assert!(ended.stdout.contains("\"b\""), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn nine_thousand_items_come_out_in_their_order() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let stock = Stock::open(server.address(), "queue", &path)
        .await?
        .configured(json!({ "delivery": "at-most-once" }));
    let (participant, _follower) = stock.join()?;
    let mut number = 0;
    while number < 9_000 {
        let items: Vec<String> = (number..number + 50).map(|number| number.to_string()).collect();
        let all = stock.call_with(&participant, "put-all", &json!({ "items": items })).await?;
        all.value.unwrap();
        number += 50;
    }
    let mut taken = 0;
    while taken < 9_000 {
        let many = stock.call(&participant, "take-many").await?.value.unwrap();
        for item in many.as_array().unwrap() {
            assert_eq!(item["data"], json!(taken.to_string()));
            taken += 1;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_example_of_the_thumbnails_does_what_it_says() -> Result<()> {
    play_example("thumbnails", &["add", "worker", "make"]).await
}
