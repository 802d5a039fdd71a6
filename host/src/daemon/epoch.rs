//! A session, for as long as it is the daemon's.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// A session epoch: from the connect to the loss, or to the daemon's end.
#[derive(Debug, Clone)]
pub(super) struct Epoch {
    /// The session.
    pub(super) session: Arc<Session>,
    /// Cancelled when it is lost, or the daemon is to stop.
    pub(super) over: CancellationToken,
}
