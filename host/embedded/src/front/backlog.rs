//! What a connection owes and is owed, seen from both its ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Unsent bytes above which no more of a connection is served. A few of the largest answers: enough
/// to keep a socket busy, little enough for thousands of connections. It is still read for a while:
/// a client that takes long to take an answer shows meanwhile that it is alive.
const SOFT_LIMIT: usize = 4 << 20;
/// Unsent bytes of events above which one more ends the connection. Events cannot be held back by
/// not reading requests. A client that misses one finds out by its next handshake, which tells it
/// what has changed; a client that is told only some of them would not.
const EVENTS_LIMIT: usize = 32 << 20;
/// Bytes that a connection may have sent without an answer before no more of it is served, and
/// bytes that may wait for that before no more of it is read. A frame of any length still is.
pub(super) const IN_HAND: usize = 4 << 20;

/// What a queued frame costs beyond its bytes: an allocation that is seldom full, and a place in
/// the queue. Events are so small that this is most of it.
const FRAME_COST: usize = 160;

/// How long a client that is told goodbye has to take what it was sent before.
const LINGER: Duration = Duration::from_secs(5);

/// The queue from the state's task to a connection's writer.
#[derive(Debug)]
pub(super) struct Backlog {
    unsent: AtomicUsize,
    /// How much of that is events.
    unsent_events: AtomicUsize,
    /// Frames read but not yet seen by the state's task, and their bytes.
    unserved: AtomicUsize,
    unserved_bytes: AtomicUsize,
    is_parked: AtomicBool,
    /// There is less unserved.
    changed: Notify,
    /// Nothing more will be queued: what is unsent has [`LINGER`] to go out.
    closing: CancellationToken,
    /// What is unsent is of no use.
    dead: CancellationToken,
}

/// Something for a connection's writer.
#[derive(Debug)]
pub(super) enum Out {
    Reply(Bytes),
    Event(Bytes),
    Close,
}

/// What has been queued or written.
#[derive(Debug, Default)]
pub(super) struct Load {
    all: usize,
    events: usize,
}

impl Load {
    pub(super) fn add(&mut self, out: &Out) {
        match out {
            Out::Reply(frame) => self.all += frame.len() + FRAME_COST,
            Out::Event(frame) => {
                self.all += frame.len() + FRAME_COST;
                self.events += frame.len() + FRAME_COST;
            }
            Out::Close => {}
        }
    }
}

pub(super) type Outgoing = mpsc::UnboundedSender<Out>;

impl Backlog {
    pub(super) fn new() -> Self {
        Backlog {
            unsent: AtomicUsize::new(0),
            unsent_events: AtomicUsize::new(0),
            unserved: AtomicUsize::new(0),
            unserved_bytes: AtomicUsize::new(0),
            is_parked: AtomicBool::new(false),
            changed: Notify::new(),
            closing: CancellationToken::new(),
            dead: CancellationToken::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsent.load(Ordering::SeqCst) > SOFT_LIMIT
    }

    pub(super) fn is_full_of_events(&self) -> bool {
        self.unsent_events.load(Ordering::Acquire) > EVENTS_LIMIT
    }

    pub(super) fn queued(&self, out: &Out) {
        let mut load = Load::default();
        load.add(out);
        self.unsent_events.fetch_add(load.events, Ordering::AcqRel);
        self.unsent.fetch_add(load.all, Ordering::AcqRel);
    }

    /// Whether the state's task is to be told that it may serve again.
    ///
    /// It parks and then looks whether there is room; here room is made and then looked whether
    /// it is parked. One of the two must see what the other did, which takes one order of all four.
    pub(super) fn sent(&self, load: &Load) -> bool {
        self.unsent_events.fetch_sub(load.events, Ordering::AcqRel);
        self.unsent.fetch_sub(load.all, Ordering::SeqCst);
        let is_low = self.unsent.load(Ordering::SeqCst) <= SOFT_LIMIT / 2;
        is_low && self.is_parked.swap(false, Ordering::SeqCst)
    }

    pub(super) fn park(&self) {
        self.is_parked.store(true, Ordering::SeqCst);
    }

    pub(super) fn arrived(&self, frames: &[Bytes]) {
        let bytes = frames.iter().map(Bytes::len).sum();
        self.unserved_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.unserved.fetch_add(frames.len(), Ordering::AcqRel);
    }

    pub(super) fn served(&self, frame: &Bytes) {
        self.unserved_bytes.fetch_sub(frame.len(), Ordering::AcqRel);
        self.unserved.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    pub(super) fn kill(&self) {
        self.dead.cancel();
    }

    /// Waits until the connection has no more time.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn is_over(&self) {
        let late = async {
            self.closing.cancelled().await;
            tokio::time::sleep(LINGER).await;
        };
        tokio::select! {
            () = self.dead.cancelled() => {}
            () = late => {}
        }
    }

    /// Waits until more may be read.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn has_room(&self, max_outstanding: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before looking, so that no change is missed in between.
            changed.as_mut().enable();
            let has_room = self.unserved.load(Ordering::Acquire) < max_outstanding
                && self.unserved_bytes.load(Ordering::Acquire) < IN_HAND;
            if has_room {
                return;
            }
            changed.await;
        }
    }
}
