//! The program of `examples/served-index`: it goes on as a reader, and its command goes on with it. And what
//! becomes of a writer that nobody knows to be one.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wok::participant::{Call, CallError, Ending, Loss, Notice};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::guide::play_example_program;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{OrderFile, Program, Running, Signal, Stream};
use wok_tests::proxy::{Action, Match};
use wok_tests::scene::Scene;
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

#[tokio::test]
async fn who_withdraws_a_downgrade_does_not_hear_that_it_writes_while_others_may_read() -> Result<()>
{
    let lock = Scene::open("read-write-lock").await?;
    let (writer, mut follower) = lock.stock.join()?;
    lock.value(&writer, "acquire-write", json!({})).await?;
    assert!(writer.presence().tenure().is_some());
    let downgrade = lock.proxy.inject(Match::opcode(Opcode::Multi), Action::StallReplies);
    let withdrawn = CancellationToken::new();
    let call = Call {
        arguments: lock.stock.arguments("downgrade", &json!({}))?,
        deadline: None,
        withdrawn: Some(withdrawn.clone()),
    };
    let withdrawing = async {
        eventually("the downgrade", async || Ok(downgrade.has_struck().then_some(()))).await?;
        withdrawn.cancel();
        Ok::<_, anyhow::Error>(())
    };
    let (answer, sent) =
        tokio::join!(within("the downgrade's answer", writer.call(call)), withdrawing);
    sent?;
    assert_eq!(answer?, Err(CallError::Cancelled));
    assert_eq!(writer.presence().tenure(), None, "nobody knows whether it writes");
    // The server has carried it out, so others read.
    let reader = hold(&lock.path, "acquire-read", "true").await?;
    assert_eq!(reader.ended().await?.code(), Some(0));
    assert_eq!(writer.presence().tenure(), None);
    let again = Call {
        arguments: lock.stock.arguments("acquire-write", &json!({}))?,
        deadline: Some(Instant::now() + Duration::from_millis(100)),
        withdrawn: None,
    };
    let answer = within("another answer", writer.call(again)).await?;
    assert!(matches!(answer, Err(CallError::Cancelled | CallError::Ended)), "{answer:?}");
    lock.proxy.release();
    let ending = within("the writer's end", async {
        loop {
            if let Some(Notice::Ended(ending)) = follower.next().await {
                return ending;
            }
        }
    })
    .await?;
    // On a slow machine the session may be over by then.
    let is_told =
        matches!(ending, Ending::Lost(Loss::Znode { may_be_own: true, .. } | Loss::Session(_)));
    assert!(is_told, "{ending:?}");
    Ok(())
}
