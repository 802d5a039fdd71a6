//! What runs only while a claim is held, and the wait for its end before the claim is given up.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// What depends on one participant's claim.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    tracker: TaskTracker,
    /// Writes that wait until nothing depends on the claim.
    waiting: AtomicUsize,
    changed: Notify,
}

impl Dependents {
    pub(super) fn token(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Whether something depends on the claim.
    pub(super) fn are_there(&self) -> bool {
        !self.tracker.is_empty()
    }

    /// Completes when nothing depends on the claim.
    pub(super) async fn until_none(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// As [`until_none`](Self::until_none), and says that somebody waits for it.
    pub(super) async fn until_ended(&self) {
        if !self.are_there() {
            return;
        }
        let _waiting = Waiting::begin(self);
        self.until_none().await;
    }

    /// Completes when a write waits until nothing depends on the claim.
    pub(super) async fn until_waited_for(&self) {
        loop {
            // Listens first and looks then: a change in between is seen by one or the other.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.waiting.load(Ordering::Acquire) > 0 {
                return;
            }
            changed.await;
        }
    }
}

struct Waiting<'a>(&'a Dependents);

impl<'a> Waiting<'a> {
    fn begin(dependents: &'a Dependents) -> Self {
        dependents.waiting.fetch_add(1, Ordering::AcqRel);
        dependents.changed.notify_waiters();
        Waiting(dependents)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_wait_is_told_only_while_something_depends_on_the_claim() {
        let dependents = Dependents::default();
        assert_eq!(dependents.until_ended().now_or_never(), Some(()));
        let mut told = Box::pin(dependents.until_waited_for());
        assert_eq!(told.as_mut().now_or_never(), None);
        let token = dependents.token();
        let mut wait = Box::pin(dependents.until_ended());
        assert_eq!(wait.as_mut().now_or_never(), None);
        assert_eq!(told.now_or_never(), Some(()));
        drop(token);
        assert_eq!(wait.now_or_never(), Some(()));
        assert_eq!(dependents.until_waited_for().now_or_never(), None);
    }
}
