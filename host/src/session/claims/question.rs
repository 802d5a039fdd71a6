//! A claim of which nobody knows whether it stands: this participant sent a deletion of its znode, and
//! nobody waits for the answer. A look behind the deletion tells.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Part;
use crate::session::core::Core;
use crate::session::failure::{Failure, Refusal};
use crate::session::request::{Reply, Request, Watching};
use crate::session::seat::Seat;
use crate::session::watch::{Event, Watch};

/// A look at a claim's znode behind deletions of it.
pub(super) struct Question {
    /// Answers whether the znode stands.
    look: BoxFuture<'static, bool>,
    /// How many deletions it is behind.
    deletions: usize,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("deletions", &self.deletions).finish_non_exhaustive()
    }
}

impl Part {
    /// Has the znode looked at behind the deletions that were sent and not answered.
    pub(super) fn put_in_question(&mut self, core: &Arc<Core>) {
        let look = stands(Arc::clone(core), self.path.clone(), self.czxid).boxed();
        self.question = Some(Question { look, deletions: self.unanswered_deletions });
    }

    /// Goes on with the look, if there is one. Of a znode that is gone the watch tells from then on; answers
    /// whether it is one that was found to be gone just now.
    pub(super) fn poll_question(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(question) = &mut self.question else { return false };
        let Poll::Ready(stands) = question.look.poll_unpin(cx) else { return false };
        let answered = question.deletions;
        self.question = None;
        if stands {
            self.unanswered_deletions = self.unanswered_deletions.saturating_sub(answered);
        } else {
            self.watch = Watch::new(std::future::ready(Event::Deleted).boxed());
        }
        // `until_claim_lost` may have looked at the claim in this same poll of the task: it has to look again.
        cx.waker().wake_by_ref();
        !stands
    }
}

impl Seat {
    /// Whether nobody knows if what is held is held: a deletion of it was sent that nobody waits for any more.
    pub fn is_in_question(&self) -> bool {
        self.claims().kept().any(Part::is_in_question)
    }

    /// Whether something is held, as far as anyone can know.
    pub fn is_relied_on(&self) -> bool {
        self.has_claim() && !self.is_in_question() && self.is_live()
    }

    /// Completes when what is held, if anything, is known to stand. Pending if it is gone, which
    /// [`until_claim_lost`](Seat::until_claim_lost) tells.
    ///
    /// # Cancellation
    /// Nothing is lost; call it again.
    pub async fn until_unquestioned(&self) {
        std::future::poll_fn(|cx| {
            let mut found_gone = false;
            for part in &mut self.claims().parts {
                found_gone |= part.poll_question(cx);
            }
            if found_gone {
                // Where no event comes of it, nothing else wakes the one that follows the claim.
                self.claims_changed.notify_one();
            }
            if self.is_in_question() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

/// Whether the znode is there behind all that was sent before. Pending if the session is lost, which is told
/// elsewhere.
async fn stands(core: Arc<Core>, path: String, czxid: i64) -> bool {
    match core.ask(Request::GetData(path.clone(), Watching::No)).await {
        Ok(Reply::Data(_, stat, _)) if stat.czxid == czxid => {}
        Ok(_) | Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => return false,
        Err(Failure::SessionLost) => return std::future::pending().await,
        // Nothing can be said of the claim, so it is not held.
        Err(failure) => {
            tracing::warn!(path, %failure, "the claim's znode cannot be read");
            return false;
        }
    }
    // The connection may have been lost since, and the server that answered may be behind. When there is
    // contact, the claim's watch has told.
    match core.assure_contact().await {
        Ok(()) => true,
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Wake, Waker};

    use super::*;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{StandIn, hold, withdraw_deletion};

    #[tokio::test]
    async fn what_a_look_finds_behind_a_deletion_that_nobody_waits_for_is_held() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        withdraw_deletion(&stand_in, &seat, &path);
        assert!(seat.has_claim() && seat.is_in_question());
        seat.until_unquestioned().await;
        assert!(seat.still_holds(&path) && seat.depend(&held).is_some());
    }

    #[tokio::test]
    async fn what_a_look_does_not_find_behind_a_deletion_that_nobody_waits_for_is_lost() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        withdraw_deletion(&stand_in, &seat, &path);
        // The deletion comes to pass, and its event is under way for long.
        stand_in.delete_unheard(&path);
        assert_eq!(seat.until_unquestioned().now_or_never(), None);
        assert_eq!(seat.until_claim_lost().await, path);
        assert!(!seat.has_claim());
    }

    /// Whether a waker was woken.
    #[derive(Default)]
    struct Alarm(AtomicBool);

    impl Wake for Alarm {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn who_follows_a_claim_is_woken_by_a_look_that_somebody_else_waits_for() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        withdraw_deletion(&stand_in, &seat, &path);
        stand_in.delete_unheard(&path);
        stand_in.disconnect();
        let (alarm, mut lost) = (Arc::<Alarm>::default(), pin!(seat.until_claim_lost()));
        let waker = Waker::from(Arc::clone(&alarm));
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        // The look goes on in the hands of the one that polls it last.
        let mut unquestioned = pin!(seat.until_unquestioned());
        assert_eq!(unquestioned.as_mut().now_or_never(), None);
        stand_in.connect();
        alarm.0.store(false, Ordering::Relaxed);
        while seat.claims().parts.iter().any(|part| part.question.is_some()) {
            assert_eq!(unquestioned.as_mut().now_or_never(), None);
            tokio::task::yield_now().await;
        }
        assert!(alarm.0.load(Ordering::Relaxed));
        assert_eq!(lost.await, path);
    }

    #[tokio::test]
    async fn who_only_follows_a_claim_learns_that_it_stands() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        withdraw_deletion(&stand_in, &seat, &path);
        let mut lost = pin!(seat.until_claim_lost());
        while seat.is_in_question() {
            assert_eq!(lost.as_mut().now_or_never(), None);
            tokio::task::yield_now().await;
        }
        assert!(seat.still_holds(&path));
    }

    #[tokio::test]
    async fn a_look_says_nothing_of_a_deletion_that_was_sent_behind_it() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = hold(&seat).await;
        withdraw_deletion(&stand_in, &seat, &path);
        seat.deletion_sent(&path);
        let mut lost = pin!(seat.until_claim_lost());
        for _ in 0..100 {
            assert_eq!(lost.as_mut().now_or_never(), None);
            tokio::task::yield_now().await;
        }
        assert!(seat.is_in_question() && !seat.still_holds(&path));
    }
}
