//! A bell for futures that hardly ever complete, beside one that is polled all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Wakes its task for futures that are polled only when one of them was woken.
///
/// A task is woken for one of the futures that it waits for, and polls them all. Where the others
/// are there just in case, that is most of what it does; this makes it one look at a flag.
#[derive(Debug)]
pub(super) struct Alarm {
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

impl Alarm {
    pub(super) fn new() -> Self {
        // Rung from the beginning, for the first poll.
        let bell = Arc::new(Bell { is_rung: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&bell));
        Alarm { bell, waker }
    }

    /// Whether it rang since this was last asked. If so, the caller polls its futures, all of
    /// them, with [`Self::waker`].
    pub(super) fn rang(&self, context: &Context<'_>) -> bool {
        // First, so that no ring is missed by both.
        self.bell.task.register(context.waker());
        self.bell.is_rung.swap(false, Ordering::Acquire)
    }

    /// What rings it.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn it_rings_once_and_then_only_when_a_future_was_woken() {
        let (alarm, ready) = (Alarm::new(), Notify::new());
        let mut notified = pin!(ready.notified());
        let context = Context::from_waker(Waker::noop());
        assert!(alarm.rang(&context));
        let mut beside = Context::from_waker(alarm.waker());
        assert_eq!(notified.as_mut().poll(&mut beside), Poll::Pending);
        assert!(!alarm.rang(&context));
        ready.notify_one();
        assert!(alarm.rang(&context));
        assert!(!alarm.rang(&context));
    }

    #[tokio::test]
    async fn its_ring_wakes_the_task_that_asked_last() {
        let (alarm, ready) = (Alarm::new(), Notify::new());
        let mut notified = pin!(ready.notified());
        let rung = poll_fn(|context| match alarm.rang(context) {
            true => notified.as_mut().poll(&mut Context::from_waker(alarm.waker())),
            false => Poll::Pending,
        });
        let ringing = async {
            tokio::task::yield_now().await;
            ready.notify_one();
        };
        tokio::join!(biased; rung, ringing);
    }
}
