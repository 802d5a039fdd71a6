//! How many persistent znodes one participant may have created that are still there.
//!
//! They outlive their participant, so no ledger deletes them; but they stay in the ensemble's
//! memory, and every list of their directory is as long as they are. Who consumes them may be
//! another participant or another client, so whether one is still there is looked up, the oldest
//! first, when there is no room for more.
//!
//! A create that was sent and not answered counts, too. Of a sequential one the name is not known then:
//! as many count as may be there, which the list of the directory bounds.
//!
//! Where the host joins a recipe again by itself whenever its participant has ended, all those participants
//! count as one: a module could otherwise leave as many as it likes, by failing as often as that takes. A
//! create that a lost session has sent may be carried out behind the look of the next session, and is missed
//! then. Apps that join count one by one: how often they do is theirs to decide, and not the module's.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::failure::Failure;
use super::request::{CreateMode, Reply, Request, Watching, Write, Written};
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
    /// Sequential creates that were not answered: the path that was asked for, and how many. Those whose
    /// last look is the longest ago come first.
    unnamed: VecDeque<(Arc<str>, usize)>,
    count: usize,
    next: u64,
}

/// What a participant has left behind, and those whose place it takes. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct LeftBehind {
    persistent: Arc<Mutex<Persistent>>,
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

    /// A sequential znode that was asked for at that path may be there.
    fn add_unnamed(&mut self, path: &str) {
        self.count += counts(path);
        match self.unnamed.iter_mut().find(|(it, _)| **it == *path) {
            Some((_, unnamed)) => *unnamed += 1,
            None => self.unnamed.push_back((path.into(), 1)),
        }
    }

    /// The list of the directory shows these with a counter behind `path`: no more of those that were not
    /// answered can be there than it shows and this participant does not know by name.
    fn bound_unnamed(&mut self, path: &str, numbered: &[String]) {
        let Some(at) = self.unnamed.iter().position(|(it, _)| **it == *path) else { return };
        let Some((path, unnamed)) = self.unnamed.remove(at) else { return };
        let is_known = |it: &&String| self.by_path.contains_key(it.as_str());
        let others = numbered.len() - numbered.iter().filter(is_known).count();
        let left = unnamed.min(others);
        self.count -= (unnamed - left) * counts(&path);
        if left > 0 {
            self.unnamed.push_back((path, left));
        }
    }
}

/// A persistent znode that is being created. It counts if this is dropped before its fate is known.
#[derive(Debug)]
pub(super) struct Unanswered<'a> {
    seat: &'a Seat,
    asked: Option<(String, CreateMode)>,
}

impl Unanswered<'_> {
    /// What became of it is known.
    pub(super) fn decided(mut self) {
        self.asked = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        match self.asked.take() {
            Some((path, CreateMode::PersistentSequential)) => {
                self.seat.persistent().add_unnamed(&path);
            }
            // If it is not there, that is found out when there is no room for more.
            Some((path, _)) => self.seat.persistent().add(&path),
            None => {}
        }
    }
}

/// In how many round trips, before one write is refused.
const MOST_ROUNDS: usize = 16;

/// The path and the mode of a write that creates a persistent znode; none of any other write.
fn persistent_create(write: &Write) -> Option<(&str, CreateMode)> {
    match write {
        Write::Create { path, mode, .. } if !mode.is_ephemeral() => Some((path, *mode)),
        _ => None,
    }
}

/// How much a write counts: nothing, unless it creates a persistent znode.
pub(super) fn persistent_room(write: &Write) -> usize {
    persistent_create(write).map_or(0, |(path, _)| counts(path))
}

impl Seat {
    /// The same seat, for a participant that takes the place of an earlier one. The znodes that the earlier one
    /// has left behind count as this participant's own, whatever session they were created on.
    #[must_use]
    pub fn in_place_of(mut self, earlier: &LeftBehind) -> Self {
        self.left_behind = earlier.clone();
        self
    }

