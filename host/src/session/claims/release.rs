//! Giving own znodes up, claimed or not.

use crate::session::failure::Failure;
use crate::session::janitor::{self, Sight};
use crate::session::ledger::{Entry, Naming, Znode};
use crate::session::seat::Seat;
use crate::session::tickets::GivingUp;

impl Seat {
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
                self.leave(path);
                return Ok(());
            }
        };
        loop {
            self.before_deletion(path).await;
            if self.expect_deletion(path, GivingUp::TheClaim) {
                break;
            }
        }
        let release = Release { seat: self, znode: Some(znode.clone()) };
        let deleting = async {
            let _turn = match znode.naming {
                Naming::Given => Some(self.core.turns.take(path).await),
                Naming::Unique => None,
            };
            janitor::delete(&self.core, &znode, self.sight(&znode)).await
        };
        let outcome = tokio::select! {
            biased;
            outcome = deleting => outcome,
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

    /// What is known of a znode that is about to be deleted. If another client has replaced it, the
    /// watch of its claim tells; on a server that is behind later than a look after a `sync` would.
    fn sight(&self, znode: &Znode) -> Sight {
        match self.claims().part(&znode.path) {
            Some(part)
                if part.czxid == znode.czxid
                    && !part.was_changed
                    && part.watch.fired().is_none() =>
            {
                Sight::Watched
            }
            _ => Sight::None,
        }
    }

    /// Leaves a znode to the janitor of which nobody knows what became of its create, and with it an
    /// earlier one at that path: only one of them can be there.
    fn leave(&self, path: &str) {
        let is_claimed = self.claims().part(path).is_some();
        let mut ledger = self.ledger();
        let pending = ledger.pending(path).and_then(|entry| ledger.take(entry));
        let known = ledger.find(path).filter(|_| !is_claimed).cloned();
        if known.is_some() {
            ledger.forget(path);
        }
        drop(ledger);
        for entry in pending.into_iter().chain(known.map(Entry::Known)) {
            self.discard(entry);
        }
    }

    /// Lets go of a claim's znode only when nothing depends on it any more.
    pub(in crate::session) async fn before_deletion(&self, path: &str) {
        if self.claims().part(path).is_some() {
            self.core.lost().run_until_cancelled(self.dependents.until_ended()).await;
        }
    }

    /// The deletion that is about to be sent is no loss. Answers no, and nothing has happened, if
    /// something depends on the claim that it gives up.
    pub(in crate::session) fn expect_deletion(&self, path: &str, giving_up: GivingUp) -> bool {
        let mut claims = self.claims();
        let Some(part) = claims.part(path) else { return true };
        let is_kept = giving_up == GivingUp::TheClaim && self.dependents.are_there();
        if is_kept && !self.core.lost().is_cancelled() {
            return false;
        }
        part.ending = Some(giving_up);
        true
    }

    /// It did not happen, or perhaps not: the claim stands as long as its watch says so.
    pub(in crate::session) fn deletion_failed(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.ending = None;
        }
        self.claims_changed.notify_one();
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
            self.seat.end_claim(&znode.path, Some(znode.czxid));
            self.seat.discard(Entry::Known(znode));
        }
    }
}
