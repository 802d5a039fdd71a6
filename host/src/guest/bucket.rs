//! A token bucket that looks at the clock only when it is empty.

use std::time::Duration;

/// What is left of a rate per second.
///
/// Looking at the clock costs as much as the rest of a cheap host call, so it is done once per
/// bucketful. The price: after an idle time two bucketfuls can go at once.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u64,
    left: u64,
    filled_at_ms: u64,
}

impl Bucket {
    /// A full bucket, which holds what one second brings.
    pub(super) fn full(per_second: u64, now_ms: u64) -> Self {
        let per_second = per_second.max(1);
        Bucket { per_second, left: per_second, filled_at_ms: now_ms }
    }

    /// Takes `amount` out if that much is in it; `now_ms` is asked only if not.
    #[inline]
    pub(super) fn take(&mut self, amount: u64, now_ms: impl FnOnce() -> u64) -> Taken {
        if let Some(left) = self.left.checked_sub(amount) {
            self.left = left;
            return Taken::Yes;
        }
        self.refill(now_ms());
        // More than a bucketful could never be taken: it empties a full bucket instead.
        let amount = amount.min(self.per_second);
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                Taken::Yes
            }
            None => Taken::NotBefore(self.time_for(amount - self.left)),
        }
    }

    fn refill(&mut self, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.filled_at_ms);
        let brought = elapsed_ms.saturating_mul(self.per_second) / 1000;
        if brought == 0 {
            return;
        }
        self.left = self.left.saturating_add(brought).min(self.per_second);
        // Only the time that became tokens is used up, so that a slow rate does not starve.
        let used_ms = brought.saturating_mul(1000).div_ceil(self.per_second);
        self.filled_at_ms = self.filled_at_ms.saturating_add(used_ms.min(elapsed_ms));
    }

    /// At least a hundredth of a second's worth, so that a throttled loop sleeps for a while
    /// instead of once per token.
    fn time_for(&self, missing: u64) -> Duration {
        let missing = missing.max(self.per_second / 100);
        Duration::from_millis(missing.saturating_mul(1000).div_ceil(self.per_second))
    }
}

/// Whether tokens were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// They were.
    Yes,
    /// They were not; enough will be there after this time.
    NotBefore(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_goes_out_than_the_rate_and_one_bucketful() {
        let mut bucket = Bucket::full(100, 0);
        let mut now_ms = 0;
        let mut taken = 0;
        while now_ms < 10_000 {
            match bucket.take(1, || now_ms) {
                Taken::Yes => taken += 1,
                Taken::NotBefore(wait) => now_ms += wait.as_millis() as u64,
            }
        }
        assert!((1090..=1110).contains(&taken), "{taken}");
    }

    #[test]
    fn a_slow_rate_is_not_starved_by_asking_often() {
        let mut bucket = Bucket::full(1, 0);
        assert_eq!(bucket.take(1, || 0), Taken::Yes);
        let granted = (0..5000).filter(|now| bucket.take(1, || *now) == Taken::Yes).count();
        assert_eq!(granted, 4);
    }

    #[test]
    fn the_clock_is_left_alone_while_tokens_are_left() {
        let mut bucket = Bucket::full(10, 0);
        for _ in 0..10 {
            assert_eq!(bucket.take(1, || panic!("asked for the time")), Taken::Yes);
        }
    }
}
