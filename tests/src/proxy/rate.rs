//! A link that carries only so much in a second, each way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Bytes that pass as one: a hundred to a second at a megabyte a second.
pub(super) const PIECE: usize = 10_000;

/// What passes in a second, and when each direction is free again. All connections share it.
#[derive(Debug, Default)]
pub(super) struct Rate {
    per_second: AtomicU64,
    free: Mutex<[Option<Instant>; 2]>,
}

impl Rate {
    pub(super) fn set(&self, per_second: u64) {
        self.per_second.store(per_second, Ordering::Relaxed);
    }

    pub(super) fn is_limited(&self) -> bool {
        self.per_second.load(Ordering::Relaxed) > 0
    }

    /// Waits until so many bytes have passed.
    pub(super) async fn pass(&self, is_request: bool, bytes: usize) {
        let per_second = self.per_second.load(Ordering::Relaxed);
        if per_second == 0 {
            return;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / per_second as f64);
        let until = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let [requests, replies] = &mut *free;
            let free = if is_request { requests } else { replies };
            let now = Instant::now();
            let until = free.map_or(now, |free| free.max(now)) + takes;
            *free = Some(until);
            until
        };
        // tidy: the wait is the fault that the test asked for
        tokio::time::sleep_until(until).await;
    }
}
