//! Which znodes this session watches, so that a claim can share a neighbour's watch.

use std::collections::HashMap;

use super::watch::{Kin, Watch, WeakWatch};

/// Data watches that stand, by path.
///
/// The next waiter's watch on the holder's znode and the holder's own are one watch for the
/// server. A watch that has not fired says that the znode read with it is still there, as of the
/// last event that this session received: exactly what reading it again would say, without asking.
#[derive(Debug, Default)]
pub(super) struct WatchedZnodes {
    standing: HashMap<String, (i64, WeakWatch)>,
    /// Entries are swept when there are this many: twice those that were alive at the last sweep.
    sweep_at: usize,
}

/// There is no point in sweeping fewer.
const SMALL: usize = 64;

impl WatchedZnodes {
    /// Notes a watch set while reading the znode with this `czxid`. It takes the place of an
    /// earlier one, and knows of the znode's claim what that knew.
    pub(super) fn note(&mut self, path: &str, czxid: i64, watch: &Watch) {
        if let Some(earlier) = self.standing(path, czxid) {
            watch.note_claim(earlier.claimed_by());
        }
        if let Some(weak) = watch.downgrade() {
            self.standing.insert(path.to_owned(), (czxid, weak));
        }
        if self.standing.len() >= self.sweep_at.max(SMALL) {
            self.standing.retain(|_, (_, watch)| watch.upgrade().is_some());
            self.sweep_at = self.standing.len() * 2;
        }
    }

    /// A standing watch on that very znode, for the claim of it to share.
    pub(super) fn share_with_claim(&mut self, path: &str, czxid: i64, by: Kin) -> Option<Watch> {
        let watch = self.standing(path, czxid);
        watch.inspect(|watch| watch.note_claim(by))
    }

    fn standing(&mut self, path: &str, czxid: i64) -> Option<Watch> {
        let (read, watch) = self.standing.get(path)?;
        let watch = watch.upgrade().filter(|_| *read == czxid);
        if watch.is_none() {
            self.standing.remove(path);
        }
        watch
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::pending;

    use super::*;

    const US: Kin = Kin::of(&[1; 32]);

    fn standing() -> Watch {
        Watch::new(pending().boxed())
    }

    #[test]
    fn those_who_watch_before_and_after_a_claim_know_of_it() {
        let mut watched = WatchedZnodes::default();
        let before = standing();
        watched.note("/a", 1, &before);
        let claim = watched.share_with_claim("/a", 1, US).unwrap();
        assert!(claim.is_claimed_by(US) && before.is_claimed_by(US));
        let after = standing();
        watched.note("/a", 1, &after);
        assert!(after.is_claimed_by(US));
        assert!(!after.is_claimed_by(Kin::of(&[2; 32])) && !after.is_claimed_by(Kin::NONE));
    }

    #[test]
    fn the_claim_of_another_znode_of_that_path_is_none_of_this_one() {
        let mut watched = WatchedZnodes::default();
        let old = standing();
        watched.note("/a", 1, &old);
        old.note_claim(US);
        let new = standing();
        watched.note("/a", 2, &new);
        assert!(!new.is_claimed_by(US));
        assert!(watched.share_with_claim("/a", 1, US).is_none());
    }

    #[test]
    fn a_watch_that_nobody_holds_is_shared_with_nobody() {
        let mut watched = WatchedZnodes::default();
        watched.note("/a", 1, &standing());
        assert!(watched.share_with_claim("/a", 1, US).is_none());
    }
}
