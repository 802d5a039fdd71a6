//! A call into a component: its turns, and the processor time that they take.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

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
///
/// The time for which the call waits is given back, up to the whole budget. A call may last for hours and be
/// woken any number of times, and what it used long ago says nothing of what it takes from others now.
pub(in crate::guest) struct Metered<T> {
    place: Place<T>,
    /// Polled first: there is nothing for the call to do before it is done.
    errand: Option<Errand>,
    /// None where fuel is what bounds it.
    allowance: Option<Allowance>,
    /// Since when it has waited, if it waits.
    blocked: Option<Instant>,
    turn: Arc<Turn>,
    scheduler: Arc<Scheduler>,
}

/// What processor time a call has.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    budget: Duration,
    /// At most the budget.
    left: Duration,
}

impl Allowance {
    fn new(budget: Duration) -> Self {
        Allowance { budget, left: budget }
    }

    /// Answers whether there was so much left.
    fn charge(&mut self, took: Duration) -> bool {
        let left = self.left.checked_sub(took);
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    fn give_back(&mut self, waited: Duration) {
        self.left = self.left.saturating_add(waited).min(self.budget);
    }
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
        let allowance = Some(Allowance::new(budget));
        Metered { allowance, ..Metered::without_clock(call, turn, scheduler) }
    }

    /// For calls that are bounded by fuel.
    pub(in crate::guest) fn without_clock(
        call: Running<T>,
        turn: Arc<Turn>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        let place = Place::Here(call);
        Metered { place, errand: None, allowance: None, blocked: None, turn, scheduler }
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
        let Some(allowance) = &mut self.allowance else { return Turned::GoesOn(call) };
        if allowance.charge(took.min(LONGEST_TURN)) { Turned::GoesOn(call) } else { Turned::Spent }
    }

    /// It waits, from here on or as before.
    fn block(&mut self) -> Poll<Result<T, CpuSpent>> {
        self.blocked.get_or_insert_with(Instant::now);
        Poll::Pending
    }

    fn unblock(&mut self) {
        if let (Some(since), Some(allowance)) = (self.blocked.take(), &mut self.allowance) {
            allowance.give_back(since.elapsed());
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
                if errand.as_mut().poll(context).is_pending() {
                    return self.block();
                }
                self.errand = None;
            }
            self.unblock();
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
                return self.block();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(100);

    #[test]
    fn a_long_wait_gives_back_no_more_than_the_budget() {
        let mut allowance = Allowance::new(BUDGET);
        assert!(allowance.charge(BUDGET / 2));
        allowance.give_back(Duration::from_hours(1));
        assert!(allowance.charge(BUDGET));
        assert!(!allowance.charge(Duration::from_nanos(1)));
    }

    #[test]
    fn a_call_that_computes_for_longer_than_it_waits_comes_to_the_end_of_its_budget() {
        let (computes, waits) = (Duration::from_millis(2), Duration::from_millis(1));
        let mut allowance = Allowance::new(BUDGET);
        let turns = (1..).take_while(|_| {
            let goes_on = allowance.charge(computes);
            allowance.give_back(waits);
            goes_on
        });
        // Each turn costs a millisecond more than is given back, and the last one needs both of its own.
        assert_eq!(turns.count(), 99);
    }

    #[test]
    fn a_call_that_waits_for_as_long_as_it_computes_goes_on() {
        let turn = Duration::from_millis(2);
        let mut allowance = Allowance::new(BUDGET);
        assert!((0..10_000).all(|_| {
            let goes_on = allowance.charge(turn);
            allowance.give_back(turn);
            goes_on
        }));
    }
}
