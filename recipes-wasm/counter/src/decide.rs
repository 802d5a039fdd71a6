//! What the bytes of the counter's znode mean, and what becomes of them.

/// How many bytes a counter has.
const LENGTH: usize = size_of::<i64>();

/// How many bytes of what is no counter are shown.
const SHOWN: usize = 16;

/// What to do about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write this one.
    Set(i64),
    /// Leave it as it is: the sum would not fit, or the value is not the expected one.
    Leave,
}

/// The value in a counter's znode: eight bytes, the most significant first. A znode without data is
/// one in which nobody has counted yet.
///
/// # Errors
/// What stands there instead, in words.
pub(crate) fn value(data: &[u8]) -> Result<i64, String> {
    if data.is_empty() {
        return Ok(0);
    }
    data.try_into().map(i64::from_be_bytes).map_err(|_| {
        let shown = data.get(..SHOWN).unwrap_or(data).escape_ascii();
        let more = if data.len() > SHOWN { "..." } else { "" };
        format!(
            "the mount's own znode has {} bytes, \"{shown}\"{more}, where a counter has {LENGTH}: if it \
             is another application's, mount the counter elsewhere; if nobody wants what it holds, \
             delete it",
            data.len()
        )
    })
}

/// The bytes of a value.
pub(crate) fn data(value: i64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Adds, unless the sum does not fit.
pub(crate) fn add(value: i64, by: i64) -> Step {
    value.checked_add(by).map_or(Step::Leave, Step::Set)
}

/// Sets the counter if it is as expected.
pub(crate) fn compare_and_set(value: i64, expected: i64, new: i64) -> Step {
    if value == expected { Step::Set(new) } else { Step::Leave }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_with_its_most_significant_byte_first_as_curator_does() {
        for (number, bytes) in [
            (0, [0; 8]),
            (1, [0, 0, 0, 0, 0, 0, 0, 1]),
            (0x0102_0304_0506_0708, [1, 2, 3, 4, 5, 6, 7, 8]),
            (-1, [0xff; 8]),
            (i64::MIN, [0x80, 0, 0, 0, 0, 0, 0, 0]),
            (i64::MAX, [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!(data(number), bytes);
            assert_eq!(value(&bytes), Ok(number));
        }
    }

    #[test]
    fn a_znode_without_data_is_zero() {
        assert_eq!(value(b""), Ok(0));
    }

    #[test]
    fn what_has_another_length_is_told_with_its_first_bytes() {
        for foreign in [&b"7"[..], b"\0\0\0\x07", b"192.0.2.1:2181 and more of that"] {
            let told = value(foreign).expect_err("it is no counter");
            assert!(told.contains(&format!("{} bytes", foreign.len())), "{told}");
            assert!(
                told.contains("mount the counter elsewhere") && told.contains("delete it"),
                "{told}"
            );
        }
        assert!(value(&[0; 9]).expect_err("it is no counter").contains("\\x00"));
        let long = value(&[b'x'; 900_000]).expect_err("it is no counter");
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn sums_go_up_to_the_ends_of_64_bits_and_not_beyond() {
        assert_eq!(add(40, 2), Step::Set(42));
        assert_eq!(add(2, -44), Step::Set(-42));
        assert_eq!(add(i64::MAX - 1, 1), Step::Set(i64::MAX));
        assert_eq!(add(i64::MAX, 1), Step::Leave);
        assert_eq!(add(i64::MIN, -1), Step::Leave);
        assert_eq!(add(-1, i64::MIN), Step::Leave);
        assert_eq!(add(i64::MIN, i64::MAX), Step::Set(-1));
    }

    #[test]
    fn only_the_expected_value_is_replaced() {
        assert_eq!(compare_and_set(3, 3, 9), Step::Set(9));
        assert_eq!(compare_and_set(4, 3, 9), Step::Leave);
    }
}
