//! A participant that stays.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held::Held;
use super::{Call, Error, Shared};
use crate::epochs::Joined;
use crate::guest::{Arguments, Module};
use crate::holding::{self, Acquire, Attempt, acquire, until_overdue};
use crate::participant::{self as inner, Answer, CallError, Follower, Loss, Notice};
use crate::session::{self, SessionLoss};
use crate::tasks::Tasks;

/// A participant in a recipe. It ends when it is dropped, when its session or its claim is lost, or with
/// the host.
#[derive(Debug)]
pub struct Participant {
    inner: Arc<inner::Participant>,
    /// What it told since it joined, and nobody has looked at.
    told: Mutex<Follower>,
    module: Module,
    // Behind the handle above: the host may end when the participant was asked to leave.
    shared: Arc<Shared>,
}

impl Participant {
    pub(super) fn of(shared: &Arc<Shared>, joined: Joined, module: Module) -> Self {
        let Joined { participant, follower, .. } = joined;
        let inner = Arc::new(participant);
        shared.enter(&inner);
        Participant { inner, told: Mutex::new(follower), module, shared: Arc::clone(shared) }
    }

    /// Its id, which is in the names of its contender znodes.
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// Calls an operation, one at a time.
    ///
    /// # Errors
    /// The operation's own error is [`Error::Refused`].
    ///
    /// # Cancellation
    /// Dropping the future withdraws the call.
    pub async fn call(&self, call: impl Into<Call>) -> Result<Value, Error> {
        let call = call.into();
        let arguments = self.module.arguments(&call.operation, &call.arguments);
        self.answered(arguments.map_err(Error::Arguments)?, call.deadline()).await
    }

    /// Calls an operation until it holds a claim. The participant is the claim's from then on.
    ///
    /// # Errors
    /// Nothing is held, and the participant has left.
    ///
    /// # Cancellation
    /// Dropping the future ends the participant.
    pub async fn acquire(self, call: impl Into<Call>) -> Result<Held, Error> {
        let call = call.into();
        let arguments = self.module.arguments(&call.operation, &call.arguments);
        self.acquired(arguments.map_err(Error::Arguments)?, call.deadline()).await
    }

    /// What it holds at this very moment, as far as anyone can know.
    pub fn held(&self) -> Option<session::Held> {
        self.inner.presence().held()
    }

    /// Follows what it tells, from where it stands on: that it waits, holds, or has lost, and the events
    /// of its module.
    pub fn follow(&self) -> Follower {
        self.inner.presence().follow()
    }

    /// Leaves, and waits until nothing of it is left in ZooKeeper; without contact, until its session
    /// may not be believed in any more.
    ///
    /// # Cancellation
    /// It leaves all the same.
    pub async fn leave(mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        holding::leave(&self.inner, told, drop).await;
    }

    pub(super) async fn answered(
        &self,
        arguments: Arguments,
        deadline: Option<Instant>,
    ) -> Result<Value, Error> {
        match self.inner.call(inner::Call { arguments, deadline, withdrawn: None }).await {
            Ok(Answer { value, .. }) => value.map_err(Error::Refused),
            Err(CallError::Cancelled) => Err(Error::TimedOut),
            Err(CallError::Busy) => Err(Error::Busy),
            Err(CallError::Ended) => Err(self.ended().await),
        }
    }

    pub(super) async fn acquired(
        mut self,
        arguments: Arguments,
        deadline: Option<Instant>,
    ) -> Result<Held, Error> {
        let attempt = Acquire { arguments, deadline, withdrawn: CancellationToken::new() };
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        let error = match acquire(&self.inner, told, attempt, |_| {}).await {
            Attempt::Held { claim, answer } => match self.inner.depend(&claim) {
                Some(dependent) => return Ok(Held::new(self, claim, answer, dependent)),
                // Its module has given the claim up again, or it was lost.
                None => {
                    self.inner.leave();
                    self.ended().await
                }
            },
            Attempt::NotHeld(answer) | Attempt::Idle(answer) => Error::NotHeld(answer),
            Attempt::Cancelled => Error::TimedOut,
            Attempt::Refused(error) => Error::Refused(error),
            Attempt::Busy => Error::Busy,
            Attempt::Ended(ending) => ending.into(),
        };
        self.leave().await;
        Err(error)
    }

    /// Why it ends.
    async fn ended(&self) -> Error {
        let mut follower = self.follow();
        loop {
            // Both are cancel-safe.
            tokio::select! {
                biased;
                notice = follower.next() => match notice {
                    Some(Notice::Ended(ending)) => return ending.into(),
                    Some(_) => {}
                    None => return Error::Left,
                },
                () = until_overdue(&self.inner) => {
                    return Error::Lost(Loss::Session(SessionLoss::Deadline));
                }
            }
        }
    }

    pub(super) fn tasks(&self) -> &Tasks {
        self.shared.epochs.base().tasks()
    }

    pub(super) async fn until_host_ends(&self) {
        self.shared.shutdown.cancelled().await;
    }

    pub(super) fn inner(&self) -> &inner::Participant {
        &self.inner
    }

    pub(super) fn told(&self) -> &Mutex<Follower> {
        &self.told
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.inner.leave();
        self.shared.strike_out(&self.inner);
    }
}
