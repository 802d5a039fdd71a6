//! A simulated host's clock and dice.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::chance::Chance;
use crate::clock::{Boottime, Clock};

/// When simulated machines were started, so that no instant is near zero.
const UPTIME: Duration = Duration::from_secs(1_000);

/// When a run begins: the first second of 2026.
pub(super) const BEGIN_WALL_MS: u64 = 1_767_225_600_000;

/// A host's clock, which is the run's, and its dice.
#[derive(Debug)]
pub(super) struct HostClock {
    began: Instant,
    /// How far its wall clock was set wrong.
    wall_jump_ms: AtomicI64,
    chance: Mutex<Chance>,
}

impl HostClock {
    pub(super) fn new(began: Instant, chance: Chance) -> Self {
        HostClock { began, wall_jump_ms: AtomicI64::new(0), chance: Mutex::new(chance) }
    }

    /// Somebody sets its wall clock.
    pub(super) fn jump(&self, by_ms: i64) {
        self.wall_jump_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for HostClock {
    fn now(&self) -> Boottime {
        Boottime::from_nanos(0) + UPTIME + self.began.elapsed()
    }

    fn wall_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let jump = self.wall_jump_ms.load(Ordering::Relaxed);
        BEGIN_WALL_MS.saturating_add(elapsed).saturating_add_signed(jump)
    }

    fn uuid(&self) -> Uuid {
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
        let (high, low) = (chance.draw(), chance.draw());
        drop(chance);
        let bytes = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}
