//! The one place where tasks are started, so that every one of them is joined.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that end together.
#[derive(Debug, Clone)]
pub struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
    cancelled: CancellationToken,
}

impl Tasks {
    /// Tasks that will run on `runtime`.
    pub fn on(runtime: Handle) -> Self {
        Tasks { runtime, tracker: TaskTracker::new(), cancelled: CancellationToken::new() }
    }

    /// Starts a task. It is dropped at its next await when the tasks are cancelled, so whatever
    /// must still happen then belongs to a drop guard or to another group of tasks.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let cancelled = self.cancelled.clone();
        // Boxed, because each of the wrappers below would keep room for the task twice: where it
        // is handed in, and where it is awaited.
        let task = Box::pin(task);
        let task = self.tracker.track_future(async move {
            if cancelled.run_until_cancelled(task).await.is_none() {
                tracing::trace!(name, "task cancelled");
            }
        });
        self.runtime.spawn(task);
    }

    /// The runtime that the tasks run on.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Asks all tasks to end.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Waits until every task has ended. Those that do not end by themselves need
    /// [`cancel`](Tasks::cancel) first.
    pub async fn join(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
