//! Which create of this session made the ephemeral znodes whose names were given.
//!
//! The session is shared, so `ephemeralOwner` alone does not tell participants apart. Contenders
//! need no entry here, their UUID does. Of one name only one create is under way at a time: if the
//! replies to two were lost, nobody could tell whose the znode is. A second one waits. A participant may
//! come to create a name again while the janitor still deletes what it created before, so each create is
//! known by itself.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::core::Core;

/// Tells the creates of a session apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CreationId(u64);

/// What is known of one create of a name.
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
    /// It made the znode with this `czxid`, which is gone. This is kept while another create of the name is
    /// open, because a look that was asked for before the znode went may be read after that.
    Gone(i64),
}

impl Creation {
    fn is_open(self) -> bool {
        matches!(self, Creation::UnderWay | Creation::Unanswered)
    }

    /// The znode that it made, as far as that is known.
    fn made(self) -> Option<i64> {
        match self {
            Creation::Found(czxid) | Creation::Done(czxid) | Creation::Gone(czxid) => Some(czxid),
            Creation::UnderWay | Creation::Unanswered | Creation::Void => None,
        }
    }
}

/// The creates of named ephemeral znodes.
#[derive(Debug, Default)]
pub(super) struct NamedZnodes {
    creates: Mutex<Creates>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Creates {
    by_path: HashMap<String, Vec<(CreationId, Creation)>>,
    begun: u64,
}

impl Creates {
    fn of(&self, path: &str) -> impl Iterator<Item = (CreationId, Creation)> {
        self.by_path.get(path).into_iter().flatten().copied()
    }
}

impl NamedZnodes {
    /// Notes that this znode is about to be created. None, and notes nothing, while it is open what
    /// became of another create of that name.
    pub(super) fn begin(&self, path: &str) -> Option<CreationId> {
        let mut creates = self.lock();
        if creates.of(path).any(|(_, it)| it.is_open()) {
            return None;
        }
        let id = CreationId(creates.begun);
        creates.begun += 1;
        creates.by_path.entry(path.to_owned()).or_default().push((id, Creation::UnderWay));
        Some(id)
    }

    /// The create of that name that is open.
    pub(super) fn open(&self, path: &str) -> Option<(CreationId, Creation)> {
        self.lock().of(path).find(|(_, it)| it.is_open())
    }

    /// The create made the znode with this `czxid`.
    pub(super) fn settle(&self, path: &str, id: CreationId, czxid: i64) {
        self.change(path, |it, creation| {
            Some(if it == id { Creation::Done(czxid) } else { creation })
        });
    }

    /// Nobody waits for the reply to the create any more.
    pub(super) fn abandon(&self, path: &str, id: CreationId) {
        self.replace(path, (id, Creation::UnderWay), Creation::Unanswered);
    }

    /// What another participant found where the reply was not waited for.
    pub(super) fn found(&self, path: &str, id: CreationId, czxid: Option<i64>) {
        let found = czxid.map_or(Creation::Void, Creation::Found);
        self.replace(path, (id, Creation::Unanswered), found);
    }

    /// Whether another participant found out that the create did not happen.
    pub(super) fn is_void(&self, path: &str, id: CreationId) -> bool {
        self.lock().of(path).any(|it| it == (id, Creation::Void))
    }

    /// Strikes out a create that did not happen, or whose znode is gone if there ever was one. One that is
    /// known to have made a znode stays until that goes.
    pub(super) fn strike(&self, path: &str, id: CreationId) {
        let stays = |it, creation| it != id || matches!(creation, Creation::Done(_));
        self.retain(path, stays);
    }

    /// Strikes out a znode that is gone.
    pub(super) fn forget(&self, path: &str, czxid: i64) {
        self.retain(path, |_, creation| creation != Creation::Done(czxid));
    }

