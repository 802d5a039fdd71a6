//! The one place where tasks are started, so that every one of them is joined.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio_util::future::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where tasks run that do not run on a runtime of their own.
pub trait Spawn: std::fmt::Debug + Send + Sync {
    /// Starts a task.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

#[derive(Debug, Clone)]
enum Home {
    Runtime(Handle),
    Elsewhere(Arc<dyn Spawn>),
}

/// Tasks that end together.
#[derive(Debug, Clone)]
pub struct Tasks {
    home: Home,
    tracker: TaskTracker,
    cancelled: CancellationToken,
    gate: Option<Gate>,
}

impl Tasks {
    /// Tasks that will run on `runtime`.
    pub fn on(runtime: Handle) -> Self {
        let (tracker, cancelled) = (TaskTracker::new(), CancellationToken::new());
        Tasks { home: Home::Runtime(runtime), tracker, cancelled, gate: None }
    }

    /// Tasks of a simulation, which says where they run.
    pub fn staged(home: Arc<dyn Spawn>) -> Self {
        let (tracker, cancelled) = (TaskTracker::new(), CancellationToken::new());
        Tasks { home: Home::Elsewhere(home), tracker, cancelled, gate: None }
    }

    /// The same, of a simulated process: they run only while its gate is open.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Self {
        Tasks { gate: Some(gate), ..self }
    }

    /// Starts a task. It is dropped at its next await when the tasks are cancelled, so whatever
    /// must still happen then belongs to a drop guard or to another group of tasks.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        match self.gate.clone() {
            None => self.start(name, task),
            Some(gate) => self.start(name, Gated { gate, task: Box::pin(task) }),
        }
    }

    fn start(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        // By adapters: an async block would keep room for the task twice, where it is handed in and where
        // it is awaited, and a host has three tasks for each app.
        let task = task.with_cancellation_token_owned(self.cancelled.clone()).map(move |done| {
            if done.is_none() {
                tracing::trace!(name, "task cancelled");
            }
        });
        let task = self.tracker.track_future(task);
        match &self.home {
            Home::Runtime(runtime) => drop(runtime.spawn(task)),
            Home::Elsewhere(home) => home.spawn(Box::pin(task)),
        }
    }

    /// Asks all tasks to end.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Whether they were asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until every task has ended. Those that do not end by themselves need
    /// [`cancel`](Tasks::cancel) first.
    pub async fn join(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Lets the tasks of a simulated process run, or stops them as `SIGSTOP` does: wherever they are,
/// without a word to them.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    state: Arc<Mutex<GateState>>,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    /// Tasks that were due meanwhile, in the order in which they were.
    held_up: Vec<Waker>,
}

impl Gate {
    /// Stops the tasks.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }

    /// Lets them go on.
    pub fn open(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = false;
        let held_up = std::mem::take(&mut state.held_up);
        drop(state);
        held_up.into_iter().for_each(Waker::wake);
    }

    /// Whether they are stopped.
    pub fn is_closed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }

    fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_closed {
            return Poll::Ready(());
        }
        state.held_up.push(context.waker().clone());
        Poll::Pending
    }
}

struct Gated {
    gate: Gate,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.gate.poll_open(context) {
            Poll::Ready(()) => self.task.as_mut().poll(context),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_task_that_can_go_on_when_it_is_cancelled_does_so_to_its_next_await() {
        let tasks = Tasks::on(Handle::current());
        let (go_on, may_go_on) = oneshot::channel();
        let (at_await, is_at_await) = oneshot::channel();
        let (went_on, has_gone_on) = oneshot::channel();
        tasks.spawn("test", async move {
            at_await.send(()).unwrap();
            may_go_on.await.unwrap();
            went_on.send(()).unwrap();
            std::future::pending().await
        });
        is_at_await.await.unwrap();
        go_on.send(()).unwrap();
        tasks.cancel();
        tasks.join().await;
        has_gone_on.await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_is_started_when_the_others_are_cancelled_does_nothing() {
        let tasks = Tasks::on(Handle::current());
        tasks.cancel();
        let (begun, has_begun) = oneshot::channel();
        tasks.spawn("test", async move { begun.send(()).unwrap() });
        tasks.join().await;
        assert!(has_begun.await.is_err());
    }
}
