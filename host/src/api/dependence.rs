//! What an app runs while its participant holds a claim, and the wait for its end.
//!
//! An app that is told of a loss stops at once. One that is told that its participant gives a claim up
//! has to stop before the znodes go, for somebody else may hold them then; and whatever becomes of the
//! app, what it runs may go on until the deadline that the app was told last. So the claim is kept
//! until the app has said that nothing depends on it any more, or that deadline has passed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::clock::Boottime;
use crate::participant::Participant;
use crate::session::Held;

/// What depends on a participant's claim.
#[derive(Debug)]
pub(super) struct Dependence {
    state: Mutex<State>,
    changed: Notify,
    /// How long it may take to end what is killed at the deadline: what the session keeps for that.
    margin: Duration,
}

#[derive(Debug)]
struct State {
    /// Keeps the claim's znodes.
    token: Option<TaskTrackerToken>,
    /// The latest deadline that the app was told.
    told: Boottime,
    /// The claim is being given up: no later deadline is told.
    is_given_up: bool,
    /// The participant is to end.
    is_leaving: bool,
    /// The app has said that nothing depends on the claim.
    is_over: bool,
}

impl Dependence {
    pub(super) fn new(margin: Duration) -> Self {
        let state = State {
            token: None,
            told: Boottime::from_nanos(0),
            is_given_up: false,
            is_leaving: false,
            is_over: false,
        };
        Dependence { state: Mutex::new(state), changed: Notify::new(), margin }
    }

    /// From now on something depends on what is held. Answers whether the app may be told that it is
    /// held: not if the claim is being given up already.
    pub(super) fn begin(&self, participant: &Participant, held: &Held) -> bool {
        let mut state = self.state();
        if state.is_leaving {
            return false;
        }
        // What the app said was about the claim that has been given up.
        if state.is_given_up {
            state.is_over = false;
        }
        if !state.is_over {
            let Some(token) = participant.depend(held) else { return false };
            state.token = Some(token);
        }
        state.is_given_up = false;
        true
    }

    /// The deadline that the app may be told, if any. It is told now.
    pub(super) fn tell(&self, deadline: Option<Boottime>) -> Option<Boottime> {
        let mut state = self.state();
        let deadline = deadline.filter(|_| !state.is_given_up && !state.is_leaving)?;
        state.told = state.told.max(deadline);
        Some(deadline)
    }

    /// The claim is being given up, or lost.
    pub(super) fn give_up(&self) {
        self.state().is_given_up = true;
        self.changed.notify_one();
    }

    /// The participant is to end. Answers whether something depends on its claim.
    pub(super) fn leave(&self) -> bool {
        let mut state = self.state();
        state.is_leaving = true;
        let is_kept = state.token.is_some();
        drop(state);
        self.changed.notify_one();
        is_kept
    }

    /// Nothing depends on the claim any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.token = None;
    }

    /// Completes when the claim is being given up, and whatever depends on it has ended by the
    /// deadline that the app was told last.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn until_spent(&self) {
        loop {
            let spent = self.spent();
            match spent.map(Boottime::remaining) {
                Some(Duration::ZERO) => return,
                // On the clock that goes on while the machine sleeps, so it is asked again.
                Some(remaining) => {
                    drop(tokio::time::timeout(remaining, self.changed.notified()).await)
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// When nothing that depends on the claim can be left, if the claim is being given up.
    fn spent(&self) -> Option<Boottime> {
        let state = self.state();
        let is_due = state.token.is_some() && (state.is_given_up || state.is_leaving);
        is_due.then(|| state.told + self.margin)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio_util::task::TaskTracker;

    use super::*;

    fn kept(dependents: &TaskTracker) -> Dependence {
        let dependence = Dependence::new(Duration::from_millis(1));
        dependence.state().token = Some(dependents.token());
        dependence
    }

    #[tokio::test]
    async fn a_claim_is_kept_until_the_deadline_that_was_told_has_passed() {
        let dependents = TaskTracker::new();
        let dependence = kept(&dependents);
        let soon = Boottime::now() + Duration::from_millis(20);
        assert_eq!(dependence.tell(Some(soon)), Some(soon));
        // While it is held, a deadline that passes means nothing: the next one comes.
        assert_eq!(dependence.until_spent().now_or_never(), None);
        assert!(dependence.leave());
        assert_eq!(dependence.tell(Some(soon + Duration::from_secs(60))), None);
        dependence.until_spent().await;
        assert!(soon.has_passed());
    }

    #[test]
    fn a_claim_is_kept_no_longer_than_the_app_says() {
        let dependents = TaskTracker::new();
        let dependence = kept(&dependents);
        dependence.tell(Some(Boottime::now() + Duration::from_secs(60)));
        dependence.give_up();
        assert!(!dependents.is_empty());
        dependence.end();
        assert!(dependents.is_empty());
        assert!(!dependence.leave());
        assert_eq!(dependence.until_spent().now_or_never(), None);
    }
}
