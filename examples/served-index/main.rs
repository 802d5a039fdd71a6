//! An index that is rebuilt under a write lock, and served under a read lock by the same process.
//!
//! `served-index <servers> <mount> <command>...` acquires the lock to write and starts the command. The
//! command rebuilds the index, sends `USR1` to `$SERVED_INDEX_PID`, and goes on as the one that serves
//! it: from then on the lock is held to read, so others may read the index as well, and a process that
//! wants to rebuild it waits for all of them. TERM ends it. The README beside this file has a command to try.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use wok::guardian::{self, Attendance, GuardedCommand};
use wok::holding::{CommandEnd, Instruction};
use wok::{Held, Host, Recipe};

fn main() -> ExitCode {
    // The guardian of a command is this program once more.
    if let Some(code) = guardian::main_if_asked() {
        return code;
    }
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("served-index: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<ExitCode> {
    guardian::adopt_orphans()?;
    let mut words = std::env::args_os().skip(1);
    let mut word = || words.next()?.into_string().ok();
    let (Some(servers), Some(mount)) = (word(), word()) else {
        bail!("usage: served-index <servers> <mount> <command>...");
    };
    let command: Vec<OsString> = words.collect();

    let lock = Recipe::new("read-write-lock", mount);
    let host = Host::builder(servers).participants(1).recipe("index", lock).open().await?;
    let held = host.acquire("index", "acquire-write").await?;
    say(&format!("rebuilding with fence {}", held.fence()))?;
    let end = serve(&held, command).await?;
    held.release().await;
    host.shut_down().await;
    match end {
        CommandEnd::Ended(outcome) => Ok(ExitCode::from(outcome.exit_code().unwrap_or(1))),
        other => bail!("the command was ended: {other:?}"),
    }
}

/// Runs the command; when it says that the index is rebuilt, goes on as a reader.
async fn serve(held: &Held, words: Vec<OsString>) -> Result<CommandEnd> {
    let (mut rebuilt, mut term) =
        (signal(SignalKind::user_defined1())?, signal(SignalKind::terminate())?);
    let command = GuardedCommand {
        words,
        env: vec![("SERVED_INDEX_PID".into(), std::process::id().to_string().into())],
        stop_signal: rustix::process::Signal::TERM,
        stop_timeout: Duration::from_secs(1),
        attendance: Attendance::Unattended,
    };
    let (instruct, instructions) = mpsc::channel(1);
    let going_on = async {
        rebuilt.recv().await.context("signals come to an end")?;
        let participant = held.participant();
        participant.call("downgrade").await?;
        let reading = participant.held().context("nothing is held after the downgrade")?;
        say(&format!("serving with fence {}", reading.fence))?;
        std::future::pending::<Result<()>>().await
    };
    let stopping = async {
        term.recv().await;
        // A full or closed channel: the command is being stopped, or has ended.
        instruct.try_send(Instruction::Stop).ok();
        std::future::pending::<()>().await;
    };
    // Whatever ends it drops the command's guard, and that ends the command.
    tokio::select! {
        end = held.run_instructed(command, instructions) => Ok(end?),
        failed = going_on => Err(failed.err().context("a downgrade that is over goes on")?),
        () = stopping => bail!("a stop that is under way goes on"),
    }
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
