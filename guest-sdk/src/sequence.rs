//! ZooKeeper's counter, as a name carries it.

/// The counter that ZooKeeper appends to a sequential znode's name.
///
/// It is a signed 32-bit number. After 2147483647 an old server goes on with -2147483648, and others give
/// 2147483647 again and again, so the host lets nobody of this session stand in line from there on. Other
/// clients may. So there is no least one, and whether one comes before another is asked by serial-number
/// arithmetic (RFC 1982): the shorter way round decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(i32);

impl Sequence {
    /// The counter `number`.
    pub const fn new(number: i32) -> Self {
        Sequence(number)
    }

    /// The number.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Reads what ZooKeeper writes, `%010d`: ten digits, or a minus sign and nine or ten.
    pub fn parse(suffix: &str) -> Option<Self> {
        let digits = suffix.strip_prefix('-').unwrap_or(suffix);
        let is_width = if digits.len() == suffix.len() {
            digits.len() == 10
        } else {
            (9..=10).contains(&digits.len())
        };
        // `str::parse` would also take a plus sign.
        if !is_width || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        suffix.parse().ok().map(Sequence)
    }

    /// Whether this one was given out before `other`.
    pub const fn is_before(self, other: Sequence) -> bool {
        self.steps_after(other) < 0
    }

    /// How far this one is ahead of `origin` on the circle; negative if it came before. For one
    /// origin this is a total order, as sorting needs.
    pub const fn steps_after(self, origin: Sequence) -> i32 {
        self.0.wrapping_sub(origin.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_parse(suffix: &str, expected: Option<i32>) {
        assert_eq!(Sequence::parse(suffix), expected.map(Sequence), "{suffix:?}");
    }

    #[test]
    fn the_suffixes_zookeeper_writes_are_read() {
        check_parse("0000000000", Some(0));
        check_parse("0000000042", Some(42));
        check_parse("2147483647", Some(i32::MAX));
        check_parse("-2147483648", Some(i32::MIN));
        check_parse("-000000001", Some(-1));
    }

    #[test]
    fn other_suffixes_are_foreign() {
        for suffix in [
            "",
            "-",
            "42",
            "00000000042",
            "2147483648",
            "-2147483649",
            "+000000001",
            "00000 0001",
            "--00000001",
            "000000001x",
            "-00000001",
        ] {
            check_parse(suffix, None);
        }
    }

    #[test]
    fn the_counter_goes_on_when_it_wraps() {
        let last = Sequence::new(i32::MAX);
        let wrapped = Sequence::new(i32::MIN);
        assert!(last.is_before(wrapped));
        assert!(!wrapped.is_before(last));
        assert!(Sequence::new(-1).is_before(Sequence::new(0)));
        assert_eq!(wrapped.steps_after(last), 1);
    }

    #[test]
    fn none_is_before_itself() {
        assert!(!Sequence::new(7).is_before(Sequence::new(7)));
    }
}
