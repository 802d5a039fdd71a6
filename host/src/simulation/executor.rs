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
    tasks: BTreeMap<u64, Task>,
    next: u64,
    ready: BTreeSet<u64>,
    /// Whether the future that [`Executor::run`] was given is to be polled.
    is_main_ready: bool,
    /// Of the task that polls the executor. None while it does: it goes round until nothing is ready.
    waker: Option<Waker>,
}

struct Task {
    /// Taken out while it is polled.
    future: Option<BoxFuture<'static, ()>>,
    /// The same for every poll, so that what waits with it need not take a new one.
    waker: Waker,
}

impl Executor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the tasks until `main` completes.
    pub(super) async fn run<T>(&self, main: impl Future<Output = T>) -> T {
        // The runtime's way of making a task give way would only make this one go round and round.
        let mut main = Box::pin(tokio::task::unconstrained(main));
        let waker = self.waker_of(Who::Main);
        self.state().is_main_ready = true;
        let outcome = std::future::poll_fn(|context| {
            self.state().waker = None;
            let mut own_context = Context::from_waker(&waker);
            loop {
                let is_main_ready = std::mem::take(&mut self.state().is_main_ready);
                if is_main_ready && let Poll::Ready(outcome) = main.as_mut().poll(&mut own_context)
                {
                    return Poll::Ready(outcome);
                }
                self.poll_round();
                let mut state = self.state();
                if state.ready.is_empty() && !state.is_main_ready {
                    state.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
            }
        });
        outcome.await
    }

    /// Polls every task that is ready, once.
    fn poll_round(&self) {
        let round = std::mem::take(&mut self.state().ready);
        for id in round {
            let Some((mut future, waker)) = self.state().take(id) else { continue };
            let is_over = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            let mut state = self.state();
            if is_over {
                state.tasks.remove(&id);
            } else if let Some(task) = state.tasks.get_mut(&id) {
                task.future = Some(future);
            }
        }
    }

    fn waker_of(&self, who: Who) -> Waker {
        Waker::from(Arc::new(TaskWaker { who, executor: self.clone() }))
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
        let waker = self.waker_of(Who::Task(id));
        state.tasks.insert(id, Task { future: Some(task), waker: waker.clone() });
        drop(state);
        waker.wake();
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Executor").finish_non_exhaustive()
    }
}

impl State {
    /// A task's future, until it has been polled.
    fn take(&mut self, id: u64) -> Option<(BoxFuture<'static, ()>, Waker)> {
        let task = self.tasks.get_mut(&id)?;
        Some((task.future.take()?, task.waker.clone()))
    }
}

/// Whom a waker wakes.
enum Who {
    /// The future that [`Executor::run`] was given.
    Main,
    Task(u64),
}

struct TaskWaker {
    who: Who,
    executor: Executor,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.executor.state();
        match self.who {
            Who::Main => state.is_main_ready = true,
            Who::Task(id) => {
                state.ready.insert(id);
            }
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
