//! The processor time of one call.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::engine::TICK;

/// The call used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuSpent;

/// A call into a component, with an account of the processor time it uses.
///
/// Code of a component yields at each tick of the epoch, so one poll runs at most one tick of it.
/// If more time passes in a poll, another process had the processor: that is not charged.
#[derive(Debug)]
pub(super) struct Metered<F> {
    call: Pin<Box<F>>,
    left: Duration,
}

impl<F: Future> Metered<F> {
    pub(super) fn new(call: F, budget: Duration) -> Self {
        Metered { call: Box::pin(call), left: budget }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = Result<F::Output, CpuSpent>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let started = Instant::now();
        if let Poll::Ready(output) = self.call.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        match self.left.checked_sub(started.elapsed().min(TICK)) {
            Some(left) => {
                self.left = left;
                Poll::Pending
            }
            None => Poll::Ready(Err(CpuSpent)),
        }
    }
}
