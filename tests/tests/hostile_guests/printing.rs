//! What a component has printed: bounded, and nothing that a terminal obeys.

use anyhow::Result;
use wok_tests::guests::guest_file;
use wok_tests::process::{Ended, Program};
use wok_tests::zookeeper;

/// `wok hold` of the hostile guest, with a command that must not run.
async fn hold(operation: &str, arguments: &[&str]) -> Result<Ended> {
    let server = zookeeper::shared().await;
    let (_directory, file) = guest_file("hostile")?;
    Program::wok()?
        .args(["hold", "--connect", server.address(), "--mount", &zookeeper::unique_path()])
        .arg(file)
        .arg(operation)
        .args(arguments)
        .args(["--", "echo", "it runs"])
        .run()
        .await
}

#[tokio::test]
async fn a_flood_of_the_log_is_cut_off_and_counted() -> Result<()> {
    let ended = hold("log-flood", &["count=900", "bytes=1000"]).await?;
    // It holds nothing in the end.
    assert_eq!(ended.code(), Some(75), "{ended:?}");
    let lines = ended.stderr.lines().filter(|line| line.contains("xxxxxxxx")).count();
    // 64 KiB a second; two seconds' worth can go at once.
    assert!((10..=200).contains(&lines), "{lines} lines");
    Ok(())
}

#[tokio::test]
async fn the_count_of_dropped_lines_is_logged() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, file) = guest_file("hostile")?;
    let ended = Program::wok()?
        .env("WOK_LOG", "warn")
        .args(["hold", "--connect", server.address(), "--mount", &zookeeper::unique_path()])
        .arg(file)
        .args(["log-flood", "count=900", "bytes=1000", "--", "true"])
        .run()
        .await?;
    assert!(ended.stderr.contains("log lines were dropped"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_terminal_is_told_nothing_that_it_obeys() -> Result<()> {
    for (operation, argument) in [
        ("emit-as", "event=\u{1b}[2J\u{9b}31m\u{202e}evil"),
        ("panic", "message=\u{1b}[2J\u{9b}31m\u{202e}evil"),
        ("escape-get-data", "path=/\u{1b}[2J\u{9b}31m\u{202e}evil"),
    ] {
        let ended = hold(operation, &[argument]).await?;
        assert!(ended.stderr.contains("evil"), "{ended:?}");
        for obeyed in ['\u{1b}', '\u{9b}', '\u{202e}'] {
            assert!(!ended.stderr.contains(obeyed), "{operation}: {obeyed:?} in {ended:?}");
        }
    }
    Ok(())
}
