//! Where the tasks of a run are polled: one after the other, in the order in which they were
//! started, not in that in which they were woken. The runtime's own order would do but for what is
//! woken at once by one change: that is woken in a random order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::tasks::Spawn;

/// The tasks of a run. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Executor {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// A task is taken out while it is polled.
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    next: u64,
    ready: BTreeSet<u64>,
    /// Of the task that polls the executor.
    waker: Option<Waker>,
}

impl Executor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the tasks until `main` completes.
    pub(super) async fn run<T>(&self, main: impl Future<Output = T>) -> T {
        // The runtime's way of making a task give way would only make this one go round and round.
        let mut main = Box::pin(tokio::task::unconstrained(main));
        let outcome = std::future::poll_fn(|context| {
            self.state().waker = Some(context.waker().clone());
            loop {
                if let Poll::Ready(outcome) = main.as_mut().poll(context) {
                    return Poll::Ready(outcome);
                }
                if !self.poll_round() {
                    return Poll::Pending;
                }
            }
        });
        outcome.await
    }

    /// Polls every task that is ready, once. False if none is.
    fn poll_round(&self) -> bool {
        let round = std::mem::take(&mut self.state().ready);
        for id in &round {
            let Some(mut task) = self.state().tasks.remove(id) else { continue };
            let waker = Waker::from(Arc::new(TaskWaker { id: *id, executor: self.clone() }));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.state().tasks.insert(*id, task);
            }
        }
        !round.is_empty()
    }

    /// Ends all tasks where they are.
    pub(super) fn clear(&self) {
        // What is dropped may wake others, or try to.
        let tasks = std::mem::take(&mut self.state().tasks);
        drop(tasks);
    }
}

impl Spawn for Executor {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let task = tokio::task::unconstrained(task).boxed();
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.tasks.insert(id, task);
        state.ready.insert(id);
        let waker = state.waker.clone();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Executor").finish_non_exhaustive()
    }
}

/// Wakes a task of the executor.
struct TaskWaker {
    id: u64,
    executor: Executor,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.executor.state();
        state.ready.insert(self.id);
        let waker = state.waker.clone();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
