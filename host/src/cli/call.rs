//! `wok call`: calls one operation and prints its answer.

use std::process::ExitCode;

use clap::Args;
use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::daemon_call::{self, Came, DaemonCall};
use super::exit::Failure;
use super::joining::{self, Called, Calling, Joining, Ready, Target, stopping};
use super::log::{LOG_FOR_ONE, log_to_stderr};
use super::output::Printer;
use super::signals;
use super::standard_input::StandardInput;
use crate::client::{Client, Purpose};
use crate::epochs::Joined;
use crate::guest::values;
use crate::holding::leave;
use crate::participant::{self, Answer, CallError, Ending, Follower, Notice, Participant};

/// Call one operation of a recipe, and print its answer as JSON.
///
/// For operations that look or leave something behind, as who holds a lock. A claim that the
/// operation comes to hold ends with this command; `wok hold` runs a command under it. The recipe is
/// one of the running daemon's, or any module with --mount and --connect.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok call orders contenders\n  \
    wok call lock --mount /locks/backup --connect zk1:2181 contenders\n  \
    wok call leader-election --mount /election/scheduler --connect zk1:2181 leader\n  \
    wok call ./my-queue.wasm --mount /queues/a --connect zk1:2181 put data=hello priority=1\n  \
    wok call ./my-queue.wasm --mount /queues/a --connect zk1:2181 put data=@- < picture.png")]
pub(super) struct Arguments {
    #[command(flatten)]
    called: Called,

    #[command(flatten)]
    joining: Joining,
}

/// What is said where the operation came to hold a claim.
const GIVEN_UP: &str = "what it held is given up: `wok hold` runs a command while it holds";

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        printer.never_wait();
        log_to_stderr(LOG_FOR_ONE, printer);
        let answer = match self.called.calling(&self.joining, StandardInput::OfTheCall)? {
            Calling::OwnSession(target) => {
                joining::runtime()?.block_on(call(&self.joining, &target, printer))?
            }
            Calling::Daemon(daemon, call) => {
                daemon.ask(async |client| ask(&client, &call, printer).await)?
            }
        };
        printer.answer(&answer);
        Ok(ExitCode::SUCCESS)
    }
}

/// Calls through the daemon.
async fn ask(client: &Client, call: &DaemonCall, printer: &Printer) -> Result<Value, Failure> {
    let mut signals = signals::receive(client.tasks())
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    let mut joined = call.join(client, Purpose::Answer, &mut signals, printer).await?;
    let mut holds = false;
    let answered = loop {
        match call.next(&mut joined, &mut signals, printer).await {
            Ok(Came::Held(_)) => holds = true,
            Ok(Came::Released) => holds = false,
            Ok(Came::Answered { value, .. }) => break Ok(value),
            Err(failure) => break Err(failure),
        }
    };
    signals::unless_asked_to_end(&mut signals, daemon_call::leave(joined)).await;
    if holds && answered.is_ok() {
        printer.remark(GIVEN_UP);
    }
    answered
}

async fn call(joining: &Joining, target: &Target, printer: &Printer) -> Result<Value, Failure> {
    let ready = joining.prepare(target)?;
    let mut signals = signals::receive(ready.tasks())
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    ready.open_session(&mut signals, printer).await?;
    let outcome = call_on(&ready, target, &mut signals, printer).await;
    signals::unless_asked_to_end(&mut signals, ready.close()).await;
    outcome
}

async fn call_on(
    ready: &Ready,
    target: &Target,
    signals: &mut mpsc::Receiver<Signal>,
    printer: &Printer,
) -> Result<Value, Failure> {
    let Joined { participant, mut follower, .. } = ready.join().await?;
    let withdrawn = CancellationToken::new();
    let call = participant::Call {
        arguments: ready.arguments.clone(),
        deadline: ready.deadline,
        withdrawn: Some(withdrawn.clone()),
    };
    let caller = Caller { participant: &participant, target, printer };
    let mut ending = None;
    let answered = caller.answer(call, &mut follower, &mut ending, signals, &withdrawn).await;
    let leaving = leave(&participant, &mut follower, |notice| note_end(&mut ending, notice));
    signals::unless_asked_to_end(signals, leaving).await;
    let what = target.in_words();
    match answered? {
        Ok(Answer { value: Ok(value), claim, .. }) => {
            if claim.is_some() {
                printer.remark(GIVEN_UP);
            }
            Ok(value)
        }
        Ok(Answer { value: Err(error), .. }) => {
            let error = values::error_in_words(&error);
            Err(Failure::Module(format!("{what}: {error}")))
        }
        Err(CallError::Cancelled) => {
            Err(Failure::NotAcquired(format!("{what}: no answer within --wait")))
        }
        Err(CallError::Busy) => Err(Failure::Module(format!("{what}: busy"))),
        Err(CallError::Ended) => Err(Failure::of_ending(what, ending.unwrap_or(Ending::Left))),
    }
}

fn note_end(ending: &mut Option<Ending>, notice: Notice) {
    if let Notice::Ended(how) = notice {
        *ending = Some(how);
    }
}

/// Who calls.
struct Caller<'a> {
    participant: &'a Participant,
    target: &'a Target,
    printer: &'a Printer,
}

impl Caller<'_> {
    /// The answer, while what the participant tells is printed. A signal withdraws the call.
    async fn answer(
        &self,
        call: participant::Call,
        follower: &mut Follower,
        ending: &mut Option<Ending>,
        signals: &mut mpsc::Receiver<Signal>,
        withdrawn: &CancellationToken,
    ) -> Result<Result<Answer, CallError>, Failure> {
        let recipe = self.target.module.name();
        let mut signalled = None;
        let mut answer = std::pin::pin!(self.participant.call(call));
        let answered = loop {
            // All are cancel-safe: the call is kept across turns, notices and signals stay queued.
            tokio::select! {
                biased;
                answered = &mut answer => break answered,
                Some(notice) = follower.next() => {
                    self.printer.notice(&recipe, &notice);
                    note_end(ending, notice);
                }
                signal = stopping(signals) => {
                    signalled = Some(signal);
                    withdrawn.cancel();
                }
            }
        };
        match signalled {
            Some(signal) => Err(joining::signalled(signal)),
            None => Ok(answered),
        }
    }
}
