//! `wok call`: calls one operation and prints its answer.

use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::daemon_call::{self, Came, DaemonCall};
use super::exit::{Failure, LossInWords};
use super::joining::{self, Called, Calling, Joining, Ready, Target, stopping};
use super::log::{LOG_FOR_ONE, log_to_stderr};
use super::output::Printer;
use super::signals;
use super::standard_input::StandardInput;
use super::stdout::{self, Reader};
use crate::api::{answer_line, notice_line};
use crate::client::{Client, Purpose, Told};
use crate::epochs::Joined;
use crate::guest::values;
use crate::holding::leave;
use crate::participant::{self, Answer, CallError, Ending, Follower, Notice, Participant};

/// Call one operation of a recipe, and print its answer as JSON.
///
/// For operations that look or leave something behind, as who holds a lock. A claim that the
/// operation comes to hold ends with this command; `wok hold` runs a command under it. The recipe is
/// one of the running daemon's, or any module with --mount and --connect.
///
/// With --follow the command goes on, and prints what the participant tells on standard output.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok call orders contenders\n  \
    wok call lock --mount /locks/backup --connect zk1:2181 contenders\n  \
    wok call leader-election --mount /election/scheduler --connect zk1:2181 leader\n  \
    wok call ./my-queue.wasm --mount /queues/a --connect zk1:2181 put data=hello priority=1\n  \
    wok call ./my-queue.wasm --mount /queues/a --connect zk1:2181 put data=@- < picture.png\n  \
    wok call configuration --mount /settings/mail --connect zk1:2181 observe --follow")]
pub(super) struct Arguments {
    #[command(flatten)]
    called: Called,

    /// Go on, and print what the participant tells as it comes, such as the changes that `observe` reports,
    /// until Ctrl-C or the participant's end. What it holds is held until then.
    #[arg(long, short, help_heading = "Operation")]
    follow: bool,

    #[command(flatten)]
    joining: Joining,
}

/// How long the command goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Answered,
    /// All that the participant tells is printed, on standard output.
    ParticipantEnds,
}

/// What came of it.
enum Outcome {
    Answered(Value),
    /// All of it is printed.
    Followed(ExitCode),
}

/// What is said where the operation came to hold a claim.
const GIVEN_UP: &str = "what it held is given up: `wok hold` runs a command while it holds";

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        printer.never_wait();
        log_to_stderr(LOG_FOR_ONE, printer);
        let calling = self.called.calling(&self.joining, StandardInput::OfTheCall)?;
        let until = if self.follow { Until::ParticipantEnds } else { Until::Answered };
        if until == Until::ParticipantEnds {
            printer.never_wait_to_follow();
        }
        let outcome = match calling {
            Calling::OwnSession(target) => {
                joining::runtime()?.block_on(call(&self.joining, &target, until, printer))?
            }
            Calling::Daemon(daemon, call) => {
                daemon.ask(async |client| ask(&client, &call, until, printer).await)?
            }
        };
        Ok(match outcome {
            Outcome::Followed(code) => code,
            Outcome::Answered(answer) => {
                // To print may take for ever: wok drops no answer, and waits until somebody reads it.
                if let Err(error) = signals::end_at_once() {
                    tracing::warn!(%error, "no signal ends this call while nobody reads its answer");
                }
                printer.answer(&answer);
                ExitCode::SUCCESS
            }
        })
    }
}

/// Calls through the daemon.
async fn ask(
    client: &Client,
    call: &DaemonCall,
    until: Until,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let mut signals = signals::receive(client.tasks())
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    let mut joined = call.join(client, Purpose::Answer, &mut signals, printer).await?;
    let mut holds = false;
    let outcome = match until {
        Until::ParticipantEnds => {
            call.follow(&mut joined, &mut signals, printer).await.map(Outcome::Followed)
        }
        Until::Answered => loop {
            match call.next(&mut joined, &mut signals, printer).await {
                Ok(Came::Held(_)) => holds = true,
                Ok(Came::Released | Came::Idle) => holds = false,
                Ok(Came::Answered { value, .. }) => break Ok(Outcome::Answered(value)),
                Err(failure) => break Err(failure.of_unanswered()),
            }
        },
    };
    signals::unless_asked_to_end(&mut signals, daemon_call::leave(joined)).await;
    if holds && outcome.is_ok() {
        printer.remark(GIVEN_UP);
    }
    outcome
}

async fn call(
    joining: &Joining,
    target: &Target,
    until: Until,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let ready = joining.prepare(target)?;
    let mut signals = signals::receive(ready.tasks())
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    ready.open_session(&mut signals, printer).await?;
    let outcome = call_on(&ready, target, until, &mut signals, printer).await;
    signals::unless_asked_to_end(&mut signals, ready.close()).await;
    outcome
}

