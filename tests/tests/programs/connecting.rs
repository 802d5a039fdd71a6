//! Commands whose ZooKeeper is not there yet: they wait, say so once, and can be stopped meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use wok_tests::patience::AT_ONCE;
use wok_tests::process::{Program, Running, Signal};
use wok_tests::proxy::Proxy;
use wok_tests::zookeeper::{self, Options, Server};

/// Nobody listens there.
const NOWHERE: &str = "127.0.0.1:1";

/// Longer than any machine takes to start a server.
const PATIENT: &str = "--connect-timeout=1h";

fn lock(address: &str, options: &[&str]) -> Result<Program> {
    let path = zookeeper::unique_path();
    Ok(Program::wok()?.args(["lock", "--connect", address]).args(options).args([
        &path,
        "--",
        "echo",
        "held at last",
    ]))
}

/// A command that has said that it waits.
async fn waiting(options: &[&str]) -> Result<Running> {
    let lock = lock(NOWHERE, options)?.start()?;
    lock.wait_for_text("trying for").await?;
    Ok(lock)
}

#[tokio::test]
async fn a_lock_waits_for_a_server_that_starts_later_and_says_so_once() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    server.kill();
    let lock = lock(server.address(), &[PATIENT])?.start()?;
    let said = lock.wait_for_text("trying for 1h (--connect-timeout)").await?.text;
    for told in ["cannot reach ZooKeeper at", server.address(), "connection refused"] {
        assert!(said.contains(told), "{told:?} is not in {said}");
    }
    server.restart().await?;
    let ended = lock.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "held at last\n");
    assert_eq!(ended.stderr.matches("trying for").count(), 1, "{}", ended.stderr);
    Ok(())
}

/// A server that has come up already, behind a port that opens late: how long a server takes to start
/// is the machine's affair.
#[tokio::test]
async fn by_default_a_lock_waits_for_a_server_that_comes_five_seconds_late() -> Result<()> {
    let proxy = Proxy::start(zookeeper::shared().await.address())?;
    proxy.refuse();
    let lock = lock(proxy.address(), &[])?.start()?;
    lock.wait_for_text("trying for 15s (--connect-timeout)").await?;
    // tidy: how late the server comes, of a promise of time.
    tokio::time::sleep(Duration::from_secs(5)).await;
    proxy.welcome();
    let ended = lock.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "held at last\n");
    assert_eq!(ended.stderr.matches("trying for").count(), 1, "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn with_no_patience_it_is_told_at_once_and_with_some_when_that_is_over() -> Result<()> {
    let begun = Instant::now();
    let ended = lock(NOWHERE, &["--connect-timeout", "0s"])?.run().await?;
    assert!(begun.elapsed() < AT_ONCE, "told after {:?}", begun.elapsed());
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    assert!(!ended.stderr.contains("trying"), "{}", ended.stderr);

    let begun = Instant::now();
    let ended = lock(NOWHERE, &["--connect-timeout", "500ms", "--output", "json"])?.run().await?;
    assert!(begun.elapsed() >= Duration::from_millis(500), "told after {:?}", begun.elapsed());
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    let lines: Vec<Value> =
        ended.stderr.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let [connecting, failure] = &lines[..] else { panic!("{}", ended.stderr) };
    assert_eq!(connecting["event"], "connecting");
    assert_eq!(connecting["connect-timeout"], "500ms");
    assert_eq!(failure["error"], "unreachable");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("check --connect, or give --connect-timeout more"), "{message}");
    Ok(())
}

#[tokio::test]
async fn what_waits_for_a_server_ends_with_its_wait_and_by_signals() -> Result<()> {
    let ended = lock(NOWHERE, &[PATIENT, "--wait", "300ms"])?.run().await?;
    assert_eq!(ended.code(), Some(75), "{ended:?}");
    assert!(ended.stderr.contains("no session within --wait"), "{}", ended.stderr);

    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let lock = waiting(&[PATIENT]).await?;
        lock.signal(signal)?;
        let ended = lock.ended().await?;
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.contains("before anything was held"), "{}", ended.stderr);
    }
    Ok(())
}
