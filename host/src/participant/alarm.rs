//! Futures that hardly ever complete, beside one that is polled all the time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A future that is polled only when it was woken itself.
///
/// A task is woken for one of the futures that it waits for, and polls them all. Where the others
/// are there just in case, that is most of what it does; this makes it one look at a flag.
#[derive(Debug)]
pub(super) struct Alarm<'a, F> {
    future: Pin<&'a mut F>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug)]
struct Bell {
    is_rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<'a, F: Future> Alarm<'a, F> {
    pub(super) fn new(future: Pin<&'a mut F>) -> Self {
        // Rung from the beginning, for the first poll.
        let bell = Arc::new(Bell { is_rung: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&bell));
        Alarm { future, bell, waker }
    }
}

impl<F: Future> Future for Alarm<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // First, so that no ring is missed by both.
        self.bell.task.register(context.waker());
        if !self.bell.is_rung.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let Alarm { future, waker, .. } = &mut *self;
        future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;

    use futures_util::poll;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_once_and_then_only_when_it_was_woken() {
        let (polls, ready) = (Cell::new(0), Notify::new());
        let mut notified = pin!(ready.notified());
        let counted = poll_fn(|context| {
            polls.set(polls.get() + 1);
            notified.as_mut().poll(context)
        });
        let counted = pin!(counted);
        let mut alarm = Alarm::new(counted);
        assert_eq!(poll!(&mut alarm), Poll::Pending);
        assert_eq!(poll!(&mut alarm), Poll::Pending);
        assert_eq!(polls.get(), 1);
        ready.notify_one();
        assert_eq!(poll!(&mut alarm), Poll::Ready(()));
        assert_eq!(polls.get(), 2);
    }

    #[tokio::test]
    async fn its_ring_wakes_the_task_that_polled_it_last() {
        let ready = Arc::new(Notify::new());
        let notified = pin!(ready.notified());
        let mut alarm = Alarm::new(notified);
        assert_eq!(poll!(&mut alarm), Poll::Pending);
        let ringer = Arc::clone(&ready);
        let ringing = async {
            tokio::task::yield_now().await;
            ringer.notify_one();
        };
        tokio::join!(alarm, ringing);
    }
}
