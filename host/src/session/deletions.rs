//! Which deletions this host has asked for: one that it has not may be the session's end.

use std::collections::{HashSet, VecDeque};

/// How many are remembered; of a deletion that was forgotten only a needless look comes.
const MOST: usize = 4096;

/// The deletions that this host has asked for lately, and whether one was seen that it has not.
///
/// A session's ephemeral znodes go in one txn when it ends, but are told one by one. So when a znode
/// of this session went and this host did not ask for that, those of which nothing was told yet may
/// be gone as well, and only a fresh look tells.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    asked_for: HashSet<String>,
    in_order: VecDeque<String>,
    is_doubtful: bool,
}

impl Deletions {
    /// This host is about to ask for one.
    pub(super) fn ask(&mut self, path: &str) {
        if !self.asked_for.insert(path.to_owned()) {
            return;
        }
        self.in_order.push_back(path.to_owned());
        if self.in_order.len() > MOST
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.asked_for.remove(&oldest);
        }
    }

    /// A znode of this session has gone.
    pub(super) fn seen(&mut self, path: &str) {
        if !self.asked_for.contains(path) {
            self.is_doubtful = true;
        }
    }

    /// The server has answered this session since.
    pub(super) fn settle(&mut self) {
        self.is_doubtful = false;
    }

    /// Whether what was not told to be gone may be gone all the same.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_deletion_that_nobody_asked_for_raises_a_doubt() {
        let mut deletions = Deletions::default();
        deletions.ask("/a");
        deletions.seen("/a");
        assert!(!deletions.is_doubtful());
        deletions.seen("/b");
        assert!(deletions.is_doubtful());
        deletions.settle();
        assert!(!deletions.is_doubtful());
    }

    #[test]
    fn no_more_is_remembered_than_the_limit() {
        let mut deletions = Deletions::default();
        (0..2 * MOST).for_each(|number| deletions.ask(&format!("/{number}")));
        assert_eq!((deletions.asked_for.len(), deletions.in_order.len()), (MOST, MOST));
        deletions.seen("/0");
        assert!(deletions.is_doubtful());
    }
}
