//! Which deletions are this host's own work: one that is not may be the session's end.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::core::Core;

/// How many are remembered: some that were answered just before their events are looked at, as where
/// a thousand participants end together. Forgetting one costs only an extra read.
const MOST: usize = 4096;

/// The deletions that this host has asked for, and whether one was seen that it has not.
///
/// A session's ephemeral znodes go in one txn when it ends, but are told one by one. So when a znode
/// of this session goes, and not because this host deleted it, those of which nothing was told yet
/// may be gone as well, and only a fresh look tells. An event comes before the answer to the request
/// that caused it: until then it is not known whose work it was.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    /// Asked for and not answered, by how many requests.
    asked: HashMap<String, usize>,
    /// Of these, seen to be gone.
    seen: HashSet<String>,
    /// Answered, the latest. Each path is kept once.
    done: HashSet<Arc<str>>,
    in_order: VecDeque<Arc<str>>,
    /// How often a znode was seen to be gone that this host has not deleted.
    doubts: Doubts,
    /// How many of these came before a look by which the session lives on.
    settled: Doubts,
}

/// How many doubts there were at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Doubts(u64);

/// What the events of this session's own znodes say of those that had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// They are still there.
    Sure,
    /// Perhaps not: look.
    Doubtful,
    /// That is known when a request under way is answered.
    NotYet,
}

impl Deletions {
    fn ask(&mut self, path: &str) {
        *self.asked.entry(path.to_owned()).or_default() += 1;
    }

    fn answer(&mut self, path: &str, is_done: bool) {
        if is_done && !self.done.contains(path) {
            let path: Arc<str> = path.into();
            self.done.insert(Arc::clone(&path));
            self.in_order.push_back(path);
            if self.in_order.len() > MOST
                && let Some(oldest) = self.in_order.pop_front()
            {
                self.done.remove(&oldest);
            }
        }
        let left = self.asked.get_mut(path).map_or(0, |asked| {
            *asked = asked.saturating_sub(1);
            *asked
        });
        if left == 0 {
            self.asked.remove(path);
        }
        if is_done {
            self.seen.remove(path);
        } else if left == 0 && self.seen.remove(path) {
            self.doubt();
        }
    }

    fn doubt(&mut self) {
        self.doubts.0 += 1;
    }

    /// A znode of that name is about to be created again: from now on an event of the name is about the new
    /// znode.
    pub(super) fn forget(&mut self, path: &str) {
        if self.done.remove(path) {
            self.in_order.retain(|it| **it != *path);
        }
    }

    /// A znode of this session has gone.
    pub(super) fn see(&mut self, path: &str) {
        if self.done.contains(path) {
            return;
        }
        match self.asked.contains_key(path) {
            true => drop(self.seen.insert(path.to_owned())),
            false => self.doubt(),
        }
    }

    /// To be asked for before a look is sent that may settle them.
    pub(super) fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// A server has shown that the session lives on, and was asked when there were so many doubts. Of later
    /// ones that says nothing: the session may have ended behind the look.
    pub(super) fn settle(&mut self, doubts: Doubts) {
        self.settled = self.settled.max(doubts);
    }

    pub(super) fn trust(&self) -> Trust {
        match (self.settled < self.doubts, self.seen.is_empty()) {
            (true, _) => Trust::Doubtful,
            (false, false) => Trust::NotYet,
            (false, true) => Trust::Sure,
        }
    }
}

/// A deletion that this host asks for. Dropped before it is done, nobody knows whose work it was.
#[derive(Debug)]
pub(super) struct Deleting {
    core: Arc<Core>,
    path: String,
    is_done: bool,
}

impl Deleting {
    /// To be made before the request is sent.
    pub(super) fn begin(core: &Arc<Core>, path: &str) -> Self {
        core.deletions().ask(path);
        Deleting { core: Arc::clone(core), path: path.to_owned(), is_done: false }
    }

    /// The server has answered that it did it.
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Deleting {
    fn drop(&mut self) {
        self.core.deletions().answer(&self.path, self.is_done);
        self.core.deletion_answered.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_that_nobody_asked_for_raises_a_doubt() {
        let mut deletions = Deletions::default();
        deletions.see("/b");
        assert_eq!(deletions.trust(), Trust::Doubtful);
        deletions.settle(deletions.doubts());
        assert_eq!(deletions.trust(), Trust::Sure);
    }

    #[test]
    fn a_look_that_was_sent_before_a_doubt_does_not_settle_it() {
        let mut deletions = Deletions::default();
        let before = deletions.doubts();
        deletions.see("/a");
        deletions.settle(before);
        assert_eq!(deletions.trust(), Trust::Doubtful);
    }

    #[test]
    fn a_deletion_that_was_asked_for_is_in_doubt_until_it_is_answered() {
        let mut deletions = Deletions::default();
        deletions.ask("/a");
        deletions.see("/a");
        assert_eq!(deletions.trust(), Trust::NotYet);
        deletions.answer("/a", true);
        assert_eq!(deletions.trust(), Trust::Sure);
        deletions.ask("/b");
        deletions.see("/b");
        deletions.answer("/b", false);
        assert_eq!(deletions.trust(), Trust::Doubtful);
    }

    #[test]
    fn an_answer_may_be_looked_at_before_the_event() {
        let mut deletions = Deletions::default();
        deletions.ask("/a");
        deletions.answer("/a", true);
        deletions.see("/a");
        assert_eq!(deletions.trust(), Trust::Sure);
    }

    #[test]
    fn an_earlier_znode_of_that_name_does_not_speak_for_the_next() {
        let mut deletions = Deletions::default();
        deletions.ask("/a");
        deletions.answer("/a", true);
        deletions.forget("/a");
        deletions.see("/a");
        assert_eq!(deletions.trust(), Trust::Doubtful);
        assert_eq!((deletions.done.len(), deletions.in_order.len()), (0, 0));
    }

    #[test]
    fn one_of_two_who_ask_is_enough() {
        let mut deletions = Deletions::default();
        deletions.ask("/a");
        deletions.ask("/a");
        deletions.see("/a");
        deletions.answer("/a", false);
        assert_eq!(deletions.trust(), Trust::NotYet);
        deletions.answer("/a", true);
        assert_eq!(deletions.trust(), Trust::Sure);
    }

    #[test]
    fn no_more_is_remembered_than_the_limit() {
        let mut deletions = Deletions::default();
        for number in 0..2 * MOST {
            let path = format!("/{number}");
            deletions.ask(&path);
            deletions.answer(&path, true);
        }
        let Deletions { asked, done, in_order, .. } = &deletions;
        assert_eq!((asked.len(), done.len(), in_order.len()), (0, MOST, MOST));
        deletions.see("/0");
        assert_eq!(deletions.trust(), Trust::Doubtful);
    }
}
