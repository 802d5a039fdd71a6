//! Where tasks start, so that all of them are joined.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Cancelled when the server is to end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Starts a task. It must end soon after [`Tasks::stop`] is cancelled.
    pub(super) fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// Asks all tasks to end, and waits until they have.
    ///
    /// # Cancellation
    /// They still end, but nobody has waited for it.
    pub(super) async fn join(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
