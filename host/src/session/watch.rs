//! One-shot watches.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    turn: Turn,
    claimed_by: Arc<AtomicU64>,
}

/// Whose turn it is to poll a watch. All clones of the watch have the same one.
///
/// When two threads poll a shared future at the same time, the future answers the second one `Pending`, and
/// relies on the first one to poll again when the event comes. [`Watch::fired`] polls once and never again, so
/// without turns a second thread that waits would sleep on after the event
/// (<https://github.com/rust-lang/futures-rs/issues/2706>).
#[derive(Clone, Debug, Default)]
struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// Waits for the turn, and has it until the guard is dropped.
    ///
    /// The thread that has the turn polls the event's receiver, and calls what [`Watch::paid`] was given. Neither
    /// takes a lock that a thread may hold while it polls a watch, so no two threads wait for each other.
    fn take(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let (turn, claimed_by) = (Turn::default(), Arc::default());
        Watch { fired: fired.shared(), seen: None, turn, claimed_by }
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
        let ask = || {
            let _turn = self.turn.take();
            self.fired.clone().now_or_never()
        };
        self.seen.or_else(|| self.fired.peek().copied()).or_else(ask)
    }

    /// Completes when it has fired.
    pub fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.seen.is_none() {
            let _turn = self.turn.take();
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
        let turn = Turn::default();
        Watch { fired: paying.boxed().shared(), seen: None, turn, claimed_by }
    }

    /// A handle that does not keep the watch armed; none once it has fired.
    pub(super) fn downgrade(&self) -> Option<WeakWatch> {
        let (turn, claimed_by) = (self.turn.clone(), Arc::clone(&self.claimed_by));
        self.fired.downgrade().map(|fired| WeakWatch { fired, turn, claimed_by })
    }
}

/// A handle to a watch that does not keep it armed.
#[derive(Debug)]
pub(super) struct WeakWatch {
    fired: WeakShared<BoxFuture<'static, Event>>,
    turn: Turn,
    claimed_by: Arc<AtomicU64>,
}

impl WeakWatch {
    /// The watch, if somebody still holds it and it has not fired.
    pub(super) fn upgrade(&self) -> Option<Watch> {
        let (turn, claimed_by) = (self.turn.clone(), Arc::clone(&self.claimed_by));
        let watch = Watch { fired: self.fired.upgrade()?, seen: None, turn, claimed_by };
        watch.fired().is_none().then_some(watch)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Waker;
    use std::thread;

    use super::*;

    /// Ends a hang, and is no measure.
    const HANG: Duration = Duration::from_secs(60);

    /// The event comes while another thread asks for it, and who waits polls before that thread is through.
    #[test]
    fn who_only_asks_takes_nobodys_wake_up() {
        let (polled, is_polled) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let (fire, mut fired) = tokio::sync::oneshot::channel();
        let mut polls = 0;
        let receiving = std::future::poll_fn(move |cx| {
            let now = Pin::new(&mut fired).poll(cx).map(|event| event.unwrap());
            polls += 1;
            polled.send(()).unwrap();
            if polls == 2 {
                // The asking thread stays in its poll until the waiting thread has polled. With turns the
                // waiting thread cannot poll before this returns, so this stops after a while.
                let _ = may_go_on.lock().unwrap().recv_timeout(Duration::from_millis(200));
            }
            now
        });
        let asked = Watch::new(receiving.boxed());
        let mut waited_for = asked.clone();
        let (tell, told) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut polls = 0;
            let event = std::future::poll_fn(|cx| {
                let event = waited_for.poll_fired(cx);
                polls += 1;
                if polls == 2 {
                    // The send fails where the asking thread has stopped listening.
                    let _ = go_on.send(());
                }
                event
            });
            tell.send(runtime.block_on(event)).unwrap();
        });
        is_polled.recv_timeout(HANG).unwrap();
        let asking = thread::spawn(move || asked.fired());
        is_polled.recv_timeout(HANG).unwrap();
        fire.send(Event::Deleted).unwrap();
        assert_eq!(told.recv_timeout(HANG), Ok(Event::Deleted));
        waiting.join().unwrap();
        asking.join().unwrap();
    }

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
