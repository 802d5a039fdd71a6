//! `queue` beside Curator's `SimpleDistributedQueue` and kazoo's `Queue`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use wok_tests::admin::Admin;
use wok_tests::peers::Peer;
use wok_tests::process::Program;
use wok_tests::zookeeper;

/// The exit code of a module that answered an error.
const REFUSED: i32 = 70;

fn program(path: &str, layout: &str, once: bool, call: &[&str]) -> Result<Program> {
    let delivery = if once { "at-most-once" } else { "at-least-once" };
    let layout = format!("layout={layout}");
    let program = Program::wok()?
        .args(["call", "queue", "--mount", path, "--output", "json"])
        .args(["--config", &layout, "--config", &format!("delivery={delivery}")]);
    Ok(program.args(call))
}

/// What wok answers to a call.
async fn wok(path: &str, layout: &str, call: &[&str]) -> Result<Value> {
    let server = zookeeper::shared().await;
    let program = program(path, layout, true, call)?.args(["--connect", server.address()]);
    let ended = program.run().await?;
    ensure!(ended.code() == Some(0), "{call:?}: {ended:?}");
    Ok(serde_json::from_str(ended.stdout.trim())?)
}

async fn take(path: &str, layout: &str) -> Result<String> {
    let taken = wok(path, layout, &["take"]).await?;
    Ok(taken["data"].as_str().context("text")?.to_owned())
}

/// Each puts in for both, and each takes what the other has put in, in one order.
async fn check_both_ways(mut peer: Peer, layout: &str, get: &str) -> Result<()> {
    let path = zookeeper::unique_path();
    put_and_take(&path, &mut peer, layout, get).await?;
    assert_eq!(wok(&path, layout, &["length"]).await?["items"], 0, "nothing else is in there");
    Ok(())
}

async fn put_and_take(path: &str, peer: &mut Peer, layout: &str, get: &str) -> Result<()> {
    let items = format!("{path}/items");
    wok(path, layout, &["put", "data=a"]).await?;
    peer.call(&format!("queue put {items} b")).await?;
    wok(path, layout, &["put-all", "items=[\"c\", \"d\"]"]).await?;
    peer.call(&format!("queue put {items} e")).await?;
    assert_eq!(peer.call(&format!("queue {get} {items}")).await?, "a");
    assert_eq!(take(path, layout).await?, "b");
    assert_eq!(peer.call(&format!("queue {get} {items}")).await?, "c");
    assert_eq!(take(path, layout).await?, "d");
    assert_eq!(take(path, layout).await?, "e");
    Ok(())
}

/// Both take at one time: each item goes to one of them.
async fn check_at_once(mut peer: Peer, layout: &str, get: &str) -> Result<()> {
    const ITEMS: usize = 40;
    let path = zookeeper::unique_path();
    let items = format!("{path}/items");
    let all: BTreeSet<String> = (0..ITEMS).map(|number| number.to_string()).collect();
    let put: Vec<&String> = all.iter().collect();
    wok(&path, layout, &["put-all", &format!("items={}", serde_json::to_string(&put)?)]).await?;
    for _ in 0..ITEMS / 2 {
        peer.send(&format!("queue {get} {items}"))?;
    }
    let mut taken = Vec::new();
    for _ in 0..ITEMS / 2 {
        taken.push(take(&path, layout).await?);
    }
    for _ in 0..ITEMS / 2 {
        taken.push(peer.answer().await?);
    }
    assert_eq!(taken.len(), ITEMS);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), all);
    Ok(())
}

async fn curator() -> Result<Peer> {
    Peer::curator(zookeeper::shared().await.address()).await
}

async fn kazoo() -> Result<Peer> {
    Peer::kazoo(zookeeper::shared().await.address()).await
}

#[tokio::test]
async fn wok_and_curator_put_into_one_queue_and_take_from_it() -> Result<()> {
    check_both_ways(curator().await?, "curator-simple", "take").await?;
    check_at_once(curator().await?, "curator-simple", "take").await
}

#[tokio::test]
async fn wok_and_kazoo_put_into_one_queue_and_take_from_it() -> Result<()> {
    check_both_ways(kazoo().await?, "kazoo", "get").await?;
    check_at_once(kazoo().await?, "kazoo", "get").await
}

