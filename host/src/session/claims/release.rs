//! Giving own znodes up, claimed or not.

use crate::session::failure::Failure;
use crate::session::janitor::{self, Sight};
use crate::session::ledger::{Entry, Naming, Znode};
use crate::session::seat::Seat;
use crate::session::tickets::GivingUp;

/// How far a release has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The znode is gone.
    Gone,
    /// The znode is this participant's no more, or will not be when nothing depends on the claim any more. It
    /// goes by itself, and is still there as far as anybody knows.
    Going,
}

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
        self.release_until(path, std::future::pending()).await.map(drop)
    }

    /// As [`release`](Seat::release), but when `hurry` completes the janitor goes on with what is not
    /// done by then, and nobody waits for it. A claim on which something depends stays held until
    /// nothing does; meanwhile nothing else may come to depend on it. Then its znode goes, which
    /// `until_claim_lost` sees to.
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
    ) -> Result<Released, Failure> {
        let mut hurry = std::pin::pin!(hurry);
        // Cancel-safe, both: what was asked for is looked for again, or left to the janitor.
        let znode = tokio::select! {
            biased;
            znode = self.own(path) => znode?,
            () = &mut hurry => {
                self.leave(path);
                return Ok(Released::Going);
            }
        };
        loop {
            // Cancel-safe, both: nothing was asked for yet.
            tokio::select! {
                biased;
                () = self.before_deletion(path) => {}
                () = &mut hurry => {
                    self.leave_claimed(path);
                    return Ok(Released::Going);
                }
            }
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
            () = hurry => return Ok(Released::Going),
        };
        release.decided();
        match outcome {
            Ok(()) => {
                self.gone(path);
                Ok(Released::Gone)
            }
            Err(failure) => {
                self.deletion_over(path);
                Err(failure)
            }
        }
    }

    /// What is known of a znode that is about to be deleted. If another client has replaced it, the
    /// watch of its claim tells; on a server that is behind later than a look after a `sync` would. Where a
    /// deletion by this participant was sent and not answered, the event of that may not have come yet.
    fn sight(&self, znode: &Znode) -> Sight {
        match self.claims().part(&znode.path) {
            Some(part)
                if part.czxid == znode.czxid
                    && !part.was_changed
                    && !part.may_be_gone()
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
        let pending = ledger.pending(path).and_then(|(entry, _)| ledger.take(entry));
        let known = ledger.find(path).filter(|_| !is_claimed).cloned();
        if known.is_some() {
            ledger.forget(path);
        }
        drop(ledger);
        for entry in pending.into_iter().chain(known.map(Entry::Known)) {
            self.discard(entry);
        }
    }

    /// Leaves a claimed znode to go when nothing depends on the claim any more.
    fn leave_claimed(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.is_left = true;
        }
        self.claims_changed.notify_one();
    }

    /// Hands the znodes that were left to the janitor when nothing depends on the claim any more. Pending
    /// while there are none.
    pub(super) async fn let_go_of_left(&self) {
        if self.left().is_empty() {
            return std::future::pending().await;
        }
        // Boxed, as it is rare: a future has room for every branch.
        Box::pin(self.dependents.until_none()).await;
        for (path, czxid) in self.left() {
            if self.expect_deletion(&path, GivingUp::TheClaim) {
                let znode = self.ledger().find(&path).filter(|it| it.czxid == czxid).cloned();
                match znode {
                    Some(znode) => self.hand_over(znode),
                    None => self.end_claim(&path, Some(czxid)),
                }
            }
        }
    }

    /// Has the janitor delete a znode, which is this participant's no more.
    fn hand_over(&self, znode: Znode) {
        self.ledger().forget(&znode.path);
        self.end_claim(&znode.path, Some(znode.czxid));
        self.discard(Entry::Known(znode));
    }

    /// The znodes that were left and that nobody deletes yet.
    fn left(&self) -> Vec<(String, i64)> {
        let claims = self.claims();
        let left = claims.parts.iter().filter(|part| part.is_left && part.ending.is_none());
        left.map(|part| (part.path.clone(), part.czxid)).collect()
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

    /// The deletion is about to be sent. Until it is answered the znode may be gone.
    pub(in crate::session) fn deletion_sent(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.unanswered_deletions += 1;
        }
    }

    /// The deletion that was sent was refused. Of another one, which nobody waits for, that says nothing.
    pub(in crate::session) fn deletion_refused(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.unanswered_deletions = part.unanswered_deletions.saturating_sub(1);
        }
    }

    /// Nobody waits for the deletion any more: it was refused or not sent, or its outcome is open, and then
    /// a look at the znode tells whether the claim stands.
    pub(in crate::session) fn deletion_over(&self, path: &str) {
        if let Some(part) = self.claims().part(path) {
            part.ending = None;
            if part.is_in_question() {
                part.put_in_question(&self.core);
            }
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
            self.seat.hand_over(znode);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;
    use crate::session::failure::Refusal;
    use crate::session::request::{CreateMode, Write};
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{MOUNT, StandIn, at, contend, hold, withdraw_deletion};

    #[tokio::test]
    async fn a_release_in_a_hurry_does_not_wait_for_what_depends_on_the_claim_which_goes_behind_that()
     {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        let dependent = seat.depend(&held).unwrap();
        let released = seat.release_until(&path, ready(())).now_or_never();
        assert_eq!(released, Some(Ok(Released::Going)));

        assert!(seat.has_claim() && stand_in.tree() == [path.clone()]);
        assert!(seat.depend(&held).is_none(), "it is about to be given up");
        let mut following = pin!(seat.until_claim_lost());
        assert_eq!(following.as_mut().now_or_never(), None);
        assert!(seat.has_claim() && stand_in.tree() == [path.clone()]);

        drop(dependent);
        assert_eq!(following.as_mut().now_or_never(), None, "its deletion is no loss");
        assert!(!seat.has_claim());
        assert!(matches!(seat.release(&path).await, Err(Failure::Invalid(_))));
        // Completes when the janitor has done what it was given before.
        assert_eq!(seat.retire().await, None);
        assert!(stand_in.tree().is_empty());
    }

    #[tokio::test]
    async fn a_claim_that_is_left_to_go_can_still_be_lost() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let dependent = seat.depend(&seat.held().unwrap()).unwrap();
        seat.release_until(&path, ready(())).await.unwrap();
        stand_in.delete(&path);
        assert_eq!(seat.until_claim_lost().await, path);
        drop(dependent);
    }

    #[tokio::test]
    async fn who_withdraws_a_deletion_before_it_is_sent_still_holds_and_behind_that_may_not() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        let dependent = seat.depend(&held).unwrap();
        let writes = || vec![Write::Delete { path: path.clone(), version: None }];
        {
            let mut deleting = pin!(seat.multi(writes(), &[]));
            assert!(deleting.as_mut().now_or_never().is_none(), "something depends on the claim");
            stand_in.hold_writes_up();
            drop(dependent);
            stand_in.disconnect();
            assert!(deleting.as_mut().now_or_never().is_none(), "there is no connection");
        }
        assert!(seat.still_holds(&path) && seat.depend(&held).is_some());
        let znode = seat.own(&path).await.unwrap();
        assert_eq!(seat.sight(&znode), Sight::Watched);
        stand_in.connect();
        assert!(pin!(seat.multi(writes(), &[])).now_or_never().is_none());
        assert!(
            !seat.still_holds(&path),
            "it was sent, and no watch can be relied on to tell first"
        );
        assert!(seat.depend(&held).is_none());
        assert_eq!(seat.sight(&znode), Sight::None, "another's may have its name by now");
        assert!(seat.has_claim() && stand_in.tree() == [path]);
    }

    #[tokio::test]
    async fn a_write_that_is_not_sent_says_nothing_of_an_earlier_one_that_nobody_waits_for() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        withdraw_deletion(&stand_in, &seat, &path);
        let (wrong, mode) = (at("wrong-"), CreateMode::EphemeralSequential);
        let writes = vec![
            Write::Delete { path: path.clone(), version: None },
            Write::Create { path: wrong, data: Vec::new(), mode },
        ];
        let refused = seat.multi(writes, &[]).await;
        assert!(matches!(refused, Err(Failure::Invalid(_))), "{refused:?}");
        assert!(!seat.still_holds(&path) && seat.depend(&held).is_none());
    }

    #[tokio::test]
    async fn what_may_be_deleted_is_read_before_it_is_claimed_again() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        withdraw_deletion(&stand_in, &seat, &path);
        // The server that is asked has not carried it out.
        let fence = seat.claim(&path).await.unwrap();
        assert!(seat.still_holds(&path) && seat.held().is_some_and(|held| held.fence == fence));
        withdraw_deletion(&stand_in, &seat, &path);
        stand_in.delete_unheard(&path);
        assert_eq!(seat.claim(&path).await, Err(Refusal::NoNode.into()));
        assert!(!seat.has_claim());
    }

    #[tokio::test]
    async fn what_may_be_deleted_is_read_before_it_is_claimed_though_a_neighbour_watches_it() {
        let stand_in = StandIn::open();
        let join = || stand_in.seat(SeatLimits::default());
        let (seat, neighbour) = (join(), join());
        let path = contend(&seat, MOUNT).await.unwrap();
        let (_, _watch) = neighbour.read_and_watch(&path).await.unwrap();
        withdraw_deletion(&stand_in, &seat, &path);
        // The deletion comes to pass, and its event is under way for long.
        stand_in.delete_unheard(&path);
        assert_eq!(seat.claim(&path).await, Err(Refusal::NoNode.into()));
        assert!(!seat.has_claim());
    }

    #[tokio::test]
    async fn what_was_not_deleted_because_the_write_was_refused_is_still_held() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let (there, mode) = (at("there"), CreateMode::Persistent);
        let create = Write::Create { path: there, data: Vec::new(), mode };
        seat.multi(vec![create.clone()], &[]).await.unwrap();
        let writes = vec![create, Write::Delete { path: path.clone(), version: None }];
        let refused = seat.multi(writes, &[]).await;
        assert_eq!(refused.err(), Some(Refusal::NodeExists.into()));
        assert!(seat.still_holds(&path));
    }

    #[tokio::test]
    async fn a_release_without_hurry_waits_for_what_depends_on_the_claim() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let dependent = seat.depend(&seat.held().unwrap()).unwrap();
        let mut releasing = pin!(seat.release(&path));
        assert_eq!(releasing.as_mut().now_or_never(), None);
        assert_eq!(stand_in.tree(), std::slice::from_ref(&path));
        drop(dependent);
        assert_eq!(releasing.await, Ok(()));
        assert!(stand_in.tree().is_empty());
    }
}
