//! The turns of one call, and the processor time of them.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use super::engine::{Engine, TICK};
use super::errand::{Errand, Errands};
use super::lane::{Detour, Outcome, Return, Running};

/// The call used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuSpent;

/// The longest that code of a component runs in one turn: it is looked at when a tick comes, and
/// goes on if it has not had a whole one.
const LONGEST_TURN: Duration = TICK.saturating_mul(2);

/// The turn that an instance has: what its store and whoever polls its calls share.
#[derive(Debug)]
pub(super) struct Turn {
    born: Instant,
    /// The engine's count of those that are in their turns.
    running: Arc<AtomicU32>,
    /// When it began, in nanoseconds since then.
    began: AtomicU64,
    overran: AtomicBool,
    /// Calls that the lane has not given back or dropped.
    pub(super) detours: TaskTracker,
    /// What the component waits for.
    pub(super) errands: Errands,
}

impl Turn {
    pub(super) fn new(engine: &Engine) -> Self {
        Turn {
            born: Instant::now(),
            running: Arc::clone(engine.running()),
            began: AtomicU64::new(0),
            overran: AtomicBool::new(false),
            detours: TaskTracker::new(),
            errands: Errands::default(),
        }
    }

    /// It lasts until what this answers is dropped.
    pub(super) fn begin(&self) -> InTurn<'_> {
        let began = Instant::now();
        self.began.store(self.since_birth(began), Ordering::Relaxed);
        self.overran.store(false, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        InTurn { turn: self, began }
    }

    /// At a tick: whether it had a whole one and is over.
    pub(super) fn is_over(&self) -> bool {
        let ran = self.since_birth(Instant::now()) - self.began.load(Ordering::Relaxed);
        let is_over = u128::from(ran) >= TICK.as_nanos();
        if is_over {
            self.overran.store(true, Ordering::Relaxed);
        }
        is_over
    }

    fn overran(&self) -> bool {
        self.overran.load(Ordering::Relaxed)
    }

    fn since_birth(&self, now: Instant) -> u64 {
        u64::try_from((now - self.born).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Code of a component may run.
pub(super) struct InTurn<'a> {
    turn: &'a Turn,
    began: Instant,
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.turn.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call into a component, with an account of the processor time it uses.
///
/// It has its turns where it is polled, but after one that was over before it blocked or returned,
/// in the engine's slow lane. If more time passes than a turn may last, another process had the
/// processor: that is not charged.
pub(super) struct Metered<T> {
    place: Place<T>,
    /// Polled first: there is nothing for the call to do before it is done.
    errand: Option<Errand>,
    /// None where fuel is what bounds it.
    left: Option<Duration>,
    turn: Arc<Turn>,
    engine: Engine,
}

/// Where a call is.
enum Place<T> {
    Here(Running<T>),
    Lane(Detour<T>),
    Over,
}

/// What a turn came to.
enum Turned<T> {
    Done(T),
    GoesOn(Running<T>),
    Spent,
}

impl<T: Send + 'static> Metered<T> {
    pub(super) fn new(call: Running<T>, budget: Duration, turn: Arc<Turn>, engine: Engine) -> Self {
        Metered { place: Place::Here(call), errand: None, left: Some(budget), turn, engine }
    }

    /// For an engine that goes by fuel.
    pub(super) fn without_clock(call: Running<T>, turn: Arc<Turn>, engine: Engine) -> Self {
        Metered { place: Place::Here(call), errand: None, left: None, turn, engine }
    }

    fn take_turn(&mut self, mut call: Running<T>, context: &mut Context<'_>) -> Turned<T> {
        let turn = Arc::clone(&self.turn);
        let in_turn = turn.begin();
        match call.as_mut().poll(context) {
            Poll::Ready(output) => Turned::Done(output),
            Poll::Pending => self.charge(call, in_turn.began.elapsed()),
        }
    }

    /// Nothing is left of a call that used up its budget.
    fn charge(&mut self, call: Running<T>, took: Duration) -> Turned<T> {
        let Some(left) = self.left else { return Turned::GoesOn(call) };
        match left.checked_sub(took.min(LONGEST_TURN)) {
            Some(left) => {
                self.left = Some(left);
                Turned::GoesOn(call)
            }
            None => Turned::Spent,
        }
    }

    fn detour(&self, call: Running<T>, context: &Context<'_>) -> Place<T> {
        let (waker, turn) = (context.waker().clone(), Arc::clone(&self.turn));
        Place::Lane(self.engine.lane().take_turn(call, waker, turn))
    }

    fn come_back(&mut self, back: Return<T>) -> Turned<T> {
        let took = back.took;
        match back.outcome() {
            Outcome::Done(output) => Turned::Done(output),
            Outcome::GoesOn(call) => self.charge(call, took),
        }
    }
}

impl<T: Send + 'static> Future for Metered<T> {
    type Output = Result<T, CpuSpent>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(errand) = &mut self.errand {
                ready!(errand.as_mut().poll(context));
                self.errand = None;
            }
            let (turned, is_back) = match mem::replace(&mut self.place, Place::Over) {
                Place::Here(call) => (self.take_turn(call, context), false),
                Place::Lane(mut detour) => match Pin::new(&mut detour).poll(context) {
                    Poll::Ready(back) => (self.come_back(back), true),
                    Poll::Pending => {
                        self.place = Place::Lane(detour);
                        return Poll::Pending;
                    }
                },
                Place::Over => return Poll::Pending,
            };
            self.place = match turned {
                Turned::Done(output) => return Poll::Ready(Ok(output)),
                Turned::Spent => return Poll::Ready(Err(CpuSpent)),
                Turned::GoesOn(call) if self.turn.overran() => self.detour(call, context),
                Turned::GoesOn(call) => Place::Here(call),
            };
            self.errand = self.turn.errands.take();
            // It blocked here, and wakes this task. What blocked in the lane is polled once more,
            // because this task may have another waker by now.
            let has_waker = matches!(self.place, Place::Here(_)) && !is_back;
            if has_waker && self.errand.is_none() {
                return Poll::Pending;
            }
        }
    }
}
