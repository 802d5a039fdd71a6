//! Claims: what a participant holds, and how it learns that it holds it no more.

use std::sync::{MutexGuard, PoisonError};
use std::task::Poll;

use super::contact::Claimed;
use super::deletions::Trust;
use super::failure::{Failure, Refusal};
use super::janitor;
use super::ledger::{Entry, Naming, Znode};
use super::omission::Omission;
use super::seat::Seat;
use super::watch::{Event, Watch};

/// A fencing token: the `czxid` of a claim's znode.
pub type Fence = u64;

/// One znode of a claim.
#[derive(Debug)]
struct Part {
    path: String,
    czxid: i64,
    watch: Watch,
    /// Being deleted by us: its deletion is no loss.
    ending: bool,
    _claimed: Claimed,
}

/// A participant's claim: all the znodes that it holds.
#[derive(Debug, Default)]
pub(super) struct Claims {
    parts: Vec<Part>,
}

impl Claims {
    pub(super) fn clear(&mut self) {
        self.parts.clear();
    }

    fn part(&mut self, path: &str) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.path == path)
    }
}

impl Seat {
    /// Claims a znode of this participant's ledger, once it is confirmed that it is there.
    ///
    /// # Errors
    /// `Invalid` for a znode that is not in the ledger; `NoNode` for one that is gone.
    pub async fn claim(&self, path: &str) -> Result<Fence, Failure> {
        let znode = self.own(path).await?;
        // Where the session may just be ending, what was told of its znodes is not enough.
        let shared = match self.trust().await {
            Trust::Sure => self.watched().share_with_claim(path, znode.czxid, self.kin),
            Trust::Doubtful | Trust::NotYet => None,
        };
        let watch = match shared {
            Some(watch) => watch,
            None => match self.read_and_watch(path).await {
                Ok((stat, watch)) if stat.czxid == znode.czxid => {
                    watch.note_claim(self.kin);
                    self.core.deletions().settle();
                    watch
                }
                Ok(_) | Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => {
                    self.gone(path);
                    return Err(Refusal::NoNode.into());
                }
                Err(other) => return Err(other),
            },
        };
        self.core.assure_contact().await?;
        if !self.is_live() {
            return Err(Failure::SessionLost);
        }
        let mut claims = self.claims();
        claims.parts.retain(|part| part.path != path);
        let Znode { path, czxid, .. } = znode;
        let _claimed = self.core.claimed();
        claims.parts.push(Part { path, czxid, watch, ending: false, _claimed });
        drop(claims);
        self.claims_changed.notify_one();
        Ok(czxid.unsigned_abs())
    }

    /// Deletes a znode of this participant's ledger. After a lost connection it goes on until the
    /// znode is gone or the session is.
    ///
    /// # Errors
    /// `Invalid` for a znode that is not in the ledger; `SessionLost`, with which it goes, too;
    /// otherwise the server's refusal, and the znode stays.
    ///
    /// # Cancellation
    /// If the future is dropped, the janitor deletes the znode.
    pub async fn release(&self, path: &str) -> Result<(), Failure> {
        self.release_until(path, std::future::pending()).await
    }

    /// As [`release`](Seat::release), but when `hurry` completes the janitor goes on with what is not
    /// done by then, and nobody waits for it.
    ///
    /// # Errors
    /// As `release`.
    ///
    /// # Cancellation
    /// As `release`.
    pub async fn release_until(
        &self,
        path: &str,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let mut hurry = std::pin::pin!(hurry);
        // Cancel-safe, both: what was asked for is looked for again, or left to the janitor.
        let znode = tokio::select! {
            biased;
            znode = self.own(path) => znode?,
            () = &mut hurry => {
                self.leave_pending(path);
                return Ok(());
            }
        };
        self.before_deletion(path).await;
        let release = Release { seat: self, znode: Some(znode.clone()) };
        self.expect_deletion(path);
        let outcome = tokio::select! {
            biased;
            outcome = janitor::delete(&self.core, &znode) => outcome,
            () = hurry => return Ok(()),
        };
        release.decided();
        match outcome {
            Ok(()) => {
                self.gone(path);
                Ok(())
            }
            Err(failure) => {
                self.deletion_failed(path);
                Err(failure)
            }
        }
    }

    /// Leaves a create whose reply was lost to the janitor, as long as nobody knows what became of it.
    fn leave_pending(&self, path: &str) {
        let mut ledger = self.ledger();
        let entry = ledger.pending(path).and_then(|entry| ledger.take(entry));
        drop(ledger);
        if let Some(entry) = entry {
            self.discard(entry);
        }
    }

