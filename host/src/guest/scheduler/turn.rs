//! A turn: components' code runs on the processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use tokio_util::task::TaskTracker;

use super::Scheduler;
use super::errand::Errands;
use super::ticker::TICK;

/// The turn that an instance has: what its store and its `Metered` calls share.
#[derive(Debug)]
pub(in crate::guest) struct Turn {
    born: Instant,
    /// The engine's count of those that are in their turns.
    running: Arc<AtomicU32>,
    /// When it began, in nanoseconds since then.
    began: AtomicU64,
    overran: AtomicBool,
    /// Calls that the lane has not given back or dropped.
    pub(in crate::guest) detours: TaskTracker,
    /// What the component waits for.
    pub(in crate::guest) errands: Errands,
}

impl Turn {
    pub(in crate::guest) fn new(scheduler: &Scheduler) -> Self {
        Turn {
            born: Instant::now(),
            running: Arc::clone(&scheduler.ticker.running),
            began: AtomicU64::new(0),
            overran: AtomicBool::new(false),
            detours: TaskTracker::new(),
            errands: Errands::default(),
        }
    }

    /// It lasts until what this answers is dropped.
    pub(in crate::guest) fn begin(&self) -> InTurn<'_> {
        let began = Instant::now();
        self.began.store(self.since_birth(began), Ordering::Relaxed);
        self.overran.store(false, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        InTurn { turn: self, began }
    }

    /// At a tick: whether it had a whole one and is over.
    pub(in crate::guest) fn is_over(&self) -> bool {
        let ran = self.since_birth(Instant::now()) - self.began.load(Ordering::Relaxed);
        let is_over = u128::from(ran) >= TICK.as_nanos();
        if is_over {
            self.overran.store(true, Ordering::Relaxed);
        }
        is_over
    }

    pub(super) fn overran(&self) -> bool {
        self.overran.load(Ordering::Relaxed)
    }

    fn since_birth(&self, now: Instant) -> u64 {
        u64::try_from((now - self.born).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Code of a component may run.
pub(in crate::guest) struct InTurn<'a> {
    turn: &'a Turn,
    pub(super) began: Instant,
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.turn.running.fetch_sub(1, Ordering::Relaxed);
    }
}