    /// Whether that very znode was made by another create than this one: by another participant's, or by
    /// an earlier one of its own, whose znode the janitor may be deleting. Once another participant has
    /// found what became of a create, no other znode belongs to the create.
    pub(super) fn is_anothers(&self, path: &str, id: CreationId, czxid: i64) -> bool {
        self.lock().of(path).any(|(it, creation)| match (it == id, creation.made()) {
            (true, Some(made)) => made != czxid,
            (true, None) => creation == Creation::Void,
            (false, made) => made == Some(czxid),
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

    fn replace(&self, path: &str, which: (CreationId, Creation), by: Creation) {
        self.change(path, |id, it| Some(if (id, it) == which { by } else { it }));
    }

    fn retain(&self, path: &str, stays: impl Fn(CreationId, Creation) -> bool) {
        self.change(path, |id, it| match stays(id, it) {
            true => Some(it),
            false => it.made().map(Creation::Gone),
        });
    }

    fn change(&self, path: &str, change: impl Fn(CreationId, Creation) -> Option<Creation>) {
        let mut creates = self.lock();
        if let Some(creations) = creates.by_path.get_mut(path) {
            let changed = |(id, it): (CreationId, Creation)| Some((id, change(id, it)?));
            *creations = mem::take(creations).into_iter().filter_map(changed).collect();
            if !creations.iter().any(|(_, it)| it.is_open()) {
                creations.retain(|(_, it)| !matches!(it, Creation::Gone(_)));
            }
            if creations.is_empty() {
                creates.by_path.remove(path);
            }
        }
        drop(creates);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Creates> {
        self.creates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A participant's wait for the outcome of its create. When the wait is dropped, the next participant
/// that needs the name finds out what became of the create.
#[derive(Debug)]
pub(super) struct Creating {
    core: Arc<Core>,
    path: String,
    id: CreationId,
}

impl Creating {
    /// To be made before the request is sent. None while it is open what became of another create
    /// of that name.
    pub(super) fn begin(core: &Arc<Core>, path: &str) -> Option<Self> {
        let id = core.named.begin(path)?;
        core.deletions().forget(path);
        Some(Creating { core: Arc::clone(core), path: path.to_owned(), id })
    }

    /// Which create it is.
    pub(super) fn id(&self) -> CreationId {
        self.id
    }
}

impl Drop for Creating {
    fn drop(&mut self) {
        self.core.named.abandon(&self.path, self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const PATH: &str = "/a";

    fn begun(named: &NamedZnodes) -> CreationId {
        named.begin(PATH).unwrap()
    }

    /// The znodes of these that were made by another create.
    fn anothers(named: &NamedZnodes, id: CreationId, czxids: &[i64]) -> Vec<i64> {
        czxids.iter().copied().filter(|czxid| named.is_anothers(PATH, id, *czxid)).collect()
    }

    #[test]
    fn a_name_being_created_is_not_begun_again() {
        let named = NamedZnodes::default();
        let one = begun(&named);
        assert_eq!(named.begin(PATH), None);
        assert_eq!(named.open(PATH), Some((one, Creation::UnderWay)));
        named.settle(PATH, one, 70);
        let other = begun(&named);
        assert_eq!(anothers(&named, other, &[70, 80]), [70]);
        assert_eq!(anothers(&named, one, &[70, 80]), [80]);
    }

    #[test]
    fn a_znode_that_has_just_gone_is_not_what_an_open_create_has_made() {
        let named = NamedZnodes::default();
        let one = begun(&named);
        named.settle(PATH, one, 70);
        let other = begun(&named);
        named.forget(PATH, 70);
        assert_eq!(
            anothers(&named, other, &[70]),
            [70],
            "what was asked before may be answered now"
        );
        named.abandon(PATH, other);
        assert_eq!(anothers(&named, other, &[70]), [70]);
        named.settle(PATH, other, 80);
        let third = begun(&named);
        assert_eq!(anothers(&named, third, &[70, 80]), [80], "nobody asked before 70 went");
    }

    #[test]
    fn who_waits_for_the_outcome_of_a_create_goes_on_when_it_is_known_or_nobody_waits_for_it() {
        let named = NamedZnodes::default();
        assert_eq!(named.until_not_under_way(PATH).now_or_never(), Some(()));
        let outcomes: [fn(&NamedZnodes, CreationId); 3] = [
            |named, id| named.settle(PATH, id, 70),
            |named, id| named.strike(PATH, id),
            |named, id| named.abandon(PATH, id),
        ];
        for outcome in outcomes {
            let id = begun(&named);
            let mut waiting = Box::pin(named.until_not_under_way(PATH));
            assert_eq!(waiting.as_mut().now_or_never(), None);
            outcome(&named, id);
            assert_eq!(waiting.now_or_never(), Some(()));
        }
    }

    #[test]
    fn what_another_finds_of_an_unanswered_create_is_final() {
        let named = NamedZnodes::default();
        let one = begun(&named);
        named.found(PATH, one, None);
        assert!(!named.is_void(PATH, one), "its participant still waits for the reply");
        named.abandon(PATH, one);
        assert_eq!(named.begin(PATH), None);
        named.found(PATH, one, None);
        assert!(named.is_void(PATH, one));
        let other = begun(&named);
        assert_eq!(anothers(&named, one, &[80]), [80], "it has made nothing");
        named.settle(PATH, other, 80);
        named.strike(PATH, one);
        assert!(!named.is_void(PATH, one));
    }

    #[test]
    fn what_another_finds_is_still_the_creates_own() {
        let named = NamedZnodes::default();
        let one = begun(&named);
        named.abandon(PATH, one);
        named.found(PATH, one, Some(70));
        let other = begun(&named);
        assert_eq!(anothers(&named, other, &[70, 80]), [70]);
        assert_eq!(
            anothers(&named, one, &[70, 80]),
            [80],
            "the second one's, whose reply is under way"
        );
        named.strike(PATH, one);
        assert_eq!(anothers(&named, other, &[70]), [70], "it has gone only now");
        assert_eq!(named.open(PATH), Some((other, Creation::UnderWay)));
    }

    /// A participant creates a name again while the janitor deletes what it created before.
    #[test]
    fn creates_of_one_participant_are_not_taken_for_each_other() {
        let named = NamedZnodes::default();
        let before = begun(&named);
        named.abandon(PATH, before);
        named.found(PATH, before, Some(70));
        let again = begun(&named);
        // What the look of either may see.
        assert_eq!(anothers(&named, again, &[70, 90]), [70]);
        assert_eq!(anothers(&named, before, &[70, 90]), [90]);
        // The reply to the second one is not waited for any more, and then the janitor is done.
        named.abandon(PATH, again);
        named.strike(PATH, before);
        assert_eq!(named.open(PATH), Some((again, Creation::Unanswered)));
        named.settle(PATH, again, 90);
        assert_eq!(anothers(&named, begun(&named), &[70, 90]), [90]);
    }

    #[test]
    fn a_create_that_is_refused_leaves_what_is_known_of_others() {
        let named = NamedZnodes::default();
        let one = begun(&named);
        named.abandon(PATH, one);
        named.found(PATH, one, Some(70));
        let refused = begun(&named);
        named.strike(PATH, refused);
        assert_eq!(
            anothers(&named, begun(&named), &[70]),
            [70],
            "the janitor has not deleted it yet"
        );
    }
}
