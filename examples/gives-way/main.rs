//! A report that is computed in steps under a lock, and gives way between two of them to who asks for it.
//!
//! `gives-way <servers> <mount> <steps> <command>...` acquires the lock and runs the command once for each
//! step, with the step's number in `$GIVES_WAY_STEP`. When somebody has asked for the lock meanwhile, it
//! gives the lock back after the step, stands in line again and goes on where it was. The README beside
//! this file has a command to try.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wok::base::{Base, BaseOptions, Sessions, user_cache};
use wok::guardian::{self, Attendance, GuardedCommand};
use wok::guest::{Limits, Module, Mount};
use wok::holding::{Acquire, Attempt, CommandEnd, acquire, run_while_held};
use wok::modules::ModuleSource;
use wok::participant::{Call, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, Held, SeatLimits};

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

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

    let host = Base::new(BaseOptions {
        participants: 1,
        memory: 16 << 20,
        cache: user_cache(),
        connect: ConnectOptions::new(servers, SESSION_TIMEOUT),
        sessions: Sessions::at_most(1),
    })?;
    let session = host.open_session().await?;
    let module = host.load(&ModuleSource::Stock("lock".to_owned()), None)?;
    // It hears who asks for the lock, and gives the lock back when it says so itself.
    let config = json!({ "revocable": true, "consent": "by-release" });
    let join = Join {
        recipe: "report".to_owned(),
        config: module.configuration(Some(&config))?,
        mount: Mount::new(&mount)?,
        limits: Limits::default(),
        seat: SeatLimits::default(),
        owner: format!("gives-way {}", std::process::id()),
        witness: None,
        module: module.clone(),
    };
    let (participant, follower) = Participant::join(host.tasks(), &session, join)?;
    let mut report = Report { host, module, participant, follower, is_asked: Cell::new(false) };
    let done = report.compute(steps, &command).await;
    let Report { host, participant, mut follower, .. } = report;
    participant.leave();
    while follower.next().await.is_some() {}
    host.shut_down().await;
    session.close().await;
    done
}

struct Report {
    host: Base,
    module: Module,
    participant: Participant,
    follower: Follower,
    /// Whether somebody has asked for the lock since it was acquired.
    is_asked: Cell<bool>,
}

impl Report {
    async fn compute(&mut self, steps: u32, command: &[OsString]) -> Result<()> {
        let mut held = self.acquire().await?;
        for step in 1..=steps {
            say(&format!("step {step} with fence {}", held.fence))?;
            self.work(&held, step, command).await?;
            if self.is_asked.get() && step < steps {
                say(&format!("gives way after step {step}"))?;
                self.release().await?;
                held = self.acquire().await?;
            }
        }
        Ok(())
    }

    async fn acquire(&mut self) -> Result<Held> {
        self.is_asked.set(false);
        let attempt = Acquire {
            arguments: self.module.arguments("acquire", &Value::Null)?,
            deadline: None,
            withdrawn: CancellationToken::new(),
        };
        let is_asked = &self.is_asked;
        let hear = |notice: &Notice| note(notice, is_asked);
        match acquire(&self.participant, &mut self.follower, attempt, hear).await {
            Attempt::Held(held) => Ok(held),
            other => bail!("the report cannot be computed: {other}"),
        }
    }

    async fn release(&self) -> Result<()> {
        let arguments = self.module.arguments("release", &Value::Null)?;
        let release = Call { arguments, deadline: None, withdrawn: None };
        match self.participant.call(release).await?.value {
            Ok(_) => Ok(()),
            Err(error) => bail!("the lock is not given back: {error}"),
        }
    }

    /// One step. The lock is not given back before the command has ended.
    async fn work(&mut self, held: &Held, step: u32, words: &[OsString]) -> Result<()> {
        let command = GuardedCommand {
            words: words.to_vec(),
            env: vec![("GIVES_WAY_STEP".into(), step.to_string().into())],
            stop_signal: rustix::process::Signal::TERM,
            stop_timeout: Duration::from_secs(1),
            attendance: Attendance::Unattended,
        };
        // Nobody instructs the command: it ends by itself.
        let (_instruct, instructions) = mpsc::channel(1);
        let is_asked = &self.is_asked;
        let hear = |notice: &Notice| note(notice, is_asked);
        let (tasks, participant) = (self.host.tasks(), &self.participant);
        let follower = &mut self.follower;
        match run_while_held(tasks, participant, follower, held, command, instructions, hear)
            .await?
        {
            CommandEnd::Ended(outcome) if outcome.exit_code() == Some(0) => Ok(()),
            other => bail!("step {step} failed: {other:?}"),
        }
    }
}

/// Notes that somebody asks for the lock.
fn note(notice: &Notice, is_asked: &Cell<bool>) {
    if let Notice::Emitted { event, .. } = notice
        && event == "revoke-requested"
    {
        is_asked.set(true);
    }
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
