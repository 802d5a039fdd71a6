//! Who of this session's participants created the ephemeral znodes whose names were given.
//!
//! The session is shared, so `ephemeralOwner` alone does not tell participants apart. Contenders
//! need no entry here, their UUID does. Of one name only one create is under way at a time: if the
//! replies to two were lost, nobody could tell whose the znode is. A second one waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::core::Core;
use super::ledger::SeatId;

/// What is known of one participant's create of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creation {
    /// Its participant waits for the reply, or finds out what became of it.
    UnderWay,
    /// Its participant has stopped waiting for the reply.
    Unanswered,
    /// Another participant looked, and there was no znode: it did not happen.
    Void,
    /// Another participant looked, and found the znode with this `czxid`. Its participant does not know yet.
    Found(i64),
    /// It made the znode with this `czxid`.
    Done(i64),
    /// It made the znode with this `czxid`, which is gone. Kept while another create of the name is open: a
    /// look that was asked for before the znode went may be read after that.
    Gone(i64),
}

impl Creation {
    fn is_open(self) -> bool {
        matches!(self, Creation::UnderWay | Creation::Unanswered)
    }

    /// The same, once its znode is gone. None if it is known of no znode.
    fn gone(self) -> Option<Creation> {
        match self {
            Creation::Found(czxid) | Creation::Done(czxid) | Creation::Gone(czxid) => {
                Some(Creation::Gone(czxid))
            }
            Creation::UnderWay | Creation::Unanswered | Creation::Void => None,
        }
    }
}

/// The creates of named ephemeral znodes, by path.
#[derive(Debug, Default)]
pub(super) struct NamedZnodes {
    by_path: Mutex<HashMap<String, Vec<(SeatId, Creation)>>>,
    changed: Notify,
}

impl NamedZnodes {
    /// Notes that a participant is about to create this znode. Answers false, and notes nothing,
    /// while it is open what became of another create of that name.
    pub(super) fn begin(&self, path: &str, seat: SeatId) -> bool {
        let mut by_path = self.lock();
        let creations = by_path.entry(path.to_owned()).or_default();
        if creations.iter().any(|(_, it)| it.is_open()) {
            return false;
        }
        creations.push((seat, Creation::UnderWay));
        true
    }

    /// The create of that name that is open, and whose it is.
    pub(super) fn open(&self, path: &str) -> Option<(SeatId, Creation)> {
        let by_path = self.lock();
        by_path.get(path).into_iter().flatten().find(|(_, it)| it.is_open()).copied()
    }

    /// The participant's create made the znode with this `czxid`.
    pub(super) fn settle(&self, path: &str, seat: SeatId, czxid: i64) {
        let is_this = |it| !matches!(it, Creation::Done(_) | Creation::Gone(_));
        self.replace(path, seat, Creation::Done(czxid), is_this);
    }

    /// The participant does not wait for the reply any more.
    pub(super) fn abandon(&self, path: &str, seat: SeatId) {
        self.replace(path, seat, Creation::Unanswered, |it| it == Creation::UnderWay);
    }

    /// What another participant found where the reply was not waited for.
    pub(super) fn found(&self, path: &str, seat: SeatId, czxid: Option<i64>) {
        let found = czxid.map_or(Creation::Void, Creation::Found);
        self.replace(path, seat, found, |it| it == Creation::Unanswered);
    }

    /// Whether another participant found out that this one's create did not happen.
    pub(super) fn is_void(&self, path: &str, seat: SeatId) -> bool {
        let by_path = self.lock();
        by_path.get(path).into_iter().flatten().any(|it| *it == (seat, Creation::Void))
    }

    /// Strikes out a create that did not happen.
    pub(super) fn forget_open(&self, path: &str, seat: SeatId) {
        self.retain(path, |(it, creation)| it != seat || matches!(creation, Creation::Done(_)));
    }

    /// Strikes out a create whose reply was not waited for: its znode is gone, if there ever was one.
    pub(super) fn forget_unanswered(&self, path: &str, seat: SeatId) {
        let is_settled = |it| matches!(it, Creation::UnderWay | Creation::Done(_));
        self.retain(path, |(it, creation)| it != seat || is_settled(creation));
    }

    /// Strikes out a znode that is gone.
    pub(super) fn forget(&self, path: &str, seat: SeatId, czxid: i64) {
        self.retain(path, |it| it != (seat, Creation::Done(czxid)));
    }

    /// Whether that very znode was made by another create than the one of this participant that is open:
    /// by another participant's, or by an earlier one of its own, whose znode the janitor may be deleting.
    /// Once another participant has found the znode of a create, no other znode belongs to that create.
    pub(super) fn is_anothers(&self, path: &str, seat: SeatId, czxid: i64) -> bool {
        let by_path = self.lock();
        let mut creations = by_path.get(path).into_iter().flatten();
        creations.any(|(it, creation)| match creation {
            Creation::Done(made) | Creation::Gone(made) => *made == czxid,
            Creation::Found(made) => (*made == czxid) != (*it == seat),
            Creation::UnderWay | Creation::Unanswered | Creation::Void => false,
        })
    }

