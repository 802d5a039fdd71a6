//! Durations and sizes: a whole number and a unit, nothing else, so that a number is never read in
//! a unit its writer did not mean.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// Why a string is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
    /// Which bytes of the string are meant, if not all.
    pub within: Option<Range<usize>>,
}

impl BadValue {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        BadValue { message: message.into(), remedy: remedy.into(), within: None }
    }

    pub(super) fn at(self, within: Range<usize>) -> Self {
        BadValue { within: Some(within), ..self }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.remedy)
    }
}

impl std::error::Error for BadValue {}

/// Reads a duration such as `500ms`, `10s`, `2m` or `1h`.
///
/// # Errors
/// It is anything else, or overflows.
pub fn parse_duration(text: &str) -> Result<Duration, BadValue> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let remedy = "write a whole number and a unit, as in \"500ms\", \"10s\", \"2m\" or \"1h\"";
    scaled(text, &units)
        .map(Duration::from_millis)
        .ok_or_else(|| BadValue::new(format!("{text:?} is not a duration"), remedy))
}

/// Reads a size in bytes such as `64KiB`, `16MiB` or `1GiB`.
///
/// # Errors
/// It is anything else, or overflows.
pub fn parse_size(text: &str) -> Result<u64, BadValue> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let remedy = "write a whole number and a unit, as in \"64KiB\", \"16MiB\" or \"1GiB\"";
    scaled(text, &units).ok_or_else(|| BadValue::new(format!("{text:?} is not a size"), remedy))
}

/// The shortest way to write a duration that [`parse_duration`] reads.
pub(crate) fn spell_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        _ if millis == 0 || !millis.is_multiple_of(1_000) => format!("{millis}ms"),
        _ if !millis.is_multiple_of(60_000) => format!("{}s", millis / 1_000),
        _ if !millis.is_multiple_of(3_600_000) => format!("{}m", millis / 60_000),
        _ => format!("{}h", millis / 3_600_000),
    }
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let (number, unit) = text.split_at(text.len() - digits.len());
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let read = |text| parse_duration(text).ok();
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(read("10s"), Some(Duration::from_secs(10)));
        assert_eq!(read("2m"), Some(Duration::from_secs(120)));
        assert_eq!(read("1h"), Some(Duration::from_secs(3600)));
        assert_eq!(read("0s"), Some(Duration::ZERO));
        for text in [
            "",
            "10",
            "s",
            "10 s",
            " 10s",
            "10s ",
            "-1s",
            "+1s",
            "1.5s",
            "1e3s",
            "10S",
            "1m30s",
            "10sec",
            "1d",
            "٣s",
            "99999999999999999999s",
            "9999999999999999h",
            "10_000ms",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_a_number_and_a_binary_unit() {
        let read = |text| parse_size(text).ok();
        assert_eq!(read("64KiB"), Some(65_536));
        assert_eq!(read("16MiB"), Some(16_777_216));
        assert_eq!(read("1GiB"), Some(1_073_741_824));
        for text in ["", "16", "16MB", "16mib", "16 MiB", "-1KiB", "0.5GiB", "99999999999GiB"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_spelled_duration_is_read_back() {
        for millis in [0, 1, 550, 1_000, 5_500, 60_000, 61_000, 3_600_000, 5_400_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&spell_duration(duration)), Ok(duration));
        }
    }
}