    /// To be made before the write is sent. None if it creates no persistent znode.
    pub(super) fn unanswered(&self, write: &Write) -> Option<Unanswered<'_>> {
        persistent_create(write)
            .map(|(path, mode)| Unanswered { seat: self, asked: Some((path.to_owned(), mode)) })
    }

    pub(super) fn persistent(&self) -> MutexGuard<'_, Persistent> {
        self.left_behind.persistent.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Once for all the looks. A server that is behind does not show what became of the creates that were
        // not answered, and those would be forgotten. Later in this session no server shows less.
        // Boxed, here and below, as it is rare: a future has room for every branch.
        Box::pin(self.core.catch_up()).await?;
        // The oldest may be the very ones that are still there. Where many are, the next write goes on.
        let all = self.persistent().in_order.len().div_ceil(LOOKED_UP);
        for _ in 0..all.min(MOST_ROUNDS) {
            Box::pin(self.look_up_oldest()).await?;
            if self.persistent().count + more <= most {
                return Ok(());
            }
        }
        let all = self.persistent().unnamed.len();
        for _ in 0..all.min(MOST_ROUNDS) {
            Box::pin(self.look_for_unnamed()).await?;
            if self.persistent().count + more <= most {
                return Ok(());
            }
        }
        Err(Failure::OverLimit(format!(
            "{most} persistent znodes that this participant created, or one whose place it takes, are still \
             there, or may be, which is limits.persistent-znodes: delete some or raise it"
        )))
    }

    /// To be asked of a server that has caught up.
    async fn look_for_unnamed(&self) -> Result<(), Failure> {
        let Some((path, _)) = self.persistent().unnamed.front().cloned() else { return Ok(()) };
        let numbered = self.numbered(&path).await?;
        self.persistent().bound_unnamed(&path, &numbered);
        Ok(())
    }

    /// As [`look_for_unnamed`](Seat::look_for_unnamed).
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
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{StandIn, at, contend};

    const TWO: SeatLimits = SeatLimits { znodes: 10, persistent_znodes: 2, watched_paths: 0 };

    async fn create(seat: &Seat, name: &str, mode: CreateMode) -> Result<Reply, Failure> {
        let write = Write::Create { path: at(name), data: Vec::new(), mode };
        seat.submit(Request::Write(write)).await
    }

    fn is_unknown(answer: &Result<Reply, Failure>) -> bool {
        matches!(answer, Err(Failure::OutcomeUnknown))
    }

    fn is_over_limit(answer: &Result<Reply, Failure>) -> bool {
        matches!(answer, Err(Failure::OverLimit(_)))
    }

    #[tokio::test]
    async fn a_create_whose_reply_was_lost_counts_until_its_znode_is_gone() {
        let stand_in = StandIn::open();
        for mode in [CreateMode::Persistent, CreateMode::PersistentSequential] {
            let seat = stand_in.seat(TWO);
            stand_in.lose_creates(2);
            for name in ["a", "b"] {
                let answer = create(&seat, name, mode).await;
                assert!(is_unknown(&answer), "{mode:?}: {answer:?}");
            }
            let refused = create(&seat, "c", mode).await;
            assert!(is_over_limit(&refused), "{mode:?}: {refused:?}");
            let made = stand_in.tree();
            assert_eq!(made.len(), 2, "{mode:?}: {made:?}");

            stand_in.delete(made.last().unwrap());
            create(&seat, "c", mode).await.unwrap();
            let refused = create(&seat, "d", mode).await;
            assert!(is_over_limit(&refused), "{mode:?}: {refused:?}");
            stand_in.tree().iter().for_each(|path| stand_in.delete(path));
        }
    }

    #[tokio::test]
    async fn a_create_whose_reply_was_lost_counts_though_the_next_server_does_not_show_its_znode() {
        let stand_in = StandIn::open();
        for mode in [CreateMode::Persistent, CreateMode::PersistentSequential] {
            let seat = stand_in.seat(TWO);
            let before = stand_in.snapshot();
            stand_in.lose_creates(2);
            for name in ["a", "b"] {
                let answer = create(&seat, name, mode).await;
                assert!(is_unknown(&answer), "{mode:?}: {answer:?}");
            }
            stand_in.fall_behind(before);
            let refused = create(&seat, "c", mode).await;
            assert!(is_over_limit(&refused), "{mode:?}: {refused:?}");
            stand_in.tree().iter().for_each(|path| stand_in.delete(path));
        }
    }

    #[tokio::test]
    async fn a_create_that_is_not_waited_for_counts() {
        let stand_in = StandIn::open();
        stand_in.fall_silent();
        let seat = stand_in.seat(TWO);
        for name in ["a", "b"] {
            let creating = create(&seat, name, CreateMode::PersistentSequential);
            assert!(pin!(creating).now_or_never().is_none());
        }
        let refused = create(&seat, "c", CreateMode::Persistent).await;
        assert!(is_over_limit(&refused), "{refused:?}");
        // It looks first what there is, and is not answered what it creates.
        let other = stand_in.seat(TWO);
        let names = ["d", "e"].map(at).to_vec();
        assert!(pin!(other.ensure(names, CreateMode::Persistent)).now_or_never().is_none());
        let refused = create(&other, "f", CreateMode::Persistent).await;
        assert!(is_over_limit(&refused), "{refused:?}");
    }

    #[tokio::test]
    async fn a_create_that_was_refused_does_not_count() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(TWO);
        create(&seat, "a", CreateMode::Persistent).await.unwrap();
        for _ in 0..3 {
            let refused = create(&seat, "a", CreateMode::Persistent).await;
            assert!(matches!(refused, Err(Failure::Refused { .. })), "{refused:?}");
        }
        create(&seat, "b", CreateMode::Persistent).await.unwrap();
    }

    #[tokio::test]
    async fn what_one_left_behind_counts_for_the_one_that_takes_its_place_and_for_nobody_else() {
        let stand_in = StandIn::open();
        let left_behind = LeftBehind::default();
        let join = || stand_in.seat(TWO).in_place_of(&left_behind);
        let earlier = join();
        create(&earlier, "a", CreateMode::Persistent).await.unwrap();
        stand_in.lose_creates(1);
        let unanswered = create(&earlier, "b-", CreateMode::PersistentSequential).await;
        assert!(is_unknown(&unanswered), "{unanswered:?}");
        drop(earlier);

        let later = join();
        let refused = create(&later, "c", CreateMode::Persistent).await;
        assert!(is_over_limit(&refused), "{refused:?}");
        let other = stand_in.seat(TWO);
        create(&other, "d", CreateMode::Persistent).await.unwrap();
        // It may delete what it did not create.
        let delete = Write::Delete { path: at("a"), version: None };
        later.submit(Request::Write(delete)).await.unwrap();
        create(&later, "c", CreateMode::Persistent).await.unwrap();
        drop(later);
        let refused = create(&join(), "e", CreateMode::Persistent).await;
        assert!(is_over_limit(&refused), "{refused:?}");
    }

    #[tokio::test]
    async fn directories_that_are_made_for_contenders_count_until_they_are_gone() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(TWO);
        let contender = contend(&seat, &at("a/b")).await.unwrap();
        seat.release(&contender).await.unwrap();
        let refused = contend(&seat, &at("c")).await.unwrap_err();
        assert!(matches!(refused, Failure::OverLimit(_)), "{refused:?}");
        assert_eq!(stand_in.tree(), [at("a"), at("a/b")]);
        // One that is there already costs nothing.
        contend(&seat, &at("a")).await.unwrap();
        stand_in.delete(&at("a/b"));
        contend(&seat, &at("c")).await.unwrap();
    }

    #[tokio::test]
    async fn a_directory_counts_whose_create_was_answered_only_when_it_was_sent_again() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(TWO);
        stand_in.lose_creates(1);
        seat.create_parents(&at("a")).await.unwrap();
        create(&seat, "b", CreateMode::Persistent).await.unwrap();
        let refused = create(&seat, "c", CreateMode::Persistent).await;
        assert!(is_over_limit(&refused), "{refused:?}");
    }

    #[tokio::test]
    async fn directories_that_are_made_above_what_is_ensured_count_before_there_are_too_many() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(TWO);
        let deep = vec![at("a/b/c")];
        let refused = seat.ensure(deep, CreateMode::Persistent).await.unwrap_err();
        assert!(matches!(refused, Failure::OverLimit(_)), "{refused:?}");
        assert_eq!(stand_in.tree(), [at("a"), at("a/b")]);
    }

    #[test]
    fn of_those_without_a_known_name_no_more_count_than_may_be_there() {
        let mut persistent = Persistent::default();
        (0..3).for_each(|_| persistent.add_unnamed("/q-"));
        persistent.add("/q-1");
        persistent.add_unnamed("/r-");
        assert_eq!(persistent.count, 5);
        let there = |numbers: &[u8]| -> Vec<String> {
            numbers.iter().map(|number| format!("/q-{number}")).collect()
        };
        persistent.bound_unnamed("/q-", &there(&[1, 2, 3, 4, 5]));
        assert_eq!(persistent.count, 5);
        // One of them is known by its name.
        persistent.bound_unnamed("/q-", &there(&[1, 5]));
        assert_eq!(persistent.count, 3);
        persistent.bound_unnamed("/q-", &there(&[1]));
        persistent.bound_unnamed("/q-", &there(&[]));
        assert_eq!((persistent.count, persistent.unnamed.len()), (2, 1));
    }

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
