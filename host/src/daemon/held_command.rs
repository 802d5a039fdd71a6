//! A command that runs while a claim is held, and not a moment longer.

use std::convert::Infallible;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::guardian::{Attendance, Guardian, GuardianError, GuardianOptions, Outcome};
use crate::participant::{Ending, Follower, Loss, Notice, Participant};
use crate::session::Fence;
use crate::tasks::Tasks;

/// How often the guardian is told the deadline: as often as the session's own is looked at.
const EXTEND: Duration = Duration::from_millis(100);

/// How often it is looked whether the same processes still cannot be killed.
const STUBBORN: Duration = Duration::from_secs(1);

/// What to run while a claim is held.
#[derive(Debug, Clone)]
pub struct HeldCommand {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables added to its environment, besides `WOK_FENCE` and `WOK_CLAIM_PATH`.
    pub env: Vec<(OsString, OsString)>,
    /// What asks it to stop.
    pub stop_signal: Signal,
    /// How long it then has.
    pub stop_timeout: Duration,
    /// Who works with it.
    pub attendance: Attendance,
}

/// A claim, as its holder is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The claim's znode.
    pub path: String,
    /// The fencing token.
    pub fence: Fence,
}

/// How a held command ended. Nothing of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldEnd {
    /// By itself, or because it was asked to; the claim is still held.
    Ended(Outcome),
    /// It was ended because the claim was lost.
    Lost(Loss),
    /// It was ended because the module gave the claim up.
    Released,
}

/// Orders to a held command from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Pass a signal on.
    Signal(Signal),
    /// Stop it in order.
    Stop,
}

/// Runs a command until it ends or the claim does. While it runs, the claim's znodes are not
/// deleted by this host, so that whoever holds it next finds nothing of the command alive.
///
/// The guardian is told the deadline by one of `tasks`: it waits for nobody else.
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
    command: HeldCommand,
    mut orders: mpsc::Receiver<Order>,
) -> Result<HeldEnd, GuardianError> {
    // Before the start: a claim that is being given up waits for what depends on it.
    let _dependent = participant.depend();
    let mut env = command.env;
    env.push(("WOK_FENCE".into(), held.fence.to_string().into()));
    env.push(("WOK_CLAIM_PATH".into(), held.path.clone().into()));
    let guardian = Arc::new(Guardian::spawn(GuardianOptions {
        command: command.command,
        env,
        working_directory: None,
        stop_signal: command.stop_signal,
        stop_timeout: command.stop_timeout,
        deadline: participant.deadline(),
        attendance: command.attendance,
    })?);
    let _extending = extend(tasks, participant, &guardian);
    let mut stubborn = std::pin::pin!(tell_the_stubborn(&guardian, &held.path));
    // Kept across turns: it looks round by its own clock, whatever else happens here.
    let mut waiting = std::pin::pin!(guardian.wait());
    let mut ended_by = None;
    let outcome = loop {
        // All are cancel-safe: two are kept, and notices and orders stay queued.
        tokio::select! {
            biased;
            outcome = &mut waiting => break outcome,
            Some(order) = orders.recv() => match order {
                Order::Signal(signal) => guardian.signal(signal),
                Order::Stop => guardian.stop(),
            },
            notice = follower.next(), if ended_by.is_none() => {
                ended_by = react(&guardian, notice);
            }
            never = &mut stubborn => match never {},
        }
    };
    Ok(match (ended_by, outcome) {
        (Some(end), _) => end,
        (None, killed @ Outcome::Killed(_)) => {
            HeldEnd::Lost(Loss::Session(format!("the command was {killed}")))
        }
        (None, outcome) => HeldEnd::Ended(outcome),
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

/// Ends the command if the notice says that the claim ends.
fn react(guardian: &Guardian, notice: Option<Notice>) -> Option<HeldEnd> {
    match notice {
        // The claim is given up in order: its znode stays until the command is gone.
        Some(Notice::Released { .. }) => {
            guardian.stop();
            Some(HeldEnd::Released)
        }
        Some(Notice::Lost(loss @ Loss::Fault(_))) => {
            guardian.stop();
            Some(HeldEnd::Lost(loss))
        }
        // Somebody else may hold it by now.
        Some(Notice::Lost(loss) | Notice::Ended(Ending::Lost(loss))) => {
            guardian.kill_now();
            Some(HeldEnd::Lost(loss))
        }
        Some(Notice::Ended(Ending::Left)) => {
            guardian.stop();
            Some(HeldEnd::Released)
        }
        Some(Notice::Ended(Ending::Failed(fault))) => {
            guardian.kill_now();
            Some(HeldEnd::Lost(Loss::Fault(fault)))
        }
        None => {
            guardian.kill_now();
            Some(HeldEnd::Lost(Loss::Session("the participant is gone".to_owned())))
        }
        Some(_) => None,
    }
}
