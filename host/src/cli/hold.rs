//! `wok hold`: runs a command while a claim is held.

mod daemon;

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connect::{duration, parsed};
use super::exit::{self, Failure, LossInWords};
use super::joining::{self, Called, Calling, Joining, Ready, Target, stopping};
use super::log::{LOG_FOR_ONE, log_to_stderr};
use super::output::Printer;
use super::signals;
use super::standard_input::StandardInput;
use super::told;
use crate::config::{StopSignal, check_stop};
use crate::epochs::Joined;
use crate::guardian::{self, Attendance, GuardedCommand, Outcome};
use crate::guest::values;
use crate::holding::{
    Acquire, Attempt, CommandEnd, Instruction, Seen, acquire, leave, run_while_held,
};
use crate::participant::{Ending, Follower, Notice, Participant};
use crate::session::{Held, Timing};
use crate::tasks::Tasks;

/// Run a command while an operation of a recipe holds a claim.
///
/// The command starts when the claim is held and is killed, with everything it started, before the
/// claim can be somebody else's. SIGTERM stops it in order; other signals are passed on. For an
/// operation that only answers, as who holds a lock, there is `wok call`. The recipe is one of the
/// running daemon's, or any module with --mount and --connect.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok hold orders acquire -- ./job.sh\n  \
    wok hold lock --mount /locks/backup --connect zk1:2181 acquire -- ./backup.sh\n  \
    wok hold ./my-lock.wasm --mount /locks/a --connect zk1:2181 --config format=kazoo \\\n      \
    acquire -- sh -c 'echo $WOK_FENCE'")]
pub(super) struct Arguments {
    #[command(flatten)]
    called: Called,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    options: HoldOptions,
}

/// What all commands that hold a claim can be told.
#[derive(Debug, Args)]
pub(super) struct HoldOptions {
    #[command(flatten)]
    joining: Joining,

    /// The signal that asks the command to stop: TERM, INT, QUIT, HUP, USR1, USR2 or WINCH.
    #[arg(
        long,
        help_heading = "Command",
        value_name = "SIGNAL",
        default_value = "TERM",
        value_parser = parsed::<StopSignal>
    )]
    stop_signal: StopSignal,

    /// How long the command then has until it is killed. Default: a tenth of the session timeout.
    #[arg(long, help_heading = "Command", value_name = "DURATION", value_parser = duration)]
    stop_timeout: Option<Duration>,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        match self.called.calling(&self.options.joining, StandardInput::OfTheCommand)? {
            Calling::OwnSession(target) => self.options.execute(target, self.command, printer),
            Calling::Daemon(daemon, call) => {
                prepare(printer)?;
                // What cannot be right in any session is refused before anything is asked for.
                if self.options.stop_timeout == Some(Duration::ZERO) {
                    self.options.stop_timeout(self.options.joining.timing())?;
                }
                daemon.ask(async |client| {
                    let command = |told: Option<Timing>| {
                        let timing = told.unwrap_or_else(|| self.options.joining.timing());
                        self.options.guarded(self.command, timing)
                    };
                    daemon::hold(&client, &call, command, printer).await
                })
            }
        }
    }
}

/// Before a command runs under guard.
fn prepare(printer: &Printer) -> Result<(), Failure> {
    printer.never_wait();
    log_to_stderr(LOG_FOR_ONE, printer);
    guardian::adopt_orphans()
        .map_err(|error| Failure::Module(format!("cannot become a subreaper: {error}")))
}

impl HoldOptions {
    /// Holds, runs, releases.
    pub(super) fn execute(
        self,
        target: Target,
        command: Vec<OsString>,
        printer: &Printer,
    ) -> Result<ExitCode, Failure> {
        prepare(printer)?;
        joining::runtime()?.block_on(self.connect_and_run(target, command, printer))
    }

