//! How a participant learns that it holds something no more.

use std::task::{Context, Poll};

use super::Part;
use crate::session::deletions::Trust;
use crate::session::failure::Failure;
use crate::session::request::WatchKind;
use crate::session::seat::Seat;
use crate::session::watch::{Event, Watch};

impl Seat {
    /// Completes when a znode of the claim is gone though this participant did not delete it;
    /// answers its path, once. Pending while there is no claim. The session's end is not told
    /// here.
    ///
    /// # Cancellation
    /// Nothing is lost; call it again.
    pub async fn until_claim_lost(&self) -> String {
        let (path, czxid) = self.next_loss().await;
        let may_be_own = self.part_of(&path, czxid, |part| part.may_be_gone());
        self.claims().may_be_own_doing = may_be_own == Some(true);
        self.end_claim(&path, Some(czxid));
        path
    }

    /// Whether what was lost last may have been deleted by this participant, by a request that nobody waited
    /// for.
    pub fn may_have_given_up(&self) -> bool {
        self.claims().may_be_own_doing
    }

    /// The claim is lost with one of its znodes. The others stand until nothing depends on them, and
    /// are not held any more.
    pub fn forfeit(&self) {
        self.claims().is_forfeit = true;
    }

    async fn next_loss(&self) -> (String, i64) {
        loop {
            let (path, czxid, event) = self.next_event().await;
            if event == Event::Deleted {
                return (path, czxid);
            }
            // The data changed, or the watch came back with a stale word; or it is time to watch.
            if !self.watch_anew(&path, czxid) {
                return (path, czxid);
            }
        }
    }

    /// Looks at a claim's znode again, and watches it, unless somebody who waits behind it does by now. The
    /// look is the new watch's: who drops the future that follows the claims, as every call does, does not
    /// drop the look. False if nothing can be said of the claim any more, so that it is not held.
    fn watch_anew(&self, path: &str, czxid: i64) -> bool {
        let share = || self.core.watched().share_with_claim(path, czxid, self.kin);
        // As for a new claim: where the session may just be ending, a watch that has not fired says nothing.
        let trusts = self.core.deletions().trust() == Trust::Sure;
        let shared = trusts.then(share).flatten();
        let reserved = self.part_of(path, czxid, |part| part.unwatched.take()).flatten();
        let armed = || -> Result<Watch, Failure> {
            let charge = reserved.map_or_else(|| self.account.charge(WatchKind::Data, path), Ok)?;
            Ok(self.armed_behind(charge, path, czxid))
        };
        match shared.map_or_else(armed, Ok) {
            Ok(watch) => {
                self.part_of(path, czxid, |part| {
                    part.watch = watch;
                    part.was_changed = true;
                });
                true
            }
            Err(failure) => {
                tracing::warn!(path, %failure, "the claim's znode cannot be watched");
                false
            }
        }
    }

    fn part_of<T>(&self, path: &str, czxid: i64, of: impl FnOnce(&mut Part) -> T) -> Option<T> {
        self.claims().part(path).filter(|part| part.czxid == czxid).map(of)
    }

    /// The next event of a znode that is claimed and not being deleted by us.
    async fn next_event(&self) -> (String, i64, Event) {
        loop {
            let changed = self.claims_changed.notified();
            let fired = std::future::poll_fn(|cx| self.poll_parts(cx));
            // Cancel-safe: a fired watch stays fired, a missed notice only means another look, and what is
            // left to go stays so until it has gone.
            tokio::select! {
                biased;
                event = fired => return event,
                () = changed => {}
                () = self.let_go_of_left() => {}
            }
        }
    }

    /// Polls the watches of all parts, and answers the first event of one that this participant is not
    /// deleting. Those that it is deleting are polled as well: the read that arms such a watch keeps
    /// its room on the session until it is polled, and the deletion may be waiting for that room.
    fn poll_parts(&self, cx: &mut Context<'_>) -> Poll<(String, i64, Event)> {
        let mut first = Poll::Pending;
        for part in &mut self.claims().parts {
            part.poll_question(cx);
            let fired = part.watch.poll_fired(cx);
            if let (Poll::Ready(event), None, Poll::Pending) = (fired, part.ending, &first) {
                first = Poll::Ready((part.path.clone(), part.czxid, event));
            }
        }
        first
    }

    /// Polls the watches of all parts, and tells of no event: for a participant that is ending, to which
    /// no loss matters any more. Never completes.
    pub async fn follow_claims(&self) {
        std::future::poll_fn(|cx| {
            drop(self.poll_parts(cx));
            Poll::Pending
        })
        .await
    }
}
