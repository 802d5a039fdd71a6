//! `wok run`: the daemon on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod restart;
mod terminal;
mod unkillable;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use wok_tests::admin::{self, Admin};
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::proxy::Proxy;
use wok_tests::{scratch, zookeeper};

/// A daemon with one election whose leader runs a script.
struct Daemon {
    _directory: tempfile::TempDir,
    config: PathBuf,
}

impl Daemon {
    fn new(address: &str, root: &str, script: &str) -> Result<Self> {
        Self::with(address, root, script, "")
    }

    /// With more keys for its `while-held`, each behind a comma.
    fn with(address: &str, root: &str, script: &str, more: &str) -> Result<Self> {
        let directory = scratch::dir()?;
        let config = directory.path().join("wok.toml");
        let script = serde_json::to_string(script)?;
        let text = format!(
            r#"
[zookeeper]
connect = "{address}"
session-timeout = "4s"
root = "{root}"

[recipes.scheduler]
module = "leader-election"
mount = "/election/scheduler"
run = {{ call = "volunteer" }}
while-held = {{ exec = ["sh", "-c", {script}], stop-timeout = "1s"{more} }}
"#
        );
        fs::write(&config, text)?;
        Ok(Daemon { _directory: directory, config })
    }

    fn start(&self) -> Result<Running> {
        Program::wok()?.args([Path::new("run"), &self.config]).start()
    }
}

/// A command that says when it begins and when it is asked to stop.
fn polite(order: &OrderFile, name: &str) -> String {
    let stop = order.append(&format!("{name} stops")).replace('\'', "'\\''");
    let begin = order.append(&format!("{name} leads $WOK_FENCE"));
    format!("trap '{stop}; exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

async fn leads(order: &OrderFile, name: &str, times: usize) -> Result<i64> {
    let prefix = format!("{name} leads ");
    eventually(&format!("{name} to lead {times} times"), async || {
        let labels = order.labels()?;
        let fences: Vec<i64> =
            labels.iter().filter_map(|label| label.strip_prefix(&prefix)?.parse().ok()).collect();
        Ok(fences.get(times - 1).copied())
    })
    .await
}

#[tokio::test]
async fn term_stops_the_command_first_and_hands_over_to_the_next_daemon() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let first = Daemon::new(server.address(), &root, &polite(&order, "first"))?;
    let second = Daemon::new(server.address(), &root, &polite(&order, "second"))?;
    let first = first.start()?;
    leads(&order, "first", 1).await?;
    let second = second.start()?;
    second.wait_for_text("standing in line").await?;
    first.signal(Signal::TERM)?;
    assert_eq!(first.ended().await?.code(), Some(0));
    leads(&order, "second", 1).await?;
    let labels = order.labels()?;
    let stops = labels.iter().position(|label| label == "first stops");
    let next = labels.iter().position(|label| label.starts_with("second leads"));
    assert!(stops.is_some() && stops < next, "{labels:?}");
    second.signal(Signal::INT)?;
    assert_eq!(second.ended().await?.code(), Some(0));
    let admin = Admin::connect(server.address()).await?;
    assert_eq!(admin.children(&format!("{root}/election/scheduler")).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_killed_daemon_takes_its_command_along_before_another_leads() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let holder = format!(
        "{}; trap '' TERM; while :; do {}; sleep 0.05; done",
        order.append("first leads $WOK_FENCE"),
        order.append("first acts"),
    );
    let first = Daemon::new(server.address(), &root, &holder)?;
    let second = Daemon::new(server.address(), &root, &polite(&order, "second"))?;
    let first = first.start()?;
    let before = leads(&order, "first", 1).await?;
    let second = second.start()?;
    second.wait_for_text("standing in line").await?;
    first.signal(Signal::KILL)?;
    let after = leads(&order, "second", 1).await?;
    assert!(after > before);
    let labels = order.labels()?;
    let next = labels.iter().position(|label| label.starts_with("second leads"));
    let last = labels.iter().rposition(|label| label == "first acts");
    assert!(last < next, "{labels:?}");
    Ok(())
}

#[tokio::test]
async fn after_an_expired_session_the_daemon_leads_again_on_a_new_one() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let daemon = Daemon::new(proxy.address(), &root, &polite(&order, "it"))?;
    let running = daemon.start()?;
    let before = leads(&order, "it", 1).await?;
    let sessions = proxy.sessions();
    let [session] = sessions.as_slice() else { panic!("one session in {sessions:?}") };
    admin::expire(server.address(), session).await?;
    let after = leads(&order, "it", 2).await?;
    assert!(after > before);
    let lines = running.lines();
    let connected = lines.iter().filter(|line| line.text.contains(" connected "));
    assert_eq!(connected.count(), 2, "{lines:#?}");
    running.signal(Signal::TERM)?;
    assert_eq!(running.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn candidates_whose_znodes_somebody_has_deleted_stand_again() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let first = Daemon::new(server.address(), &root, &polite(&order, "first"))?;
    let second = Daemon::new(server.address(), &root, &polite(&order, "second"))?;
    let first = first.start()?;
    leads(&order, "first", 1).await?;
    let second = second.start()?;
    // From then on it waits for its turn.
    second.wait_for_text("goes on without a claim").await?;
    let election = format!("{root}/election/scheduler");
    let admin = Admin::connect(server.address()).await?;
    let mut gone: Vec<String> = Vec::new();
    // Once more as soon as both stand again, whatever has become of the leader's command by then.
    for _ in 0..2 {
        let are_others = |now: &[String]| now.len() == 2 && !now.iter().any(|it| gone.contains(it));
        let mut line = admin.wait_children(&election, "two candidates", are_others).await?;
        // The one that waits first: its turn comes when it has no place in line any more.
        line.sort_by_key(|name| std::cmp::Reverse(name.rsplit('-').next().map(str::to_owned)));
        for candidate in &line {
            admin.delete(&format!("{election}/{candidate}")).await?;
        }
        gone.append(&mut line);
    }
    let are_others = |now: &[String]| now.len() == 2 && !now.iter().any(|it| gone.contains(it));
    admin.wait_children(&election, "both to stand again", are_others).await?;
    second.wait_for_text("withdrawn").await?;
    first.signal(Signal::TERM)?;
    assert_eq!(first.ended().await?.code(), Some(0));
    // Unless it leads already.
    leads(&order, "second", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_waits_for_an_ensemble_that_is_not_there_yet() -> Result<()> {
    let mut server = zookeeper::Server::start(zookeeper::Options::default()).await?;
    server.stop().await?;
    let order = OrderFile::new()?;
    let daemon = Daemon::new(server.address(), "/late", &polite(&order, "it"))?;
    let running = daemon.start()?;
    running.wait_for_text("no session").await?;
    server.restart().await?;
    leads(&order, "it", 1).await?;
    running.signal(Signal::TERM)?;
    assert_eq!(running.ended().await?.code(), Some(0));
    Ok(())
}