async fn call_on(
    ready: &Ready,
    target: &Target,
    until: Until,
    signals: &mut mpsc::Receiver<Signal>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let Joined { participant, mut follower, .. } = ready.join().await?;
    let withdrawn = CancellationToken::new();
    let call = participant::Call {
        arguments: ready.arguments.clone(),
        deadline: ready.deadline,
        withdrawn: Some(withdrawn.clone()),
    };
    let caller = Caller { participant: &participant, target, until, printer };
    let mut heard = Heard::default();
    let answered = caller.answer(call, &mut follower, &mut heard, signals, &withdrawn).await;
    let followed = match (&answered, until) {
        (Ok(Ok(Answer { value: Ok(value), watches, .. })), Until::ParticipantEnds) => {
            Some(caller.follow(value, *watches, &heard, &mut follower, signals).await)
        }
        _ => None,
    };
    let leaving = leave(&participant, &mut follower, |notice| heard.note(notice));
    signals::unless_asked_to_end(signals, leaving).await;
    if let Some(followed) = followed {
        return followed.map(Outcome::Followed);
    }
    let what = target.in_words();
    match answered? {
        Ok(Answer { value: Ok(value), claim, .. }) => {
            if claim.is_some() {
                printer.remark(GIVEN_UP);
            }
            Ok(Outcome::Answered(value))
        }
        Ok(Answer { value: Err(error), .. }) => {
            let error = values::error_in_words(&error);
            Err(Failure::Module(format!("{what}: {error}")))
        }
        Err(CallError::Cancelled) => {
            Err(Failure::NotAcquired(format!("{what}: no answer within --wait")))
        }
        Err(CallError::Busy) => Err(Failure::Module(format!("{what}: busy"))),
        Err(CallError::Ended) => {
            Err(Failure::of_ending(what, heard.ending.unwrap_or(Ending::Left)).of_unanswered())
        }
    }
}

/// What was heard before the answer, and is not told there.
#[derive(Default)]
struct Heard {
    /// How the participant has ended.
    ending: Option<Ending>,
    /// That nothing comes of it any more. It is told behind the answer, as the daemon tells it: who was
    /// not answered well is told why, and the participant ends.
    is_idle: bool,
}

impl Heard {
    fn note(&mut self, notice: Notice) {
        match notice {
            Notice::Ended(how) => self.ending = Some(how),
            Notice::Idle => self.is_idle = true,
            _ => {}
        }
    }
}

/// Who calls.
struct Caller<'a> {
    participant: &'a Participant,
    target: &'a Target,
    until: Until,
    printer: &'a Printer,
}

impl Caller<'_> {
    /// The answer, while what the participant tells is printed. A signal withdraws the call.
    async fn answer(
        &self,
        call: participant::Call,
        follower: &mut Follower,
        heard: &mut Heard,
        signals: &mut mpsc::Receiver<Signal>,
        withdrawn: &CancellationToken,
    ) -> Result<Result<Answer, CallError>, Failure> {
        let mut signalled = None;
        let mut answer = std::pin::pin!(self.participant.call(call));
        let answered = loop {
            // All are cancel-safe: the call is kept across turns, notices and signals stay queued.
            tokio::select! {
                biased;
                // What was told before the answer is printed before it.
                Some(notice) = follower.next() => {
                    if !matches!(notice, Notice::Idle) {
                        self.tell(&notice)?;
                    }
                    heard.note(notice);
                }
                answered = &mut answer => break answered,
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

    /// Prints the answer and all that is told behind it, until the participant has ended, a signal comes, or
    /// nobody reads any more.
    async fn follow(
        &self,
        answer: &Value,
        goes_on: bool,
        heard: &Heard,
        follower: &mut Follower,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<ExitCode, Failure> {
        let (recipe, operation) = (self.target.module.name(), &self.target.operation);
        let id = self.participant.id();
        let mut reader =
            self.show(&answer_line(operation, answer.clone(), goes_on, &recipe, id))?;
        if heard.is_idle && reader == Reader::There {
            reader = self.tell(&Notice::Idle)?;
        }
        let mut unread = pin!(stdout::until_unread());
        while reader == Reader::There {
            // All are cancel-safe: notices and signals stay queued, and a reader that has gone does not come
            // back.
            let notice = tokio::select! {
                biased;
                // So ends what has no end of its own.
                signal = stopping(signals) => return Ok(joining::signalled(signal).code()),
                () = &mut unread => break,
                notice = follower.next() => notice,
            };
            let Some(notice) = notice else {
                return Err(Failure::of_ending(self.target.in_words(), Ending::Left));
            };
            reader = self.tell(&notice)?;
            match notice {
                Notice::Lost(loss) => {
                    let what = self.target.in_words();
                    return Err(Failure::Lost { what, loss: LossInWords::from(&loss) });
                }
                Notice::Ended(how) => {
                    return Err(Failure::of_ending(self.target.in_words(), how));
                }
                _ => {}
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints what the participant tells.
    fn tell(&self, notice: &Notice) -> Result<Reader, Failure> {
        let recipe = self.target.module.name();
        match self.until {
            Until::ParticipantEnds => {
                self.show(&notice_line(notice, &recipe, self.participant.id()))
            }
            Until::Answered => {
                self.printer.notice(&recipe, notice);
                Ok(Reader::There)
            }
        }
    }

    /// Prints a line of what is followed, as the daemon would tell it.
    fn show(&self, line: &[u8]) -> Result<Reader, Failure> {
        let told = Told::read(line).map_err(|error| {
            Failure::Module(format!(
                "{}: what it tells is no event: {error}",
                self.target.in_words()
            ))
        })?;
        Ok(self.printer.follow(&told))
    }
}
