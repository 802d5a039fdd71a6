//! What follows when a command ends by itself: `restart` in `while-held`.

use anyhow::Result;
use wok_tests::admin::Admin;
use wok_tests::process::{OrderFile, Signal};
use wok_tests::zookeeper;

use super::{Daemon, leads};

/// A command that ends with a code of its own each time it is run.
fn brief(order: &OrderFile, codes: &str) -> String {
    let (begin, file) = (order.append("it leads $WOK_FENCE"), order.path().display());
    format!("{begin}; set -- {codes}; shift $(($(wc -l < '{file}') - 1)); exit $1")
}

/// Runs the daemon until it leaves for good, and looks how often the command has run by then.
async fn check(restart: &str, codes: &str, said: [&str; 2]) -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let keys = format!(", restart = \"{restart}\"");
    let daemon = Daemon::with(server.address(), &root, &brief(&order, codes), &keys)?;
    let running = daemon.start()?;
    running.wait_for_text("leaving for good").await?;
    let mount = format!("{root}/election/scheduler");
    admin.wait_children(&mount, "to leave", <[_]>::is_empty).await?;
    running.signal(Signal::TERM)?;
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let labels = order.labels()?;
    assert_eq!(labels.len(), codes.split(' ').count(), "{labels:?}");
    for text in said {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn on_failure_runs_a_command_again_until_it_succeeds() -> Result<()> {
    check("on-failure", "3 1 0", ["command failed", "exited with 3"]).await
}

#[tokio::test]
async fn never_runs_a_command_once_however_it_ends() -> Result<()> {
    check("never", "0", ["command ended", "exited with 0"]).await?;
    check("never", "7", ["command failed", "exited with 7"]).await
}

#[tokio::test]
async fn without_a_word_a_command_runs_again_also_after_a_success() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let daemon = Daemon::new(server.address(), &root, &brief(&order, "0 5 0 0"))?;
    let running = daemon.start()?;
    leads(&order, "it", 3).await?;
    running.signal(Signal::TERM)?;
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    for text in ["command ended", "command failed", "exited with 5", "leaving, to join again"] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    Ok(())
}