    /// Waits until it is known whose work the deletions were that were seen.
    async fn trust(&self) -> Trust {
        loop {
            let answered = self.core.deletion_answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            let trust = self.core.deletions().trust();
            if trust != Trust::NotYet || self.core.lost().is_cancelled() {
                return trust;
            }
            self.core.lost().run_until_cancelled(answered).await;
        }
    }

    async fn own(&self, path: &str) -> Result<Znode, Failure> {
        self.settle_named(path).await?;
        if self.core.omits(Omission::Ledger) && self.ledger().find(path).is_none() {
            let (stat, _) = self.read_and_watch(path).await?;
            let naming = Naming::Given;
            return Ok(Znode { path: path.to_owned(), czxid: stat.czxid, naming });
        }
        self.ledger().find(path).cloned().ok_or_else(|| {
            Failure::Invalid(format!(
                "{path} is not an ephemeral znode that this participant created"
            ))
        })
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this participant has a claim that it is not giving up. It may be lost already:
    /// only [`is_live`](Seat::is_live) and [`until_claim_lost`](Seat::until_claim_lost) tell.
    pub fn has_claim(&self) -> bool {
        self.claims().parts.iter().any(|part| !part.ending)
    }

    /// Lets go of a claim's znode only when nothing depends on it any more.
    pub(super) async fn before_deletion(&self, path: &str) {
        if self.claims().part(path).is_some() {
            self.until_independent().await;
        }
    }

    /// The deletion that is about to be sent is no loss.
    pub(super) fn expect_deletion(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.ending = true;
        }
    }

    /// It did not happen, or perhaps not: the claim stands as long as its watch says so.
    pub(super) fn deletion_failed(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.ending = false;
        }
        self.claims_changed.notify_one();
    }

    pub(super) fn end_claim(&self, path: &str) {
        self.claims().parts.retain(|part| part.path != path);
    }

    /// Completes when a znode of the claim is gone though this participant did not delete it;
    /// answers its path, once. Pending while there is no claim. The session's end is not told
    /// here.
    ///
    /// # Cancellation
    /// Nothing is lost; call it again.
    pub async fn until_claim_lost(&self) -> String {
        let path = self.next_loss().await;
        self.end_claim(&path);
        path
    }

    async fn next_loss(&self) -> String {
        loop {
            let (path, czxid, event) = self.next_event().await;
            if event == Event::Deleted {
                return path;
            }
            // The data changed, or the watch came back with a stale word: look, and watch again.
            // Boxed, as all that is rare: a future has room for every branch.
            if !Box::pin(self.stands_still(&path, czxid)).await {
                return path;
            }
        }
    }

    /// Whether a claim's znode is there as it was, and is watched again.
    async fn stands_still(&self, path: &str, czxid: i64) -> bool {
        match self.read_and_watch(path).await {
            Ok((stat, watch)) if stat.czxid == czxid => {
                if let Some(part) = self.claims().part(path) {
                    part.watch = watch;
                }
                true
            }
            Ok(_) | Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => {
                // One that is being deleted by us is lost to nobody.
                self.claims().part(path).is_none_or(|part| part.ending)
            }
            Err(Failure::SessionLost) => std::future::pending().await,
            // Nothing can be said of the claim any more, so it is not held.
            Err(failure) => {
                tracing::warn!(path, %failure, "the claim's znode cannot be read");
                false
            }
        }
    }

    /// The next event of a znode that is claimed and not being deleted by us.
    async fn next_event(&self) -> (String, i64, Event) {
        loop {
            let changed = self.claims_changed.notified();
            let fired = std::future::poll_fn(|cx| {
                for part in self.claims().parts.iter_mut().filter(|part| !part.ending) {
                    if let Poll::Ready(event) = part.watch.poll_fired(cx) {
                        return Poll::Ready((part.path.clone(), part.czxid, event));
                    }
                }
                Poll::Pending
            });
            // Cancel-safe: a fired watch stays fired, a missed notice only means another look.
            tokio::select! {
                biased;
                event = fired => return event,
                () = changed => {}
            }
        }
    }
}

/// A release that is under way. Dropped before it is decided, it leaves the znode to the janitor.
struct Release<'a> {
    seat: &'a Seat,
    znode: Option<Znode>,
}

impl Release<'_> {
    fn decided(mut self) {
        self.znode = None;
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if let Some(znode) = self.znode.take() {
            self.seat.ledger().forget(&znode.path);
            self.seat.end_claim(&znode.path);
            self.seat.discard(Entry::Known(znode));
        }
    }
}
