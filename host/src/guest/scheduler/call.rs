//! A call into a component: its turns, and the processor time that they take.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Scheduler;
use super::errand::Errand;
use super::slow_lane::{Detour, Outcome, Return, Running};
use super::ticker::TICK;
use super::turn::Turn;

/// The call used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guest) struct CpuSpent;

/// The longest that code of a component runs in one turn: it is looked at when a tick comes, and
/// goes on if it has not had a whole one.
const LONGEST_TURN: Duration = TICK.saturating_mul(2);

/// A call into a component, with an account of the processor time it uses.
///
/// It runs on the thread that polls it. After a turn that overran it goes on in the slow lane until it
/// blocks or returns. If more time passes than a turn may last, another process had the
/// processor, or the host put a long list in order: that is not charged.
pub(in crate::guest) struct Metered<T> {
    place: Place<T>,
    /// Polled first: there is nothing for the call to do before it is done.
    errand: Option<Errand>,
    /// None where fuel is what bounds it.
    left: Option<Duration>,
    turn: Arc<Turn>,
    scheduler: Arc<Scheduler>,
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
    pub(in crate::guest) fn new(
        call: Running<T>,
        budget: Duration,
        turn: Arc<Turn>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        Metered { place: Place::Here(call), errand: None, left: Some(budget), turn, scheduler }
    }

    /// For calls that are bounded by fuel.
    pub(in crate::guest) fn without_clock(
        call: Running<T>,
        turn: Arc<Turn>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        Metered { place: Place::Here(call), errand: None, left: None, turn, scheduler }
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
        Place::Lane(self.scheduler.slow_lane.take_turn(call, waker, turn))
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
