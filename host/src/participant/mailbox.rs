//! Calls on their way to a participant's task, and the word that it is to end.
//!
//! A channel of tokio's sets room for 32 messages aside, whatever its bound, and there may be
//! thousands of participants that nobody calls. The channel of the `futures` crate has one more place
//! for each sender, and here senders come and go.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

use super::call::CallError;

/// Calls that wait for the task at most. There is one at work; another one is let in only while
/// the component is being woken; any further is refused as `busy` by the task.
const MOST_WAITING: usize = 16;

/// A mailbox, and its task's end of it.
pub(super) fn mailbox<T>() -> (Mailbox<T>, Calls<T>) {
    let queue = Queue { waiting: VecDeque::new(), is_closed: false, is_to_leave: false };
    let queue = Mutex::new(queue);
    let shared = Arc::new(Shared { queue, arrived: AtomicWaker::new() });
    (Mailbox { shared: Arc::clone(&shared) }, Calls { shared })
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<Queue<T>>,
    arrived: AtomicWaker,
}

#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
    is_to_leave: bool,
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where calls are put in.
#[derive(Debug)]
pub(super) struct Mailbox<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Mailbox<T> {
    /// Puts a call in.
    ///
    /// # Errors
    /// `Busy` when it is full, `Ended` when the task has closed it.
    pub(super) fn put(&self, call: T) -> Result<(), CallError> {
        let mut queue = self.shared.queue();
        if queue.is_closed {
            return Err(CallError::Ended);
        }
        if queue.waiting.len() >= MOST_WAITING {
            return Err(CallError::Busy);
        }
        queue.waiting.push_back(call);
        drop(queue);
        self.shared.arrived.wake();
        Ok(())
    }

    /// Tells the task that it is to end. It stays told.
    pub(super) fn leave(&self) {
        self.shared.queue().is_to_leave = true;
        self.shared.arrived.wake();
    }
}

/// Where the task takes them out, in their order. Closed when it is dropped. One task waits here,
/// with one waker for all that it waits for.
#[derive(Debug)]
pub(super) struct Calls<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Calls<T> {
    /// The mailbox that they come from.
    pub(super) fn mailbox(&self) -> Mailbox<T> {
        Mailbox { shared: Arc::clone(&self.shared) }
    }

    /// The next call.
    ///
    /// # Cancellation
    /// None is lost when the future is dropped.
    pub(super) async fn next(&self) -> T {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Self::next`].
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<T> {
        self.poll(context, |queue| queue.waiting.pop_front())
    }

    /// Completes when the task is to end.
    pub(super) async fn until_leave(&self) {
        std::future::poll_fn(|context| self.poll_leave(context)).await;
    }

    /// As [`Self::until_leave`].
    pub(super) fn poll_leave(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context, |queue| queue.is_to_leave.then_some(()))
    }

    fn poll<U>(
        &self,
        context: &mut Context<'_>,
        look: impl FnOnce(&mut Queue<T>) -> Option<U>,
    ) -> Poll<U> {
        // Listens first and looks then: what comes in between is seen by one or the other.
        self.shared.arrived.register(context.waker());
        look(&mut self.shared.queue()).map_or(Poll::Pending, Poll::Ready)
    }

    /// Lets no call in any more, and drops those that wait, by which their callers learn of it.
    pub(super) fn close(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_closed = true;
        let dropped = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(dropped);
    }
}

impl<T> Drop for Calls<T> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn calls_come_out_in_their_order_and_wake_who_waits_for_them() {
        let (mailbox, calls) = mailbox();
        let caller = async {
            // When the other one waits.
            tokio::task::yield_now().await;
            mailbox.put(1).unwrap();
            mailbox.put(2).unwrap();
        };
        let taken = async { [calls.next().await, calls.next().await] };
        let (taken, ()) = tokio::join!(biased; taken, caller);
        assert_eq!(taken, [1, 2]);
        assert_eq!(calls.next().now_or_never(), None);
    }

    #[test]
    fn one_too_many_is_refused_as_busy() {
        let (mailbox, calls) = mailbox();
        (0..MOST_WAITING).for_each(|call| mailbox.put(call).unwrap());
        assert_eq!(mailbox.put(MOST_WAITING), Err(CallError::Busy));
        assert_eq!(calls.next().now_or_never(), Some(0));
        assert_eq!(mailbox.put(MOST_WAITING), Ok(()));
    }

    #[tokio::test]
    async fn that_it_is_to_end_wakes_the_task_and_stays_said() {
        let (mailbox, calls) = mailbox();
        let caller = async {
            // When the other one waits.
            tokio::task::yield_now().await;
            mailbox.put(1).unwrap();
            mailbox.leave();
        };
        tokio::join!(biased; calls.until_leave(), caller);
        assert_eq!(calls.next().now_or_never(), Some(1));
        assert_eq!(calls.until_leave().now_or_never(), Some(()));
    }

    #[test]
    fn when_the_task_is_gone_those_that_wait_are_dropped_and_no_more_let_in() {
        let (mailbox, calls) = mailbox();
        let (waiting, late) = (Arc::new(()), Arc::new(()));
        mailbox.put(Arc::clone(&waiting)).unwrap();
        drop(calls);
        assert_eq!(Arc::strong_count(&waiting), 1);
        assert_eq!(mailbox.put(late), Err(CallError::Ended));
    }
}
