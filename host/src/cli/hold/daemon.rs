//! `wok hold` by a participant of the daemon's.
//!
//! The daemon has the session, and this process has the command with its guardian. The daemon says in
//! each of its lines until when the claim may be relied on, so a daemon that is stopped says nothing
//! more, and the guardian kills the command in time. A daemon that is gone closes the stream, and
//! then the command is killed at once. This process, in turn, may be stopped or killed: then the
//! daemon keeps the claim until what it has told as the deadline has passed, by when the guardian has
//! killed the command.

use std::process::ExitCode;

use futures_util::stream;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{exit_of, idle, not_held, pass_on, program};
use crate::cli::daemon_call::{self, Came, Claim, DaemonCall};
use crate::cli::exit::{self, Failure, LossInWords};
use crate::cli::output::Printer;
use crate::cli::signals;
use crate::client::{Client, Event, Joined, Keeping, Listed, Purpose, path};
use crate::clock::Boottime;
use crate::guardian::{GuardedCommand, KillReason, Outcome};
use crate::holding::{EndsBy, Terms, run_guarded};
use crate::session::Timing;

/// Holds, runs, releases.
pub(super) async fn hold(
    client: &Client,
    call: &DaemonCall,
    command: impl FnOnce(Option<Timing>) -> GuardedCommand,
    printer: &Printer,
) -> Result<ExitCode, Failure> {
    let mut signals = signals::receive(client.tasks())
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    let mut joined = call.join(client, Purpose::Hold, &mut signals, printer).await?;
    let holder = Holder { client, call, printer };
    let outcome = match holder.acquire(&mut joined, &mut signals).await {
        Ok(claim) => {
            let command = command(joined.timing());
            holder.run(&mut joined, &claim, command, &mut signals).await
        }
        Err(failure) => Err(failure),
    };
    // A daemon that said nothing until the deadline is not waited for: it ends the participant when it
    // finds that the stream is closed.
    if !joined.tenure().deadline().is_some_and(Boottime::has_passed) {
        signals::unless_asked_to_end(&mut signals, daemon_call::leave(joined)).await;
    }
    outcome
}

/// Who holds by way of the daemon.
struct Holder<'a> {
    client: &'a Client,
    call: &'a DaemonCall,
    printer: &'a Printer,
}

/// Why a command was ended.
enum Over {
    Lost(LossInWords),
    Released,
    /// The participant was asked to end, by whom or why.
    Leaving(String),
}

impl Holder<'_> {
    async fn acquire(
        &self,
        joined: &mut Joined,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Box<Claim>, Failure> {
        loop {
            match self.call.next(joined, signals, self.printer).await {
                Ok(Came::Held(claim)) => return Ok(claim),
                // It goes on, or its last event says why it does not.
                Ok(Came::Answered { goes_on: None | Some(true), .. } | Came::Released) => {}
                Ok(Came::Answered { value, goes_on: Some(false) }) => {
                    self.is_to_hold(joined.id(), &value).await?;
                }
                Ok(Came::Idle) => return Err(Failure::NotAcquired(idle(&self.call.in_words()))),
                Err(Failure::NotAcquired(_)) if self.call.is_limited() => {
                    let what = self.call.in_words();
                    return Err(Failure::NotAcquired(format!("{what}: not held within --wait")));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether the operation that has answered has come to hold something, of which the stream is
    /// about to tell.
    async fn is_to_hold(&self, id: &str, value: &Value) -> Result<(), Failure> {
        let listed: Listed = self.client.get(&path(["participants", id])).await?;
        match listed.held {
            Some(_) => Ok(()),
            None => Err(Failure::NotAcquired(not_held(&self.call.in_words(), value))),
        }
    }

    async fn run(
        &self,
        joined: &mut Joined,
        claim: &Claim,
        command: GuardedCommand,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<ExitCode, Failure> {
        let whose = [("recipe", json!(self.call.recipe)), ("participant", json!(joined.id()))];
        let Some(deadline) = joined.tenure().deadline() else {
            return Err(Failure::Unreachable(
                "the daemon does not say until when a claim holds, so nothing can run under it: its \
                 wok is older than this one"
                    .to_owned(),
            ));
        };
        self.printer.told(&claim.told);
        let program = program(&command);
        let tenure = joined.tenure().clone();
        let terms = Terms { deadline, tenure: move || tenure.deadline() };
        let (instruct, instructions) = mpsc::channel(1);
        let ends = stream::unfold(joined, async |joined| {
            Some((next_end(joined, self.printer).await, joined))
        });
        let running =
            run_guarded(self.client.tasks(), command, &claim.held, terms, instructions, ends, ());
        // Cancel-safe: the command is awaited to its end, signals only until then.
        let ended = tokio::select! {
            ended = running => ended,
            never = pass_on(signals, instruct) => match never {},
        };
        let lost = |loss: LossInWords| {
            self.printer.lost(&whose, &loss);
            Ok(ExitCode::from(exit::LOST))
        };
        match ended {
            Ok((Some(Over::Lost(loss)), _)) => lost(loss),
            Ok((Some(Over::Released), _)) => lost(LossInWords::by_module()),
            Ok((Some(Over::Leaving(why)), _)) => lost(LossInWords::by_daemon(&why)),
            Ok((None, Outcome::Killed(KillReason::Deadline))) => lost(LossInWords {
                reason: "session".into(),
                cause: "deadline".into(),
                message:
                    "the daemon has not said in time that the claim still holds: it is stopped, \
                          too busy, or without contact with ZooKeeper"
                        .to_owned(),
            }),
            Ok((None, Outcome::Killed(reason))) => {
                Err(Failure::CommandEnded(format!("the command was killed {reason}")))
            }
            Ok((None, outcome)) => exit_of(outcome, &program),
            Err(error) => Err(Failure::NotStarted { message: error.to_string(), code: 126 }),
        }
    }
}

/// Completes when the daemon says that the claim is over, or worse. Tells everything else, and moves the
/// deadline meanwhile.
async fn next_end(joined: &mut Joined, printer: &Printer) -> (EndsBy, Over) {
    // What nobody keeps may be somebody else's as soon as it is given up.
    let given_up = match joined.keeping() {
        Keeping::Daemon => EndsBy::Stop,
        Keeping::Nobody => EndsBy::Kill,
    };
    let gone = |message: String| {
        let (reason, cause) = ("daemon".into(), "gone".into());
        (EndsBy::Kill, Over::Lost(LossInWords { reason, cause, message }))
    };
    loop {
        let told = match joined.next().await {
            Ok(Some(told)) => told,
            Ok(None) => return gone("the daemon has closed the stream".to_owned()),
            Err(error) => return gone(error.to_string()),
        };
        match told.event {
            Event::Released { .. } => return (given_up, Over::Released),
            Event::Leaving { message } => return (given_up, Over::Leaving(message)),
            Event::Lost(loss) => return (EndsBy::Kill, Over::Lost(loss.into())),
            Event::Ended { message, .. } => return (EndsBy::Kill, Over::Leaving(message)),
            // Of the call, which is over; and of a daemon that is there.
            Event::Answered { .. }
            | Event::Refused { .. }
            | Event::TimedOut
            | Event::Alive { .. } => {}
            _ => printer.told(&told),
        }
    }
}
