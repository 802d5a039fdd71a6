//! How long to wait before trying again.

use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// The first pause. An ensemble that elects a leader is back in a fraction of a second.
const FIRST: Duration = Duration::from_millis(100);

/// The longest: a user who mends something should not have to wait longer to see it work.
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double up to a limit, each shortened by up to a half at random, so that hosts that
/// failed together do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::between(FIRST, LONGEST)
    }
}

impl Backoff {
    /// With a first pause and a longest one.
    pub(crate) fn between(first: Duration, longest: Duration) -> Self {
        Backoff { first, longest, next: first }
    }

    /// The next pause, by the machine's dice.
    pub(crate) fn next(&mut self) -> Duration {
        self.next_by(&SystemClock)
    }

    /// The next pause, by these dice.
    pub(crate) fn next_by(&mut self, dice: &dyn Clock) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        let per_mille = u32::try_from(500 + dice.uuid().as_u64_pair().0 % 501).unwrap_or(1000);
        pause * per_mille / 1000
    }

    /// What was tried has worked.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_the_limit_and_keep_at_least_half() {
        let mut backoff = Backoff::default();
        let mut expected = FIRST;
        for _ in 0..20 {
            let pause = backoff.next();
            assert!(pause <= expected && pause >= expected / 2, "{pause:?} of {expected:?}");
            expected = (expected * 2).min(LONGEST);
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
