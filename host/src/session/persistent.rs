//! How many persistent znodes one participant may have created that are still there.
//!
//! They outlive their participant, so no ledger deletes them; but they stay in the ensemble's
//! memory, and every list of their directory is as long as they are. Who consumes them may be
//! another participant or another client, so whether one is still there is looked up, the oldest
//! first, when there is no room for more.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::failure::Failure;
use super::request::{Reply, Request, Watching, Write, Written};
use super::seat::Seat;

/// Looked up at a time: for somebody whose znodes are consumed, one round trip in so many creates.
const LOOKED_UP: usize = 64;

/// A path counts once, and once more for so many bytes of it: what is remembered is bounded, too.
const BYTES_OF_ONE: usize = 256;

/// The persistent znodes that a participant created, as far as it is not known that they are gone.
#[derive(Debug, Default)]
pub(super) struct Persistent {
    /// In the order in which they were created, or last found to be there.
    in_order: BTreeMap<u64, Arc<str>>,
    by_path: HashMap<Arc<str>, u64>,
    count: usize,
    next: u64,
}

fn counts(path: &str) -> usize {
    1 + path.len() / BYTES_OF_ONE
}

impl Persistent {
    /// It is there, or may be.
    pub(super) fn add(&mut self, path: &str) {
        self.forget(path);
        let path: Arc<str> = path.into();
        self.count += counts(&path);
        self.in_order.insert(self.next, Arc::clone(&path));
        self.by_path.insert(path, self.next);
        self.next += 1;
    }

    /// It is gone.
    pub(super) fn forget(&mut self, path: &str) {
        if let Some(number) = self.by_path.remove(path) {
            self.in_order.remove(&number);
            self.count -= counts(path);
        }
    }

    fn oldest(&self) -> Vec<Arc<str>> {
        self.in_order.values().take(LOOKED_UP).cloned().collect()
    }
}

/// In how many round trips, before one write is refused.
const MOST_ROUNDS: usize = 16;

/// How much a write counts: nothing, unless it creates a persistent znode.
pub(super) fn persistent_room(write: &Write) -> usize {
    match write {
        Write::Create { path, mode, .. } if !mode.is_ephemeral() => counts(path),
        _ => 0,
    }
}

impl Seat {
    pub(super) fn persistent(&self) -> MutexGuard<'_, Persistent> {
        self.persistent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a znode that a reply tells of.
    pub(super) fn persists(&self, written: &Written) {
        if let Written::Created(path, _) = written {
            self.persistent().add(path);
        }
    }

    /// Finds room for persistent znodes that count so much more.
    ///
    /// # Errors
    /// `OverLimit` before anything is sent.
    pub(super) async fn check_persistent(&self, more: usize) -> Result<(), Failure> {
        let most = self.limits.persistent_znodes;
        if more == 0 || self.persistent().count + more <= most {
            return Ok(());
        }
        // The oldest may be the very ones that are still there. Where many are, the next write goes on.
        let all = self.persistent().in_order.len().div_ceil(LOOKED_UP);
        for _ in 0..all.min(MOST_ROUNDS) {
            // Boxed, as it is rare: a future has room for every branch.
            Box::pin(self.look_up_oldest()).await?;
            if self.persistent().count + more <= most {
                return Ok(());
            }
        }
        Err(Failure::OverLimit(format!(
            "{most} persistent znodes that this participant created are still there, which is \
             limits.persistent-znodes: delete some or raise it"
        )))
    }

    async fn look_up_oldest(&self) -> Result<(), Failure> {
        let oldest = self.persistent().oldest();
        let looks =
            oldest.iter().map(|path| Request::Exists(path.to_string(), Watching::No)).collect();
        let answers = self.core.send_all(looks).await?;
        let mut persistent = self.persistent();
        for (path, answer) in oldest.iter().zip(answers) {
            match answer {
                Ok(Reply::Exists(None, _)) => persistent.forget(path),
                // The next look is at others.
                Ok(_) => persistent.add(path),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_once_however_often_it_is_created_and_long_ones_count_more() {
        let mut persistent = Persistent::default();
        persistent.add("/a");
        persistent.add("/a");
        assert_eq!(persistent.count, 1);
        let long = format!("/{}", "x".repeat(4 * BYTES_OF_ONE));
        persistent.add(&long);
        assert_eq!(persistent.count, 6);
        persistent.forget(&long);
        persistent.forget("/b");
        assert_eq!((persistent.count, persistent.in_order.len()), (1, 1));
    }

    #[test]
    fn those_that_were_found_are_looked_at_again_last() {
        let mut persistent = Persistent::default();
        (0..LOOKED_UP + 1).for_each(|number| persistent.add(&format!("/{number}")));
        persistent.add("/0");
        assert_eq!(persistent.oldest().first().map(|it| &**it), Some("/1"));
        assert!(!persistent.oldest().iter().any(|it| &**it == "/0"));
    }
}