    async fn connect_and_run(
        self,
        target: Target,
        command: Vec<OsString>,
        printer: &Printer,
    ) -> Result<ExitCode, Failure> {
        // What cannot fit into the timeout that is asked for is refused before anything connects;
        // the server may grant another one, so it is asked again then.
        self.stop_timeout(self.joining.timing())?;
        let ready = self.joining.prepare(&target)?;
        let mut signals = signals::receive(ready.tasks())
            .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
        let session = ready.open_session(&mut signals, printer).await?;
        let outcome = match self.stop_timeout(session.timing()) {
            Ok(stop_timeout) => {
                let command = self.with_stop_timeout(command, stop_timeout);
                join_and_run(&ready, &target, command, &mut signals, printer).await
            }
            Err(failure) => Err(failure),
        };
        signals::unless_asked_to_end(&mut signals, ready.close()).await;
        outcome
    }

    fn with_stop_timeout(&self, words: Vec<OsString>, stop_timeout: Duration) -> GuardedCommand {
        GuardedCommand {
            words,
            env: Vec::new(),
            stop_signal: self.stop_signal.signal(),
            stop_timeout,
            attendance: Attendance::Attended,
        }
    }

    /// For a session of the daemon's, of these times: its guardian cuts a stop-timeout that does not fit.
    fn guarded(&self, words: Vec<OsString>, timing: Timing) -> GuardedCommand {
        let stop_timeout = self.stop_timeout.unwrap_or_else(|| timing.default_stop());
        self.with_stop_timeout(words, stop_timeout)
    }

    /// How long the command has to stop, in a session of these times.
    fn stop_timeout(&self, timing: Timing) -> Result<Duration, Failure> {
        match self.stop_timeout {
            None => Ok(timing.default_stop()),
            Some(stop) => check_stop(stop, timing).map(|()| stop).map_err(|bad| {
                Failure::Usage(format!("--stop-timeout: {}; {}", bad.message, bad.remedy))
            }),
        }
    }
}

async fn join_and_run(
    ready: &Ready,
    target: &Target,
    command: GuardedCommand,
    signals: &mut mpsc::Receiver<Signal>,
    printer: &Printer,
) -> Result<ExitCode, Failure> {
    let Joined { participant, mut follower, .. } = ready.join().await?;
    let attempt = Acquire {
        arguments: ready.arguments.clone(),
        deadline: ready.deadline,
        withdrawn: CancellationToken::new(),
    };
    let recipe = target.module.name();
    let contender = Contender { participant, operation: target.operation.clone(), recipe, printer };
    let outcome = match contender.acquire(&mut follower, attempt, signals).await {
        Ok(held) => contender.run(ready.tasks(), &mut follower, &held, command, signals).await,
        Err(failure) => Err(failure),
    };
    let leaving = leave(&contender.participant, &mut follower, drop);
    signals::unless_asked_to_end(signals, leaving).await;
    outcome
}

/// A participant on its way to a claim, and with it.
struct Contender<'a> {
    participant: Participant,
    operation: String,
    recipe: String,
    printer: &'a Printer,
}

/// What is said of an operation that ended without a claim.
fn not_held(what: &str, value: &Value) -> String {
    format!(
        "{what} holds nothing: it answered {value}, and what it did stands; an operation that is not to \
         hold anything is for `wok call`"
    )
}

/// What is said of one of which no claim comes any more.
fn idle(what: &str) -> String {
    format!("{what} {}: what it told says why; start it again", told::IDLE)
}

