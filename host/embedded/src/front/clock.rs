//! The one clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::time::Now;

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock { start: Instant::now() }
    }

    pub(super) fn now(self) -> Now {
        let elapsed_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { elapsed_ms, wall_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX) }
    }
}
