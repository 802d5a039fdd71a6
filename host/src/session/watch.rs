//! One-shot watches.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

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
    is_claimed: Arc<AtomicBool>,
}

impl Watch {
    /// A watch that fires when `fired` completes. It may never complete: a session that ends takes
    /// its watches with it, and whoever waits learns that from the session.
    pub fn new(fired: BoxFuture<'static, Event>) -> Self {
        Watch { fired: fired.shared(), seen: None, is_claimed: Arc::default() }
    }

    /// Whether a participant of this session claimed the znode while the watch stood.
    pub fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Acquire)
    }

    /// Notes that a participant of this session claims the znode.
    pub(super) fn note_claim(&self) {
        self.is_claimed.store(true, Ordering::Release);
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
        let is_claimed = Arc::clone(&self.is_claimed);
        let mut unpaid = self;
        let paying = async move {
            let event = std::future::poll_fn(|cx| unpaid.poll_fired(cx)).await;
            drop(charge);
            told(event);
            event
        };
        Watch { fired: paying.boxed().shared(), seen: None, is_claimed }
    }

    /// A handle that does not keep the watch armed; none once it has fired.
    pub(super) fn downgrade(&self) -> Option<WeakWatch> {
        let is_claimed = Arc::clone(&self.is_claimed);
        self.fired.downgrade().map(|fired| WeakWatch { fired, is_claimed })
    }
}

/// A handle to a watch that does not keep it armed.
#[derive(Debug)]
pub(super) struct WeakWatch {
    fired: WeakShared<BoxFuture<'static, Event>>,
    is_claimed: Arc<AtomicBool>,
}

impl WeakWatch {
    /// The watch, if somebody still holds it and it has not fired.
    pub(super) fn upgrade(&self) -> Option<Watch> {
        let is_claimed = Arc::clone(&self.is_claimed);
        let watch = Watch { fired: self.fired.upgrade()?, seen: None, is_claimed };
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
