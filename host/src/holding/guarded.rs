//! A command under guard until its claim is over: this process's, or one of the daemon that serves it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::clock::Boottime;
use crate::guardian::{GuardedCommand, Guardian, GuardianError, Outcome};
use crate::session::Held;
use crate::tasks::Tasks;

/// How often the guardian is told the deadline: as often as the session's own is looked at.
const EXTEND: Duration = Duration::from_millis(100);

/// How often it is looked whether the same processes still cannot be killed.
const STUBBORN: Duration = Duration::from_secs(1);

/// What the command's user wants of it while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// Pass a signal on.
    Signal(Signal),
    /// Stop it in order.
    Stop,
}

/// How a command is ended with its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndsBy {
    /// In order: the claim's znode stays until the command is gone.
    Stop,
    /// At once: somebody else may hold the claim by now.
    Kill,
}

/// Until when a claim may be relied on.
#[derive(Debug)]
pub struct Terms<T> {
    /// At first.
    pub deadline: Boottime,
    /// Says, whenever it is asked, what has become of that; none while nothing is held.
    pub tenure: T,
}

/// Runs a command until it ends or `ends` says something, with `WOK_FENCE` and `WOK_CLAIM_PATH` in its
/// environment. `ends` says how the command is to be ended, and why; what says that it is to be killed
/// also ends a command that is being stopped. Answers the reason that the command was ended for, if it
/// came to it, and what became of the command. Nothing of the command is left then.
///
/// The guardian is told the deadline by one of `tasks`: it waits for nobody else. `dependent` is dropped when
/// nothing of the command is left.
///
/// # Errors
/// The command was not started.
///
/// # Cancellation
/// Kills the command at once. One of `tasks` waits until nothing of it is left.
pub async fn run_guarded<E>(
    tasks: &Tasks,
    mut command: GuardedCommand,
    held: &Held,
    terms: Terms<impl Fn() -> Option<Boottime> + Send + 'static>,
    mut instructions: mpsc::Receiver<Instruction>,
    ends: impl Stream<Item = (EndsBy, E)>,
    dependent: impl Send + 'static,
) -> Result<(Option<E>, Outcome), GuardianError> {
    command.env.push(("WOK_FENCE".into(), held.fence.to_string().into()));
    command.env.push(("WOK_CLAIM_PATH".into(), held.path.clone().into()));
    let guardian = Arc::new(Guardian::spawn(command, terms.deadline)?);
    let mut running =
        Running { tasks, guardian: Arc::clone(&guardian), dependent: Some(dependent) };
    let _extending = extend(tasks, terms.tenure, &guardian);
    let mut stubborn = std::pin::pin!(tell_the_stubborn(&guardian, &held.path));
    // Kept across turns: it looks round by its own clock, whatever else happens here.
    let mut waiting = std::pin::pin!(guardian.wait());
    let mut ends = std::pin::pin!(ends);
    let mut ended: Option<(EndsBy, E)> = None;
    let ended_by = |ended: &Option<(EndsBy, E)>| ended.as_ref().map(|(by, _)| *by);
    loop {
        // All are cancel-safe: three are kept, what is not taken from a stream stays in it, and
        // instructions stay queued.
        tokio::select! {
            biased;
            outcome = &mut waiting => {
                drop(running.dependent.take());
                return Ok((ended.map(|(_, why)| why), outcome));
            }
            Some(instruction) = instructions.recv() => match instruction {
                Instruction::Signal(signal) => guardian.signal(signal),
                Instruction::Stop => guardian.stop(),
            },
            // Where the command is killed there is nothing more to hear of.
            Some(end) = ends.next(), if ended_by(&ended) != Some(EndsBy::Kill) => match end.0 {
                EndsBy::Stop if ended.is_some() => {}
                EndsBy::Stop => {
                    guardian.stop();
                    ended = Some(end);
                }
                EndsBy::Kill => {
                    guardian.kill_now();
                    ended = Some(end);
                }
            },
            never = &mut stubborn => match never {},
        }
    }
}

/// A command of which something may be left. Dropped, as where its caller withdraws, it is killed, and what
/// depends on its end is kept until then: a guardian that was stopped acts only when somebody wakes it.
struct Running<'a, D: Send + 'static> {
    tasks: &'a Tasks,
    guardian: Arc<Guardian>,
    dependent: Option<D>,
}

impl<D: Send + 'static> Drop for Running<'_, D> {
    fn drop(&mut self) {
        let Some(dependent) = self.dependent.take() else { return };
        let guardian = Arc::clone(&self.guardian);
        guardian.kill_now();
        self.tasks.spawn("end of a command", async move {
            guardian.wait().await;
            drop(dependent);
        });
    }
}

/// Tells the guardian the deadline as long as the claim is held and the answer is kept. In a task
/// of its own, so that nothing that a module says, and nobody who reads it, can delay it.
fn extend(
    tasks: &Tasks,
    tenure: impl Fn() -> Option<Boottime> + Send + 'static,
    guardian: &Arc<Guardian>,
) -> DropGuard {
    let guardian = Arc::downgrade(guardian);
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