/// Children that are no items', of which the peer takes some for items all the same: they come behind all
/// that are, and wok leaves them to it.
async fn check_littered(
    mut peer: Peer,
    layout: &str,
    [get, poll]: [&str; 2],
    names: [&str; 3],
    taken: &[&str],
) -> Result<()> {
    let path = zookeeper::unique_path();
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    for name in names {
        let data = name.replace(' ', "-");
        admin.create(&format!("{path}/items/{name}"), data.as_bytes()).await?;
    }
    put_and_take(&path, &mut peer, layout, get).await?;
    let there = admin.children(&format!("{path}/items")).await?;
    let all = BTreeSet::from(names.map(str::to_owned));
    assert_eq!(there.into_iter().collect::<BTreeSet<_>>(), all, "what is no item stays");
    assert_eq!(wok(&path, layout, &["peek"]).await?, Value::Null, "wok sees no item");
    for expected in taken.iter().chain(&[""]) {
        assert_eq!(peer.call(&format!("queue {poll} {path}/items")).await?, *expected);
    }
    Ok(())
}

/// Curator takes whatever begins with `qn-`, and passes over everything else.
#[tokio::test]
async fn wok_and_curator_pass_over_children_that_are_no_items() -> Result<()> {
    let names = ["a note", "entry-100-0000000000", "qn-ten"];
    let (peer, layout) = (curator().await?, "curator-simple");
    check_littered(peer, layout, ["take", "poll"], names, &["qn-ten"]).await
}

/// kazoo takes whatever there is, sorted as text. So a child such as `a note` would come to it first, and
/// these come last.
#[tokio::test]
async fn wok_passes_over_children_that_are_no_items_and_kazoo_takes_them_last() -> Result<()> {
    let names = ["entry-100-ten", "qn-0000000000", "z note"];
    let (peer, layout) = (kazoo().await?, "kazoo");
    let taken = ["entry-100-ten", "qn-0000000000", "z-note"];
    check_littered(peer, layout, ["get", "get"], names, &taken).await
}

#[tokio::test]
async fn kazoos_priorities_come_first_for_wok_as_well() -> Result<()> {
    let (path, mut kazoo) = (zookeeper::unique_path(), kazoo().await?);
    for (data, priority) in [("usual", 100), ("late", 999), ("urgent", 7), ("soon", 50)] {
        kazoo.call(&format!("queue put {path}/items {data} {priority}")).await?;
    }
    for expected in ["urgent", "soon", "usual", "late"] {
        assert_eq!(take(&path, "kazoo").await?, expected);
    }
    Ok(())
}

/// wok is mounted at the queue itself, as it is called for the peer.
async fn check_mounted_at_the_queue_itself(mut peer: Peer, layout: &str, get: &str) -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = format!("{}/items", zookeeper::unique_path());
    peer.call(&format!("queue put {path} a")).await?;
    let there = admin.children(&path).await?;
    assert_eq!(there.len(), 1);
    let told = format!("/{} is an item of this layout", there[0]);
    for call in [&["put", "data=b"][..], &["put-all", "items=[\"b\"]"], &["take"], &["peek"]] {
        for once in [true, false] {
            let program = program(&path, layout, once, call)?;
            let ended = program.args(["--connect", server.address()]).run().await?;
            ensure!(ended.code() == Some(REFUSED), "{call:?}: {ended:?}");
            ensure!(ended.stderr.contains(&told), "{call:?}: {ended:?}");
            ensure!(ended.stderr.contains("mount at its parent"), "{call:?}: {ended:?}");
        }
    }
    assert_eq!(admin.children(&path).await?, there, "nothing else is among the peer's items");
    assert_eq!(peer.call(&format!("queue {get} {path}")).await?, "a");
    // As the refusal says.
    peer.call(&format!("queue put {path} b")).await?;
    let parent = path.strip_suffix("/items").context("a parent")?;
    assert_eq!(take(parent, layout).await?, "b");
    Ok(())
}

#[tokio::test]
async fn a_queue_of_kazoo_is_no_mount_and_its_parent_is() -> Result<()> {
    check_mounted_at_the_queue_itself(kazoo().await?, "kazoo", "get").await
}

#[tokio::test]
async fn a_queue_of_curator_is_no_mount_and_its_parent_is() -> Result<()> {
    check_mounted_at_the_queue_itself(curator().await?, "curator-simple", "take").await
}

#[tokio::test]
async fn a_consumer_of_wok_that_waits_is_woken_by_what_curator_puts_in() -> Result<()> {
    let (path, mut curator) = (zookeeper::unique_path(), curator().await?);
    let server = zookeeper::shared().await;
    let waiting = program(&path, "curator-simple", false, &["take"])?;
    let waiting = waiting.args(["--connect", server.address()]).start()?;
    let admin = Admin::connect(server.address()).await?;
    let stands = |line: &[String]| line.len() == 1;
    admin.wait_children(&format!("{path}/consumers"), "a place in line", stands).await?;
    curator.call(&format!("queue put {path}/items a")).await?;
    let ended = waiting.ended().await?;
    assert!(ended.stdout.contains("\"a\"") && ended.stdout.contains("\"attempt\":1"), "{ended:?}");
    Ok(())
}
