//! A claim that is held.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Call, Error, Participant};
use crate::guardian::{GuardedCommand, GuardianError};
use crate::holding::{CommandEnd, Instruction, run_while_held, until_overdue};
use crate::participant::{Ending, Loss, Notice};
use crate::session::{self, Fence, SessionLoss};

/// A claim that is held: a lock, permits, the leadership. Dropping it gives the claim back, in the
/// background.
///
/// As long as this value lives, this host does not delete the claim's znodes, also where the module
/// wants to give the claim up: the next holder comes when you have dropped it. Only a lost session, or
/// somebody else who deletes a znode, hands the claim on before, also while you are still stopping for a
/// claim that is given up. So stop when [`lost`](Held::lost) says so, and give the
/// [`fence`](Held::fence) to whatever you write to, which should refuse a fence
/// that is lower than the highest it has seen: a machine that freezes is told too late.
#[derive(Debug)]
pub struct Held {
    claim: session::Held,
    answer: Value,
    end: Mutex<Option<HeldEnd>>,
    // Before the participant: what depends on the claim is over when that leaves.
    dependent: TaskTrackerToken,
    participant: Participant,
}

/// Why a claim is not held any more.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HeldEnd {
    /// It was lost: others may hold it soon, or do already.
    Lost(Loss),
    /// It is being given up, by an operation of the participant, its module or the host's end. Nobody
    /// else holds it before this [`Held`] is dropped, unless it is lost before, which
    /// [`lost`](Held::lost) answers from then on, or a host that ends has waited for that in vain: see
    /// [`Host::shut_down`](super::Host::shut_down).
    Released,
}

impl fmt::Display for HeldEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldEnd::Lost(loss) => write!(f, "lost: {loss}"),
            HeldEnd::Released => f.write_str("given back"),
        }
    }
}

impl Held {
    pub(super) fn new(
        participant: Participant,
        claim: session::Held,
        answer: Value,
        dependent: TaskTrackerToken,
    ) -> Self {
        Held { claim, answer, end: Mutex::default(), dependent, participant }
    }

    /// What the operation answered, as JSON: the item that a queue's `take` has claimed, and null where
    /// the operation answers nothing.
    pub fn answer(&self) -> &Value {
        &self.answer
    }

    /// The claim's znode.
    pub fn path(&self) -> &str {
        &self.claim.path
    }

    /// The fencing token: it is higher for each next holder. An operation that replaces the claim, as a
    /// downgrade does, gives the new one another token: [`Participant::held`] has that.
    pub fn fence(&self) -> Fence {
        self.claim.fence
    }

    /// Whether it is held at this very moment, as far as anyone can know.
    pub fn is_held(&self) -> bool {
        self.ended_by_now().is_none() && self.participant.inner().presence().tenure().is_some()
    }

    /// For how long it may be relied on without hearing more of ZooKeeper; nothing once it is lost. In
    /// contact, each heartbeat makes it longer.
    pub fn remaining(&self) -> Duration {
        let deadline = self.participant.inner().presence().tenure();
        let deadline = deadline.filter(|_| self.ended_by_now().is_none());
        deadline.map_or(Duration::ZERO, |deadline| deadline.remaining())
    }

    /// Completes when it is not held any more, at the latest when it may not be relied on without
    /// hearing more, which is before anybody else can hold it.
    ///
    /// # Cancellation
    /// Nothing is lost: ask again, as often as you like.
    pub async fn lost(&self) -> HeldEnd {
        // Each who asks is woken by a follower of its own: one who does not listen at the moment keeps
        // nothing from another. It is there before the first look, so nothing is told in between.
        let mut woken = self.participant.follow();
        let end = loop {
            if let Some(end) = self.ended_by_now() {
                return end;
            }
            // All are cancel-safe: what was told is looked for above, the deadline is asked for anew, and
            // the host's end is a state.
            tokio::select! {
                biased;
                _told = woken.next() => {}
                () = until_overdue(self.participant.inner()) => {
                    break HeldEnd::Lost(Loss::Session(SessionLoss::Deadline));
                }
                // The participant leaves when nothing depends on its claim any more.
                () = self.participant.until_host_ends() => break HeldEnd::Released,
            }
        };
        self.end_by(end)
    }

