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
use tokio_util::sync::CancellationToken;
use wok::base::{Base, BaseOptions, Sessions, user_cache};
use wok::guardian::{self, Attendance, GuardedCommand};
use wok::guest::{Limits, Mount};
use wok::holding::{Acquire, Attempt, CommandEnd, Instruction, acquire, run_while_held};
use wok::modules::ModuleSource;
use wok::participant::{Call, Follower, Join, Participant};
use wok::session::{ConnectOptions, Held, SeatLimits};

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

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

    let host = Base::new(BaseOptions {
        participants: 1,
        memory: 16 << 20,
        cache: user_cache(),
        connect: ConnectOptions::new(servers, SESSION_TIMEOUT),
        sessions: Sessions::at_most(1),
    })?;
    let session = host.open_session().await?;
    let module = host.load(&ModuleSource::Stock("read-write-lock".to_owned()), None)?;
    let nothing = serde_json::Value::Null;
    let join = Join {
        recipe: "index".to_owned(),
        config: module.configuration(None)?,
        mount: Mount::new(&mount)?,
        limits: Limits::default(),
        seat: SeatLimits::default(),
        owner: format!("served-index {}", std::process::id()),
        witness: None,
        module: module.clone(),
    };
    let (participant, mut follower) = Participant::join(host.tasks(), &session, join)?;
    let attempt = Acquire {
        arguments: module.arguments("acquire-write", &nothing)?,
        deadline: None,
        withdrawn: CancellationToken::new(),
    };
    let held = match acquire(&participant, &mut follower, attempt, |_| {}).await {
        Attempt::Held(held) => held,
        other => bail!("the index cannot be rebuilt: {other}"),
    };
    say(&format!("rebuilding with fence {}", held.fence))?;

    let downgrade = Call {
        arguments: module.arguments("downgrade", &nothing)?,
        deadline: None,
        withdrawn: None,
    };
    let end = serve(&host, &participant, &mut follower, &held, command, downgrade).await?;
    participant.leave();
    while follower.next().await.is_some() {}
    host.shut_down().await;
    session.close().await;
    match end {
        CommandEnd::Ended(outcome) => Ok(ExitCode::from(outcome.exit_code().unwrap_or(1))),
        other => bail!("the command was ended: {other:?}"),
    }
}

/// Runs the command; when it says that the index is rebuilt, goes on as a reader.
async fn serve(
    host: &Base,
    participant: &Participant,
    follower: &mut Follower,
    held: &Held,
    words: Vec<OsString>,
    downgrade: Call,
) -> Result<CommandEnd> {
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
    let tasks = host.tasks();
    let running = run_while_held(tasks, participant, follower, held, command, instructions, |_| {});
    let going_on = async {
        rebuilt.recv().await.context("signals come to an end")?;
        let answer = participant.call(downgrade).await?;
        let reading = answer.claim.with_context(|| format!("no downgrade: {:?}", answer.value))?;
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
        end = running => Ok(end?),
        failed = going_on => Err(failed.err().context("a downgrade that is over goes on")?),
        () = stopping => bail!("a stop that is under way goes on"),
    }
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
