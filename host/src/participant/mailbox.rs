//! Calls on their way to a participant's task.
//!
//! A channel of tokio's sets room for 32 messages aside, whatever its bound, and there may be
//! thousands of participants that nobody calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::task::AtomicWaker;

use super::call::{CallError, Request};

/// Calls that wait for the task at most. There is one at work; another one is let in only while
/// the component is being woken; any further is refused as `busy` by the task.
const MOST_WAITING: usize = 16;

/// A mailbox, and its task's end of it.
pub(super) fn mailbox() -> (Mailbox, Calls) {
    let shared = Arc::new(Shared::default());
    (Mailbox { shared: Arc::clone(&shared) }, Calls { shared })
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: AtomicWaker,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Box<Request>>,
    is_closed: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where calls are put in.
#[derive(Debug)]
pub(super) struct Mailbox {
    shared: Arc<Shared>,
}

impl Mailbox {
    /// Puts a call in.
    ///
    /// # Errors
    /// `Busy` when it is full, `Ended` when the task has closed it.
    pub(super) fn put(&self, request: Request) -> Result<(), CallError> {
        let mut queue = self.shared.queue();
        if queue.is_closed {
            return Err(CallError::Ended);
        }
        if queue.waiting.len() >= MOST_WAITING {
            return Err(CallError::Busy);
        }
        queue.waiting.push_back(Box::new(request));
        drop(queue);
        self.shared.arrived.wake();
        Ok(())
    }
}

/// Where the task takes them out, in their order. Closed when it is dropped.
#[derive(Debug)]
pub(super) struct Calls {
    shared: Arc<Shared>,
}

impl Calls {
    /// The next call.
    ///
    /// # Cancellation
    /// None is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Box<Request> {
        std::future::poll_fn(|context| {
            // Listens first and looks then: a call in between is seen by one or the other.
            self.shared.arrived.register(context.waker());
            self.shared.queue().waiting.pop_front().map_or(Poll::Pending, Poll::Ready)
        })
        .await
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

impl Drop for Calls {
    fn drop(&mut self) {
        self.close();
    }
}
