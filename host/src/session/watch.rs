//! One-shot watches.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use super::budget::Charge;

/// What made a watch fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The znode was created.
    Created,
    /// The znode was deleted.
    Deleted,
    /// Its data changed.
    DataChanged,
    /// A child came or went.
    ChildrenChanged,
    /// Not a znode's event: the time of an alarm has come.
    Elapsed,
}

/// A one-shot watch. Clones share one server watch; dropping the last disarms it.
///
/// A fired watch is a hint, with one exception: [`Event::Deleted`] is a fact about a znode whose
/// name never comes back.
#[derive(Clone, Debug)]
pub struct Watch {
    fired: Shared<BoxFuture<'static, Event>>,
    /// What this clone has seen: a shared future must not be polled again by who saw it complete.
    seen: Option<Event>,
    claimed_by: Arc<AtomicU64>,
}

/// Participants that go by the same rules: of one module. What a claim of one of them says of those
/// ahead, the others can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kin(u64);

impl Kin {
    /// Without any.
    pub const NONE: Kin = Kin(0);

    /// Those of a module with this digest, of which a collision would take 2^32 modules on a host.
    pub const fn of(digest: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *digest;
        Kin(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl Watch {
    /// A watch that fires when `fired` completes. It may never complete: a session that ends takes
    /// its watches with it, and the participant that waits learns that from the session.
    pub fn new(fired: BoxFuture<'static, Event>) -> Self {
        Watch { fired: fired.shared(), seen: None, claimed_by: Arc::default() }
    }

    /// No znode's watch: it fires when that time has passed.
    pub fn after(pause: Duration) -> Self {
        Watch::new(tokio::time::sleep(pause).map(|()| Event::Elapsed).boxed())
    }

    /// Whether a participant of this session and kin claimed the znode while the watch stood.
    pub fn is_claimed_by(&self, kin: Kin) -> bool {
        kin != Kin::NONE && self.claimed_by() == kin
    }

    /// Who claimed it.
    pub(super) fn claimed_by(&self) -> Kin {
        Kin(self.claimed_by.load(Ordering::Acquire))
    }

    /// Notes that a participant of this session claims the znode.
    pub(super) fn note_claim(&self, by: Kin) {
        self.claimed_by.store(by.0, Ordering::Release);
    }

    /// The event, if it has fired by now.
    pub fn fired(&self) -> Option<Event> {
        self.seen
            .or_else(|| self.fired.peek().copied())
            .or_else(|| self.fired.clone().now_or_never())
    }

    /// Completes when it has fired.
    pub fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.seen.is_none() {
            self.seen = Some(std::task::ready!(Pin::new(&mut self.fired).poll(cx)));
        }
        self.seen.map_or(Poll::Pending, Poll::Ready)
    }

    /// The same watch, which pays until it has fired or is dropped. `told` is called with its event
    /// before anybody sees it.
    pub(super) fn paid(self, charge: Charge, told: impl FnOnce(Event) + Send + 'static) -> Watch {
        let claimed_by = Arc::clone(&self.claimed_by);
        let mut unpaid = self;
        let paying = async move {
            let event = std::future::poll_fn(|cx| unpaid.poll_fired(cx)).await;
            drop(charge);
            told(event);
            event
        };
        Watch { fired: paying.boxed().shared(), seen: None, claimed_by }
    }

    /// A handle that does not keep the watch armed; none once it has fired.
    pub(super) fn downgrade(&self) -> Option<WeakWatch> {
        let claimed_by = Arc::clone(&self.claimed_by);
        self.fired.downgrade().map(|fired| WeakWatch { fired, claimed_by })
    }
}

/// A handle to a watch that does not keep it armed.
#[derive(Debug)]
pub(super) struct WeakWatch {
    fired: WeakShared<BoxFuture<'static, Event>>,
    claimed_by: Arc<AtomicU64>,
}

impl WeakWatch {
    /// The watch, if somebody still holds it and it has not fired.
    pub(super) fn upgrade(&self) -> Option<Watch> {
        let claimed_by = Arc::clone(&self.claimed_by);
        let watch = Watch { fired: self.fired.upgrade()?, seen: None, claimed_by };
        watch.fired().is_none().then_some(watch)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn every_clone_can_be_asked_again_and_again() {
        let (fire, fired) = tokio::sync::oneshot::channel();
        let mut watch = Watch::new(async move { fired.await.expect("a sender") }.boxed());
        let mut clone = watch.clone();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(watch.fired(), None);
        assert!(watch.poll_fired(&mut cx).is_pending());
        fire.send(Event::Deleted).unwrap();
        for _ in 0..2 {
            assert_eq!(watch.poll_fired(&mut cx), Poll::Ready(Event::Deleted));
            assert_eq!(watch.fired(), Some(Event::Deleted));
            assert_eq!(clone.fired(), Some(Event::Deleted));
            assert_eq!(clone.poll_fired(&mut cx), Poll::Ready(Event::Deleted));
            assert_eq!(watch.clone().fired(), Some(Event::Deleted));
        }
    }
}
