//! The counter in a contender's name, whatever recipe gave it the rest.

/// Digits that ZooKeeper writes at least.
const DIGITS: usize = 10;

/// ZooKeeper's counter: signed, 32 bits, and after the greatest comes the least. Which of two came
/// first is said by the shorter way round, right as long as a line spans less than half the circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter(i32);

impl Counter {
    /// Takes a name apart: what stands before the counter, and the counter. None without one.
    ///
    /// A hyphen before the digits is the sign only if what stands before it can end a stem by
    /// itself, as `-lock-` and `__lock__` do. (The nine digits of small negative counters come only
    /// after another two thousand million creates, and are not read.)
    pub fn split(name: &str) -> Option<(&str, Counter)> {
        let (stem, digits) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: i64 = digits.parse().ok()?;
        let (stem, number) = match stem.strip_suffix('-') {
            Some(before) if before.ends_with(['-', '_']) => (before, -number),
            _ => (stem, number),
        };
        Some((stem, Counter(i32::try_from(number).ok()?)))
    }

    /// How far this one is ahead of `origin`; negative if it came before.
    pub fn steps_after(self, origin: Counter) -> i64 {
        i64::from(self.0.wrapping_sub(origin.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, i32)>) {
        assert_eq!(Counter::split(name), expected.map(|(stem, number)| (stem, Counter(number))));
    }

    #[test]
    fn the_names_of_both_makes_are_read_before_and_after_the_wrap() {
        check("_c_u-lock-0000000007", Some(("_c_u-lock-", 7)));
        check("_c_u-lock--2147483648", Some(("_c_u-lock-", i32::MIN)));
        check("u__lock__2147483647", Some(("u__lock__", i32::MAX)));
        check("u__lock__-2147483647", Some(("u__lock__", -i32::MAX)));
    }

    #[test]
    fn names_without_a_counter_are_none() {
        for name in ["", "announcement", "x-12", "x-00000 0001", "x-9999999999", "é00000000é"] {
            check(name, None);
        }
    }

    #[test]
    fn after_the_greatest_comes_the_least() {
        assert_eq!(Counter(i32::MIN).steps_after(Counter(i32::MAX)), 1);
        assert_eq!(Counter(i32::MAX).steps_after(Counter(i32::MIN)), -1);
    }
}
