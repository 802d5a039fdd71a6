//! The program of `examples/served-index`: it goes on as a reader, and its command goes on with it.

use anyhow::{Context, Result};
use wok_tests::admin::Admin;
use wok_tests::guide::play_example_program;
use wok_tests::process::{OrderFile, Program, Running, Signal, Stream};
use wok_tests::zookeeper;

use super::commands::hold;

/// The example's program, with a shell script as its command.
async fn index(path: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    Program::new(env!("CARGO_BIN_EXE_served-index"))
        .args([server.address(), path, "sh", "-c", script])
        .start()
}

/// A fence that a program told.
fn fence(text: &str, before: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(before));
    Ok(line.with_context(|| format!("{before:?} in {text}"))?.trim().parse()?)
}

#[tokio::test]
async fn an_index_is_served_by_who_rebuilt_it_and_no_writer_gets_in_between() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    // It rebuilds until a line is in the file, and serves from then on.
    let go = order.path().display();
    let script = format!(
        "trap '{}; exit 0' TERM; {}; until grep -q ' go$' '{go}'; do sleep 0.05; done; \
         kill -USR1 $SERVED_INDEX_PID; while :; do sleep 0.05; done",
        order.append("index stops").replace('\'', "'\\''"),
        order.append("index begins $WOK_FENCE"),
    );
    let served = index(&path, &script).await?;
    let rebuilding = served.wait_for_text("rebuilding with fence").await?;
    let rebuilding = fence(&rebuilding.text, "rebuilding with fence ")?;
    order.wait_for(&format!("index begins {rebuilding}")).await?;
    let writer = hold(&path, "acquire-write", &order.append("writer $WOK_FENCE")).await?;
    writer.wait_for_text("standing in line").await?;
    let line = admin.children(&path).await?;
    let first = line.iter().find(|name| name.ends_with("0000000000"));
    let before = first.with_context(|| format!("who rebuilds is the first: {line:?}"))?;

    let said = Program::shell(&order.append("go")).run().await?;
    assert_eq!(said.code(), Some(0));
    served.wait_for_text("serving with fence").await?;
    let children = admin.children(&path).await?;
    let after = before.replace("__WRIT__", "__READ__");
    assert!(children.contains(&after) && !children.contains(before), "{children:?}");
    assert_eq!(children.len(), 2, "{children:?}");

    // Others read beside it when they come before the next writer, and wait behind it.
    let reader = hold(&path, "acquire-read", &order.append("reader")).await?;
    reader.wait_for_text("standing in line").await?;
    assert_eq!(served.status(), None, "the command goes on");
    served.signal(Signal::TERM)?;
    assert_eq!(served.ended().await?.code(), Some(0));
    assert_eq!(writer.ended().await?.code(), Some(0));
    assert_eq!(reader.ended().await?.code(), Some(0));
    let labels = order.labels()?;
    let names: Vec<_> = labels.iter().map(|it| it.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["index", "go", "index", "writer", "reader"], "{labels:?}");
    let text = served.text(Stream::Stdout);
    let serving = fence(&text, "serving with fence ")?;
    let writing = labels[3].rsplit(' ').next().context("a fence")?.parse::<u64>()?;
    // The reader's znode is younger than the writer's behind it; writers' fences grow.
    assert!(rebuilding < writing && writing < serving, "{rebuilding} {writing} {serving}");
    Ok(())
}

#[tokio::test]
async fn readers_that_wait_are_let_in_by_a_downgrade() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let go = order.path().display();
    let script = format!(
        "trap 'exit 0' TERM; until grep -q ' go$' '{go}'; do sleep 0.05; done; \
         kill -USR1 $SERVED_INDEX_PID; while :; do sleep 0.05; done"
    );
    let served = index(&path, &script).await?;
    served.wait_for_text("rebuilding with fence").await?;
    let mut readers = Vec::new();
    for _ in 0..2 {
        let reader = hold(&path, "acquire-read", &order.append("reader")).await?;
        reader.wait_for_text("standing in line").await?;
        readers.push(reader);
    }
    assert_eq!(Program::shell(&order.append("go")).run().await?.code(), Some(0));
    for reader in &readers {
        assert_eq!(reader.ended().await?.code(), Some(0));
    }
    assert_eq!(served.status(), None, "it still serves");
    served.signal(Signal::TERM)?;
    assert_eq!(served.ended().await?.code(), Some(0));
    assert_eq!(order.labels()?, ["go", "reader", "reader"]);
    Ok(())
}

#[tokio::test]
async fn the_example_does_what_its_page_says() -> Result<()> {
    play_example_program("served-index", env!("CARGO_BIN_EXE_served-index")).await
}
