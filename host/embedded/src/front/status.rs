//! How a server fares, seen from outside.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::files::{FilesError, Recovery};

/// How a server fares. It can be asked after the server's end, too.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    recovery: Option<Recovery>,
    failure: OnceLock<FilesError>,
    snapshot_failure: Mutex<Option<String>>,
}

impl Status {
    pub(super) fn new(recovery: Option<Recovery>, stop: CancellationToken) -> Self {
        let snapshot_failure = recovery.as_ref().and_then(|found| found.snapshot_failure.clone());
        let snapshot_failure = Mutex::new(snapshot_failure);
        let shared = Shared { recovery, failure: OnceLock::new(), snapshot_failure };
        Status { shared: Arc::new(shared), stop }
    }

    /// The server ends because its data cannot be kept. Only the first reason is told.
    pub(super) fn fail(&self, error: FilesError) {
        // It fails if there is an earlier one.
        self.shared.failure.set(error).ok();
        self.stop.cancel();
    }

    /// How the newest snapshot ended.
    pub(super) fn snapshot_ended(&self, result: &Result<(), FilesError>) {
        let why = result.as_ref().err().map(ToString::to_string);
        *self.shared.snapshot_failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn recovery(&self) -> Option<&Recovery> {
        self.shared.recovery.as_ref()
    }

    pub(crate) fn failure(&self) -> Option<&FilesError> {
        self.shared.failure.get()
    }

    pub(crate) fn snapshot_failure(&self) -> Option<String> {
        self.shared.snapshot_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}