    /// Completes when the create of that name that is under way, if there is one, is so no more.
    pub(super) async fn until_not_under_way(&self, path: &str) {
        loop {
            // Listens first and looks then: a change in between is seen by one or the other.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.open(path) {
                Some((_, Creation::UnderWay)) => changed.await,
                _ => return,
            }
        }
    }

    fn replace(&self, path: &str, seat: SeatId, by: Creation, which: impl Fn(Creation) -> bool) {
        self.change(path, |it, creation| {
            let is_meant = it == seat && which(creation);
            Some(if is_meant { by } else { creation })
        });
    }

    fn retain(&self, path: &str, keep: impl Fn((SeatId, Creation)) -> bool) {
        self.change(path, |seat, creation| match keep((seat, creation)) {
            true => Some(creation),
            false => creation.gone(),
        });
    }

    fn change(&self, path: &str, change: impl Fn(SeatId, Creation) -> Option<Creation>) {
        let mut by_path = self.lock();
        if let Some(creations) = by_path.get_mut(path) {
            let changed = |(seat, it): (SeatId, Creation)| Some((seat, change(seat, it)?));
            *creations = std::mem::take(creations).into_iter().filter_map(changed).collect();
            if !creations.iter().any(|(_, it)| it.is_open()) {
                creations.retain(|(_, it)| !matches!(it, Creation::Gone(_)));
            }
            if creations.is_empty() {
                by_path.remove(path);
            }
        }
        drop(by_path);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<(SeatId, Creation)>>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A participant's wait for the outcome of its create. When the wait is dropped, the next participant
/// that needs the name finds out what became of the create.
#[derive(Debug)]
pub(super) struct Creating {
    core: Arc<Core>,
    path: String,
    seat: SeatId,
}

impl Creating {
    /// To be made before the request is sent. None while it is open what became of another create
    /// of that name.
    pub(super) fn begin(core: &Arc<Core>, path: &str, seat: SeatId) -> Option<Self> {
        let core = Arc::clone(core);
        core.named.begin(path, seat).then(|| {
            core.deletions().forget(path);
            Creating { core, path: path.to_owned(), seat }
        })
    }
}

impl Drop for Creating {
    fn drop(&mut self) {
        self.core.named.abandon(&self.path, self.seat);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_name_being_created_by_one_participant_is_not_begun_by_another() {
        let named = NamedZnodes::default();
        assert!(named.begin("/a", 1));
        assert!(!named.begin("/a", 2));
        assert_eq!(named.open("/a"), Some((1, Creation::UnderWay)));
        named.settle("/a", 1, 70);
        assert!(named.begin("/a", 2));
        assert!(named.is_anothers("/a", 2, 70));
        assert!(named.is_anothers("/a", 1, 70), "not of a later create of its own");
    }

    #[test]
    fn a_znode_that_has_just_gone_is_not_what_an_open_create_has_made() {
        let named = NamedZnodes::default();
        assert!(named.begin("/a", 1));
        named.settle("/a", 1, 70);
        assert!(named.begin("/a", 2));
        named.forget("/a", 1, 70);
        assert!(named.is_anothers("/a", 2, 70), "what was asked before may be answered only now");
        named.abandon("/a", 2);
        assert!(named.is_anothers("/a", 2, 70));
        named.settle("/a", 2, 80);
        assert!(named.begin("/a", 2));
        named.forget("/a", 2, 80);
        named.settle("/a", 2, 90);
        assert!(named.begin("/a", 3));
        assert!(named.is_anothers("/a", 3, 90) && !named.is_anothers("/a", 3, 80));
        assert!(!named.is_anothers("/a", 3, 70), "nobody asked before");
    }

    #[test]
    fn who_waits_for_the_outcome_of_a_create_goes_on_when_it_is_known_or_nobody_waits_for_it() {
        let named = NamedZnodes::default();
        assert_eq!(named.until_not_under_way("/a").now_or_never(), Some(()));
        let outcomes: [fn(&NamedZnodes); 3] = [
            |named| named.settle("/a", 1, 70),
            |named| named.forget_open("/a", 1),
            |named| named.abandon("/a", 1),
        ];
        for outcome in outcomes {
            assert!(named.begin("/a", 1));
            let mut waiting = Box::pin(named.until_not_under_way("/a"));
            assert_eq!(waiting.as_mut().now_or_never(), None);
            outcome(&named);
            assert_eq!(waiting.now_or_never(), Some(()));
        }
    }

    #[test]
    fn what_another_finds_of_an_unanswered_create_is_final() {
        let named = NamedZnodes::default();
        assert!(named.begin("/a", 1));
        named.found("/a", 1, None);
        assert!(!named.is_void("/a", 1), "its participant still waits for the reply");
        named.abandon("/a", 1);
        assert!(!named.begin("/a", 2));
        named.found("/a", 1, None);
        assert!(named.is_void("/a", 1) && named.begin("/a", 2));
        named.settle("/a", 2, 80);
        named.forget_open("/a", 1);
        assert!(named.is_anothers("/a", 1, 80));
    }

    #[test]
    fn what_another_finds_is_still_the_creates_own() {
        let named = NamedZnodes::default();
        assert!(named.begin("/a", 1));
        named.abandon("/a", 1);
        named.found("/a", 1, Some(70));
        assert!(named.begin("/a", 2));
        assert!(named.is_anothers("/a", 2, 70) && !named.is_anothers("/a", 1, 70));
        assert!(named.is_anothers("/a", 1, 80), "the second one's, whose reply is under way");
        named.forget_unanswered("/a", 1);
        assert!(named.is_anothers("/a", 2, 70), "it has gone only now");
        assert_eq!(named.open("/a"), Some((2, Creation::UnderWay)));
    }
}
