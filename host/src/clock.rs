//! The clock that claims are measured on, and the dice: all that a host takes from its machine.

use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// An instant on `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
///
/// ZooKeeper's servers count a session's timeout while this machine sleeps; `std::time::Instant`
/// does not, so a deadline kept on it would be passed without being noticed. All processes of a
/// machine read the same clock, so an instant can be handed to another process as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boottime(Duration);

impl Boottime {
    /// The present instant.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        // The clock starts at zero with the machine, so neither part is ever negative.
        Self(Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        ))
    }

    /// The instant that many nanoseconds after the machine's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// Nanoseconds since the machine's start. A `u64` holds 584 years of them.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long `earlier` was before this instant; zero if it was not.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long it is from now to this instant; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.saturating_duration_since(Self::now())
    }

    /// Whether this instant is now or was before.
    pub fn has_passed(self) -> bool {
        self <= Self::now()
    }
}

impl Add<Duration> for Boottime {
    type Output = Self;

    /// Saturates: an absurdly long timeout means never, not a panic.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub<Duration> for Boottime {
    type Output = Self;

    /// Saturates at the machine's start.
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// Where the host reads the time and throws its dice, so that a simulated host can be given others.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// The present instant.
    fn now(&self) -> Boottime;
    /// Milliseconds since 1970, on a clock that people set.
    fn wall_ms(&self) -> u64;
    /// A name that nobody else has or can guess.
    fn uuid(&self) -> Uuid;
}

/// The machine's own clock and dice.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Boottime {
        Boottime::now()
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_survives_the_trip_as_a_number() {
        let before = Boottime::now();
        let again = Boottime::from_nanos(before.as_nanos());
        assert_eq!(before, again);
        assert!(Boottime::now() >= before);
        assert!(before.has_passed());
        assert!(!(before + Duration::from_secs(3600)).has_passed());
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let start = Boottime::from_nanos(0);
        assert_eq!(start - Duration::from_secs(1), start);
        let never = start + Duration::MAX + Duration::MAX;
        assert_eq!(never.as_nanos(), u64::MAX);
        assert_eq!(start.saturating_duration_since(never), Duration::ZERO);
    }
}