    /// Notes how it ended, and answers how it is known to have ended then: a loss is for good.
    fn end_by(&self, end: HeldEnd) -> HeldEnd {
        let mut known = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(HeldEnd::Lost(_)) => {}
            Some(HeldEnd::Released) | None => *known = Some(end.clone()),
        }
        known.clone().unwrap_or(end)
    }

    /// How it ended, by what the participant has told until now.
    fn ended_by_now(&self) -> Option<HeldEnd> {
        let mut told = self.participant.told().lock().unwrap_or_else(PoisonError::into_inner);
        // Until there is nothing more, which is said for ever once the participant has ended.
        while let Some(notice) = told.next().now_or_never() {
            let is_last = notice.is_none();
            if let Some(end) = end_of(notice) {
                self.end_by(end);
            }
            if is_last {
                break;
            }
        }
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command until it ends or the claim does, under a guardian: the command ends in time also
    /// where this process is stopped or killed. It finds `WOK_FENCE` and `WOK_CLAIM_PATH` in its
    /// environment. The guardian is this program once more, so `main` begins with
    /// [`main_if_asked`](crate::guardian::main_if_asked). A host that is shut down waits for the command:
    /// drop the future when [`lost`](Self::lost) says that the host ends.
    ///
    /// # Errors
    /// The command was not started.
    ///
    /// # Cancellation
    /// Kills the command at once. What is held is not given back before nothing of the command is left.
    pub async fn run(&self, command: GuardedCommand) -> Result<CommandEnd, GuardianError> {
        let (_instruct, instructions) = mpsc::channel(1);
        self.run_instructed(command, instructions).await
    }

    /// As [`run`](Self::run), and does with the command what it is told to meanwhile.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancellation
    /// As [`run`](Self::run).
    pub async fn run_instructed(
        &self,
        command: GuardedCommand,
        instructions: mpsc::Receiver<Instruction>,
    ) -> Result<CommandEnd, GuardianError> {
        let (participant, tasks) = (self.participant.inner(), self.participant.tasks());
        // The end of a claim that was told before makes the guardian start nothing.
        let mut follower = self.participant.follow();
        // An operation may have replaced the claim, as a downgrade does.
        let claim = self.participant.held().unwrap_or_else(|| self.claim.clone());
        run_while_held(tasks, participant, &mut follower, &claim, command, instructions, |_| {})
            .await
    }

    /// Calls the operation that ends what is held, and leaves. Nothing may depend on the claim any more.
    ///
    /// # Errors
    /// As [`Participant::call`]. What was held is given back all the same.
    ///
    /// # Cancellation
    /// Withdraws the call, and gives back what is held.
    pub async fn finish(self, call: impl Into<Call>) -> Result<Value, Error> {
        let Held { participant, dependent, .. } = self;
        drop(dependent);
        let answer = participant.call(call).await;
        participant.leave().await;
        answer
    }

    /// The participant that holds it, for other operations of it. One that gives the claim up waits until
    /// this [`Held`] is dropped: who holds it calls that by [`finish`](Self::finish).
    pub fn participant(&self) -> &Participant {
        &self.participant
    }

    /// Gives it back, and waits until nothing of it is left in ZooKeeper; without contact, until the
    /// session may not be believed in any more.
    ///
    /// # Cancellation
    /// It is given back all the same.
    pub async fn release(self) {
        let Held { participant, dependent, .. } = self;
        drop(dependent);
        participant.leave().await;
    }
}

/// How the claim ended, if the notice says that it did.
fn end_of(notice: Option<Notice>) -> Option<HeldEnd> {
    Some(match notice {
        Some(Notice::Lost(loss) | Notice::Ended(Ending::Lost(loss))) => HeldEnd::Lost(loss),
        Some(Notice::Ended(Ending::Failed(fault))) => HeldEnd::Lost(Loss::Fault(fault)),
        Some(Notice::Released { .. } | Notice::Ended(Ending::Left)) | None => HeldEnd::Released,
        Some(_) => return None,
    })
}
