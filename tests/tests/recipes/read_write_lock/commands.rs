//! `wok hold`, `wok call` and `wok run`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::admin::Admin;
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::{scratch, zookeeper};

/// `wok hold` of the lock with a shell script as its command.
pub(super) async fn hold(path: &str, operation: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    Program::wok()?
        .args(["hold", "read-write-lock", "--mount", path, "--connect", server.address()])
        .args([operation, "--", "sh", "-c", script])
        .start()
}

/// A command that says when it begins and when it is asked to stop.
fn until_term(order: &OrderFile, name: &str) -> String {
    let stop = order.append(&format!("{name} stops")).replace('\'', "'\\''");
    let begin = order.append(&format!("{name} begins"));
    format!("trap '{stop}; exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

async fn in_line(path: &str) -> Result<Vec<(String, bool)>> {
    let server = zookeeper::shared().await;
    let told = Program::wok()?
        .args(["call", "read-write-lock", "--mount", path, "--connect", server.address()])
        .args(["contenders", "--output", "json"])
        .run()
        .await?;
    let told: Value = serde_json::from_str(&told.stdout).with_context(|| format!("{told:?}"))?;
    let line = told.as_array().context("a list")?.iter();
    line.map(|it| {
        let mode = it["mode"].as_str().context("a mode")?;
        Ok((mode.to_owned(), it["is-holder"].as_bool().context("a holder or not")?))
    })
    .collect()
}

async fn stop(held: Running) -> Result<()> {
    held.signal(Signal::TERM)?;
    assert_eq!(held.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn readers_hold_together_and_who_comes_behind_a_waiting_writer_waits_for_it() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, "acquire-read", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let second = hold(&path, "acquire-read", &until_term(&order, "second")).await?;
    order.wait_for("second begins").await?;
    let writer = hold(&path, "acquire-write", &until_term(&order, "writer")).await?;
    writer.wait_for_text("standing in line").await?;
    let third = hold(&path, "acquire-read", &until_term(&order, "third")).await?;
    third.wait_for_text("standing in line").await?;
    let [reads, writes] = ["read", "write"].map(str::to_owned);
    let line = [(reads.clone(), true), (reads.clone(), true), (writes, false), (reads, false)];
    assert_eq!(in_line(&path).await?, line);

    // The writer's neighbour goes first: the other reader still holds.
    stop(second).await?;
    stop(first).await?;
    order.wait_for("writer begins").await?;
    stop(writer).await?;
    order.wait_for("third begins").await?;
    stop(third).await?;
    let labels = order.labels()?;
    let expected = [
        "first begins",
        "second begins",
        "second stops",
        "first stops",
        "writer begins",
        "writer stops",
        "third begins",
        "third stops",
    ];
    assert_eq!(labels, expected);
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_writer_that_gives_up_lets_the_readers_behind_it_in() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let reader = hold(&path, "acquire-read", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let writer = hold(&path, "acquire-write", "true").await?;
    writer.wait_for_text("standing in line").await?;
    let next = hold(&path, "acquire-read", &until_term(&order, "next")).await?;
    next.wait_for_text("standing in line").await?;
    writer.signal(Signal::TERM)?;
    writer.ended().await?;
    order.wait_for("next begins").await?;
    stop(next).await?;
    stop(reader).await
}

#[tokio::test]
async fn both_formats_name_readers_and_writers_as_their_peers_do() -> Result<()> {
    let server = zookeeper::shared().await;
    for (format, operation, before, after, hyphens) in [
        ("curator", "acquire-read", "_c_", "-__READ__", 4),
        ("curator", "acquire-write", "_c_", "-__WRIT__", 4),
        ("kazoo", "acquire-read", "", "__rlock__", 0),
        ("kazoo", "acquire-write", "", "__lock__", 0),
    ] {
        let path = zookeeper::unique_path();
        let ended = Program::wok()?
            .args(["hold", "read-write-lock", "--mount", &path, "--connect", server.address()])
            .args(["--config", &format!("format={format}"), operation])
            .args(["--", "sh", "-c", "echo $WOK_CLAIM_PATH"])
            .run()
            .await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let name = ended.stdout.trim().rsplit('/').next().context("a name")?.to_owned();
        let uuid = name.strip_prefix(before).and_then(|name| name.split_once(after));
        let (uuid, counter) = uuid.with_context(|| name.clone())?;
        assert_eq!((uuid.matches('-').count(), uuid.len()), (hyphens, 32 + hyphens), "{name}");
        assert_eq!(counter.len(), 10, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn daemons_read_together_and_one_that_writes_comes_after_them() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root, directory) = (OrderFile::new()?, zookeeper::unique_path(), scratch::dir()?);
    let daemon = |name: &str, operation: &str| -> Result<Running> {
        let config = directory.path().join(format!("{name}.toml"));
        let script = serde_json::to_string(&until_term(&order, name))?;
        let address = server.address();
        let text = format!(
            r#"
[zookeeper]
connect = "{address}"
root = "{root}"

[recipes.index]
module = "read-write-lock"
mount = "/index"
run = {{ call = "{operation}" }}
while-held = {{ exec = ["sh", "-c", {script}], stop-timeout = "1s" }}
"#
        );
        fs::write(&config, text)?;
        Program::wok()?.args(["run".as_ref(), config.as_os_str()]).start()
    };
    let first = daemon("first", "acquire-read")?;
    order.wait_for("first begins").await?;
    let second = daemon("second", "acquire-read")?;
    order.wait_for("second begins").await?;
    let writer = daemon("writer", "acquire-write")?;
    writer.wait_for_text("standing in line").await?;
    stop(first).await?;
    stop(second).await?;
    order.wait_for("writer begins").await?;
    stop(writer).await?;
    let labels = order.labels()?;
    let place = |label: &str| labels.iter().position(|it| it == label);
    assert!(place("second begins") < place("first stops"), "{labels:?}");
    assert!(place("second stops") < place("writer begins"), "{labels:?}");
    Ok(())
}
