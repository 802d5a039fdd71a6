//! A report that is computed in steps under a lock, and gives way between two of them to who asks for it.
//!
//! `gives-way <servers> <mount> <steps> <command>...` acquires the lock and runs the command once for each
//! step, with the step's number in `$GIVES_WAY_STEP`. When somebody has asked for the lock meanwhile, it
//! gives the lock back after the step, stands in line again and goes on where it was. The README beside
//! this file has a command to try.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use serde_json::json;
use wok::guardian::{self, Attendance, GuardedCommand};
use wok::holding::CommandEnd;
use wok::participant::{Follower, Notice};
use wok::{Host, Recipe};

fn main() -> ExitCode {
    // The guardian of a command is this program once more.
    if let Some(code) = guardian::main_if_asked() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gives-way: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<()> {
    guardian::adopt_orphans()?;
    let mut words = std::env::args_os().skip(1);
    let mut word = || words.next()?.into_string().ok();
    let (Some(servers), Some(mount), Some(steps)) = (word(), word(), word()) else {
        bail!("usage: gives-way <servers> <mount> <steps> <command>...");
    };
    let steps: u32 = steps.parse().context("how many steps there are")?;
    let command: Vec<OsString> = words.collect();

    // It hears who asks for the lock, and gives the lock back when it says so itself.
    let config = json!({ "revocable": true, "consent": "by-release" });
    let lock = Recipe::new("lock", mount).config(config);
    let host = Host::builder(servers).participants(2).recipe("report", lock).open().await?;
    compute(&host, steps, &command).await?;
    host.shut_down().await;
    Ok(())
}

async fn compute(host: &Host, steps: u32, command: &[OsString]) -> Result<()> {
    let mut held = host.acquire("report", "acquire").await?;
    let mut told = held.participant().follow();
    for step in 1..=steps {
        say(&format!("step {step} with fence {}", held.fence()))?;
        // The lock is not given back before the command has ended.
        match held.run(guarded(command, step)).await? {
            CommandEnd::Ended(outcome) if outcome.exit_code() == Some(0) => {}
            other => bail!("step {step} failed: {other:?}"),
        }
        if is_asked(&mut told) && step < steps {
            say(&format!("gives way after step {step}"))?;
            held.release().await;
            held = host.acquire("report", "acquire").await?;
            told = held.participant().follow();
        }
    }
    held.release().await;
    Ok(())
}

fn guarded(words: &[OsString], step: u32) -> GuardedCommand {
    GuardedCommand {
        words: words.to_vec(),
        env: vec![("GIVES_WAY_STEP".into(), step.to_string().into())],
        stop_signal: rustix::process::Signal::TERM,
        stop_timeout: Duration::from_secs(1),
        attendance: Attendance::Unattended,
    }
}

/// Whether somebody has asked for the lock by now.
fn is_asked(told: &mut Follower) -> bool {
    let mut is_asked = false;
    while let Some(Some(notice)) = told.next().now_or_never() {
        is_asked |= matches!(notice, Notice::Emitted { event, .. } if event == "revoke-requested");
    }
    is_asked
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
