//! The one clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::time::Now;

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock { start: Instant::now() }
    }

    /// Ticks at whole multiples of a period, as the tracker's buckets end: from any other moment a
    /// session would expire up to a period later. What a stall has made the server miss is left out.
    pub(super) fn every(self, period: Duration) -> Interval {
        let period = period.max(Duration::from_millis(1));
        let mut interval = interval_at(self.start + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
        interval
    }

    pub(super) fn now(self) -> Now {
        let elapsed_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { elapsed_ms, wall_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ticks_are_whole_periods_from_the_start_whatever_holds_them_up() {
        let clock = Clock::start();
        tokio::time::advance(Duration::from_millis(130)).await;
        let mut ticks = clock.every(Duration::from_millis(100));
        let mut at = Vec::new();
        for pause in [0, 250, 0] {
            tokio::time::advance(Duration::from_millis(pause)).await;
            ticks.tick().await;
            at.push(clock.now().elapsed_ms);
        }
        // The first was over when it was asked for, the next is late by the pause, the third is not.
        assert_eq!(at, [130, 380, 400]);
    }
}
