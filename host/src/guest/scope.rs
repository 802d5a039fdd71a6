//! The operation under way: whether it is cancelled, and whether it waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The operation that a participant has under way, as far as those go who do not run it.
///
/// Cancelling does not stop the component: its host calls answer `cancelled`, so that it withdraws
/// and returns. The task that cancels also bounds how long it waits for that.
#[derive(Debug, Default)]
pub struct OperationScope {
    is_cancelled: AtomicBool,
    changed: Notify,
    /// When it was cancelled, if it is.
    since: Mutex<Option<Instant>>,
    is_waiting: AtomicBool,
}

impl OperationScope {
    /// A scope in which nothing is cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a fresh operation, which nobody has cancelled yet.
    pub(crate) fn begin(&self) {
        self.is_cancelled.store(false, Ordering::Release);
    }

    /// Withdraws the operation under way: the host call in which it is blocked and every later one
    /// except `release` answer `cancelled`.
    pub fn cancel(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.is_cancelled.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Whether the operation under way is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Notes that the component waits for a watch, until what this answers is dropped.
    pub(super) fn waits(&self) -> Waits<'_> {
        self.is_waiting.store(true, Ordering::Relaxed);
        Waits(self)
    }

    /// Whether the component waits for a watch. Nothing but what people are shown depends on it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Completes when the operation under way is cancelled.
    ///
    /// # Cancellation
    /// Nothing is lost when this is dropped.
    pub async fn cancelled(&self) {
        loop {
            // Listens first and looks then: a cancel in between is seen by one or the other.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            changed.await;
        }
    }
}

impl OperationScope {
    /// Completes when the operation has been cancelled for that long.
    ///
    /// # Cancellation
    /// Nothing is lost when this is dropped.
    pub(super) async fn cancelled_for(&self, time: Duration) {
        self.cancelled().await;
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::time::sleep_until(since.unwrap_or_else(Instant::now) + time).await;
    }
}

/// A component that waits for a watch.
#[derive(Debug)]
pub(super) struct Waits<'a>(&'a OperationScope);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.is_waiting.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn cancel_completes_who_waits_and_who_comes_later_until_the_next_operation() {
        let scope = OperationScope::new();
        let mut waiting = Box::pin(scope.cancelled());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        scope.cancel();
        assert_eq!(waiting.now_or_never(), Some(()));
        assert_eq!(scope.cancelled().now_or_never(), Some(()));
        scope.begin();
        assert_eq!(scope.cancelled().now_or_never(), None);
    }

    #[test]
    fn a_component_waits_until_its_wait_is_dropped() {
        let scope = OperationScope::new();
        assert!(!scope.is_waiting());
        let waits = scope.waits();
        assert!(scope.is_waiting());
        drop(waits);
        assert!(!scope.is_waiting());
    }
}