impl Contender<'_> {
    async fn acquire(
        &self,
        follower: &mut Follower,
        attempt: Acquire,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Held, Failure> {
        let withdrawn = attempt.withdrawn.clone();
        let mut signalled = None;
        let attempt = acquire(&self.participant, follower, attempt, |seen| match seen {
            Seen::Notice(notice) => self.printer.notice(&self.recipe, notice),
            // What it waits for now is told by notices, as its place in line.
            Seen::GoesOn(_) => {}
        });
        let mut attempt = std::pin::pin!(attempt);
        let outcome = loop {
            // Cancel-safe: the attempt is kept across turns, signals stay queued.
            tokio::select! {
                outcome = &mut attempt => break outcome,
                signal = stopping(signals) => {
                    signalled = Some(signal);
                    withdrawn.cancel();
                }
            }
        };
        if let Some(signal) = signalled {
            return Err(joining::signalled(signal));
        }
        let what = format!("{} {}", self.recipe, self.operation);
        match outcome {
            Attempt::Held { claim, .. } => Ok(claim),
            Attempt::NotHeld(value) => Err(Failure::NotAcquired(not_held(&what, &value))),
            Attempt::Idle(_) => Err(Failure::NotAcquired(idle(&what))),
            Attempt::Cancelled | Attempt::Ended(Ending::Left) => {
                Err(Failure::NotAcquired(format!("{what}: not held within --wait")))
            }
            Attempt::Refused(error) => {
                let error = values::error_in_words(&error);
                Err(Failure::Module(format!("{what}: {error}")))
            }
            Attempt::Busy => Err(Failure::Module(format!("{what}: busy"))),
            Attempt::Ended(ending) => Err(Failure::of_ending(what, ending)),
        }
    }

    async fn run(
        &self,
        tasks: &Tasks,
        follower: &mut Follower,
        held: &Held,
        command: GuardedCommand,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<ExitCode, Failure> {
        self.printer.held(&self.recipe, held);
        let program = program(&command);
        let (instruct, instructions) = mpsc::channel(1);
        let passing_on = pass_on(signals, instruct);
        let tell = |notice: &Notice| match notice {
            Notice::Held(held) => self.printer.held(&self.recipe, held),
            notice => self.printer.notice(&self.recipe, notice),
        };
        // Cancel-safe: the command is awaited to its end, signals only until then.
        let running =
            run_while_held(tasks, &self.participant, follower, held, command, instructions, tell);
        let ended = tokio::select! {
            ended = running => ended,
            never = passing_on => match never {},
        };
        match ended {
            Ok(CommandEnd::Ended(outcome)) => exit_of(outcome, &program),
            Ok(CommandEnd::Killed(reason)) => {
                Err(Failure::CommandEnded(format!("the command was killed {reason}")))
            }
            Ok(CommandEnd::Lost(loss)) => Ok(self.lost(&(&loss).into())),
            Ok(CommandEnd::Released) => Ok(self.lost(&LossInWords::by_module())),
            Err(error) => Err(Failure::NotStarted { message: error.to_string(), code: 126 }),
        }
    }

    /// Tells that the claim is over before the command was, and answers the exit code of that.
    fn lost(&self, loss: &LossInWords) -> ExitCode {
        self.printer.lost(&[("recipe", json!(self.recipe))], loss);
        ExitCode::from(exit::LOST)
    }
}

/// The program that a command runs, for people.
fn program(command: &GuardedCommand) -> String {
    command.words.first().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Passes signals on for as long as a command runs.
async fn pass_on(
    signals: &mut mpsc::Receiver<Signal>,
    instruct: mpsc::Sender<Instruction>,
) -> Infallible {
    while let Some(signal) = signals.recv().await {
        let what = match signal {
            Signal::TERM => Instruction::Stop,
            other => Instruction::Signal(other),
        };
        if instruct.send(what).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}

/// The exit code of a command that ended by itself.
fn exit_of(outcome: Outcome, program: &str) -> Result<ExitCode, Failure> {
    match outcome.exit_code() {
        Some(code @ (126 | 127)) if outcome.is_not_started() => {
            Err(Failure::NotStarted { message: format!("cannot run {program}: {outcome}"), code })
        }
        Some(code) => Ok(ExitCode::from(code)),
        None => Err(Failure::CommandEnded(format!("the command was ended: {outcome}"))),
    }
}
