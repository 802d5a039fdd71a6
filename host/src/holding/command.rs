//! A command that runs while a claim is held, and not a moment longer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::guardian::{GuardedCommand, Guardian, GuardianError, KillReason, Outcome};
use crate::participant::{Ending, Follower, Loss, Notice, Participant};
use crate::session::{Held, SessionLoss};
use crate::tasks::Tasks;

/// How often the guardian is told the deadline: as often as the session's own is looked at.
const EXTEND: Duration = Duration::from_millis(100);

/// How often it is looked whether the same processes still cannot be killed.
const STUBBORN: Duration = Duration::from_secs(1);

/// How a command that ran under a claim ended. Nothing of it is left.
#[derive(Debug, Clone)]
pub enum CommandEnd {
    /// By itself, or because it was asked to; the claim is still held.
    Ended(Outcome),
    /// It was killed though wok had not ordered that, and nothing is known of a loss.
    Killed(KillReason),
    /// It was ended because the claim was lost.
    Lost(Loss),
    /// It was ended, or not even started, because the module gave the claim up.
    Released,
}

/// What the command's user wants of it while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// Pass a signal on.
    Signal(Signal),
    /// Stop it in order.
    Stop,
}

/// Runs a command until it ends or the claim does, with `WOK_FENCE` and `WOK_CLAIM_PATH` in its
/// environment. While the command runs, this host does not delete the claim's znodes, so that the
/// next holder finds nothing of the command alive.
///
/// The guardian is told the deadline by one of `tasks`: it waits for nobody else. `observe` sees every
/// notice that leaves the command running, and must not wait either.
///
/// # Errors
/// The command was not started.
///
/// # Cancellation
/// Kills the command at once.
pub async fn run_while_held(
    tasks: &Tasks,
    participant: &Participant,
    follower: &mut Follower,
    held: &Held,
    mut command: GuardedCommand,
    mut instructions: mpsc::Receiver<Instruction>,
    mut observe: impl FnMut(&Notice),
) -> Result<CommandEnd, GuardianError> {
    // Before the start: a claim that is being given up waits for what depends on it.
    let Some(_dependent) = participant.depend(held) else {
        return Ok(ended_before(follower, &mut observe));
    };
    command.env.push(("WOK_FENCE".into(), held.fence.to_string().into()));
    command.env.push(("WOK_CLAIM_PATH".into(), held.path.clone().into()));
    let guardian = Arc::new(Guardian::spawn(command, participant.deadline())?);
    let _extending = extend(tasks, participant, &guardian);
    let mut stubborn = std::pin::pin!(tell_the_stubborn(&guardian, &held.path));
    // Kept across turns: it looks round by its own clock, whatever else happens here.
    let mut waiting = std::pin::pin!(guardian.wait());
    let mut ended_by = None;
    let outcome = loop {
        // All are cancel-safe: two are kept, and notices and instructions stay queued.
        tokio::select! {
            biased;
            outcome = &mut waiting => break outcome,
            Some(instruction) = instructions.recv() => match instruction {
                Instruction::Signal(signal) => guardian.signal(signal),
                Instruction::Stop => guardian.stop(),
            },
            notice = follower.next(), if ended_by.is_none() => {
                ended_by = end_of_claim(notice, &mut observe).map(|(ending, end)| {
                    match ending {
                        EndsBy::Stop => guardian.stop(),
                        EndsBy::Kill => guardian.kill_now(),
                    }
                    end
                });
            }
            never = &mut stubborn => match never {},
        }
    };
    Ok(match (ended_by, outcome) {
        (Some(end), _) => end,
        // The guardian knows no other deadline than the session's.
        (None, Outcome::Killed(KillReason::Deadline)) => {
            CommandEnd::Lost(Loss::Session(SessionLoss::Deadline))
        }
        (None, Outcome::Killed(reason)) => CommandEnd::Killed(reason),
        (None, outcome) => CommandEnd::Ended(outcome),
    })
}

/// Tells the guardian the deadline as long as the claim is held and the answer is kept. In a task
/// of its own, so that nothing that a module says, and nobody who reads it, can delay it.
fn extend(tasks: &Tasks, participant: &Participant, guardian: &Arc<Guardian>) -> DropGuard {
    let (tenure, guardian) = (participant.tenure(), Arc::downgrade(guardian));
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    tasks.spawn("deadline", async move {
        let mut ticks = tokio::time::interval(EXTEND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while ended.run_until_cancelled(ticks.tick()).await.is_some() {
            // Only looked at here: dropping the guardian is what kills the command.
            let Some(guardian) = guardian.upgrade() else { return };
            if let Some(deadline) = tenure() {
                guardian.extend(deadline);
            }
        }
    });
    guard
}

/// Says which processes cannot be killed, where there are any. For as long as they live nothing
/// else happens under this claim.
async fn tell_the_stubborn(guardian: &Guardian, path: &str) -> Infallible {
    let (mut before, mut told) = (Vec::new(), Vec::new());
    loop {
        tokio::time::sleep(STUBBORN).await;
        let survivors = guardian.survivors();
        let stubborn: Vec<i32> =
            survivors.iter().filter(|pid| before.contains(*pid)).copied().collect();
        if !stubborn.is_empty() && stubborn != told {
            let remedy = "end these processes; until then the recipe runs nothing else";
            tracing::error!(claim = path, processes = ?stubborn, remedy, "the command cannot be killed");
            told = stubborn;
        }
        before = survivors;
    }
}

/// How a command is ended with its claim.
enum EndsBy {
    /// In order: the claim's znode stays until the command is gone.
    Stop,
    /// At once: somebody else may hold the claim by now.
    Kill,
}

/// How the claim ended, if the notice says that it did. `observe` sees every other notice.
fn end_of_claim(
    notice: Option<Notice>,
    observe: &mut impl FnMut(&Notice),
) -> Option<(EndsBy, CommandEnd)> {
    Some(match notice {
        Some(Notice::Released { .. } | Notice::Ended(Ending::Left)) => {
            (EndsBy::Stop, CommandEnd::Released)
        }
        Some(Notice::Lost(loss @ Loss::Fault(_))) => (EndsBy::Stop, CommandEnd::Lost(loss)),
        Some(Notice::Lost(loss) | Notice::Ended(Ending::Lost(loss))) => {
            (EndsBy::Kill, CommandEnd::Lost(loss))
        }
        Some(Notice::Ended(Ending::Failed(fault))) => {
            (EndsBy::Kill, CommandEnd::Lost(Loss::Fault(fault)))
        }
        // The follower was told of the end before this command was asked for.
        None => (EndsBy::Kill, CommandEnd::Released),
        Some(other) => {
            observe(&other);
            return None;
        }
    })
}

/// How the claim ended of a command that was not started, as far as that was told by now.
fn ended_before(follower: &mut Follower, observe: &mut impl FnMut(&Notice)) -> CommandEnd {
    while let Some(notice) = follower.next().now_or_never() {
        if let Some((_, end)) = end_of_claim(notice, observe) {
            return end;
        }
    }
    CommandEnd::Released
}
