//! The first session, from servers that may be starting.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Epochs;
use crate::session::{ConnectError, Session};

/// The pauses between attempts to reach ZooKeeper: the first, and the longest. A server that is
/// starting or electing is ready within seconds, and an attempt costs it one connection.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How long the last attempt may take, which begins when the time is up.
const LAST: Duration = Duration::from_millis(100);

/// Longer than anybody waits.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl Epochs {
    /// Opens a session, and tries for that long: a server that is starting, or electing a leader,
    /// refuses for a while. Without any time it tries every server once. `waits` is told once why it
    /// goes on trying. The session's end is the caller's to see: [`close`](Self::close) it.
    ///
    /// # Errors
    /// No server grants a session in time, or one refuses for good.
    ///
    /// # Cancellation
    /// Nothing is left of a session that is being opened.
    pub async fn open_within(
        &self,
        patience: Duration,
        waits: impl FnOnce(&ConnectError),
    ) -> Result<Arc<Session>, ConnectError> {
        // One that is too far to be told never comes.
        let now = Instant::now();
        let until = now.checked_add(patience).unwrap_or_else(|| now + NEVER);
        let (mut pause, longest_pause) = PAUSES;
        let (mut waits, mut last) = (Some(waits), None);
        loop {
            let attempt = match patience {
                // As long as one attempt takes.
                Duration::ZERO => Ok(self.open().await),
                _ => timeout_at(until.max(Instant::now() + LAST), self.open()).await,
            };
            let error = match attempt {
                Ok(Err(error @ ConnectError::Unreachable { .. })) => error,
                // It is open; or it refuses us, and would again.
                Ok(opened) => return opened,
                Err(_elapsed) => last.unwrap_or_else(|| ConnectError::Unreachable {
                    hosts: self.base.servers().to_owned(),
                    reason: "no answer in time".to_owned(),
                }),
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(error);
            }
            if let Some(waits) = waits.take() {
                waits(&error);
            }
            last = Some(error);
            // A last attempt is made when the time is up: what is there by then is found.
            sleep(pause.min(left)).await;
            pause = (pause * 2).min(longest_pause);
        }
    }
}
