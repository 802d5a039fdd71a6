//! One deletion of a given name at a time.
//!
//! A znode whose name was given is looked at before it is deleted, for by then another client's may have
//! the name. ZooKeeper deletes by path, so that look is worth something only as long as nobody of this
//! session deletes the znode in between: after that the name is anybody's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

type Queue = Arc<tokio::sync::Mutex<()>>;

/// Who deletes which name, and who waits to.
#[derive(Debug, Default)]
pub(super) struct Turns {
    by_path: Mutex<HashMap<String, Queue>>,
}

/// The right to look at a znode and delete it.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    path: String,
    /// Taken when the turn is over.
    queue: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until nobody else of this session deletes the znode at `path`. Those who wait come one after
    /// another, in their order.
    ///
    /// # Cancellation
    /// The place in the queue is lost.
    pub(super) async fn take(&self, path: &str) -> Turn<'_> {
        let queue = Arc::clone(self.lock().entry(path.to_owned()).or_default());
        // Before the wait, so that a caller that drops this future leaves no entry behind.
        let mut turn = Turn { turns: self, path: path.to_owned(), queue: None };
        turn.queue = Some(queue.lock_owned().await);
        turn
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut by_path = self.turns.lock();
        self.queue = None;
        // Each one that waits holds a count, and nobody can join the queue under this lock.
        if by_path.get(&self.path).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            by_path.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn those_of_one_name_come_one_after_another_and_leave_nothing_behind() {
        let turns = Turns::default();
        let first = turns.take("/a").await;
        assert!(turns.take("/b").now_or_never().is_some());
        let mut second = Box::pin(turns.take("/a"));
        let mut third = Box::pin(turns.take("/a"));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        assert!(third.now_or_never().is_some());
        assert!(turns.lock().is_empty());
    }
}
