//! Counts and limits as their nodes have them.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

const COUNT: &str = "count";
const BYTES: &str = "bytes";
const COUNT_HARD_LIMIT: &str = "countHardLimit";
const BYTES_HARD_LIMIT: &str = "byteHardLimit";
/// What is not there.
const NONE: i64 = -1;
/// Clients may set the data to anything, and it is read at every change below the quota. No client
/// of Apache ZooKeeper's makes it a tenth as long.
const MAX_LENGTH: usize = 1 << 10;

/// Numbers by name: `count=4,bytes=5`, and behind another `=` whatever else there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Track {
    values: BTreeMap<String, i64>,
}

/// A limit of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// What exceeds it is told.
    Soft(i64),
    /// What exceeds it is refused.
    Hard(i64),
}

impl Track {
    /// So many nodes and bytes.
    pub fn new(count: i64, bytes: i64) -> Self {
        let values = [(COUNT.to_owned(), count), (BYTES.to_owned(), bytes)];
        Track { values: values.into() }
    }

    /// Reads a node's data. What is no number, which would end Apache's server, is not there.
    pub fn read(data: Option<&Bytes>) -> Self {
        let text = data.filter(|data| data.len() <= MAX_LENGTH).map(|data| &data[..]);
        let text = String::from_utf8_lossy(text.unwrap_or_default());
        let pair = |pair: &str| {
            let mut fields = pair.split('=');
            let (name, value) = (fields.next()?, fields.next()?);
            let value = if value.is_empty() { NONE } else { value.parse().ok()? };
            Some((name.to_owned(), value))
        };
        Track { values: text.split([',', ';']).filter_map(pair).collect() }
    }

    /// How many nodes.
    pub fn count(&self) -> i64 {
        self.get(COUNT)
    }

    /// How many bytes of data.
    pub fn bytes(&self) -> i64 {
        self.get(BYTES)
    }

    /// As limits: how many nodes. A hard limit counts alone.
    pub fn count_limit(&self) -> Option<Limit> {
        self.limit(COUNT_HARD_LIMIT, COUNT)
    }

    /// As limits: how many bytes.
    pub fn bytes_limit(&self) -> Option<Limit> {
        self.limit(BYTES_HARD_LIMIT, BYTES)
    }

    fn limit(&self, hard: &str, soft: &str) -> Option<Limit> {
        match (self.get(hard), self.get(soft)) {
            (hard, _) if hard > NONE => Some(Limit::Hard(hard)),
            (_, soft) if soft > NONE => Some(Limit::Soft(soft)),
            _ => None,
        }
    }

    pub(super) fn add(&mut self, count: i64, bytes: i64) {
        for (name, more) in [(COUNT, count), (BYTES, bytes)] {
            let sum = self.get(name).wrapping_add(more);
            self.values.insert(name.to_owned(), sum);
        }
    }

    fn get(&self, name: &str) -> i64 {
        self.values.get(name).copied().unwrap_or(NONE)
    }
}

impl fmt::Display for Track {
    /// In the form that servers of before 3.9 read, too, which know of no more than the first two.
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "{COUNT}={},{BYTES}={}", self.count(), self.bytes())?;
        let more = self.values.iter().filter(|(name, _)| ![COUNT, BYTES].contains(&name.as_str()));
        for (index, (name, value)) in more.enumerate() {
            let first = if index == 0 { "=" } else { "" };
            write!(text, "{first};{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written_as_apache_does() {
        let check = |text: &'static str, expected: &str| {
            let track = Track::read(Some(&Bytes::from_static(text.as_bytes())));
            assert_eq!(track.to_string(), expected, "{text}");
        };
        check("count=4,bytes=5", "count=4,bytes=5");
        check("bytes=5;count=4", "count=4,bytes=5");
        check("", "count=-1,bytes=-1");
        check("count=,bytes=x", "count=-1,bytes=-1");
        check("count==7,bytes=5", "count=-1,bytes=5");
        let all = "count=1,bytes=2=;byteHardLimit=3;countHardLimit=4";
        check(all, all);
        let long = Bytes::from(format!("count=1,bytes=2,x{}=1", "y".repeat(MAX_LENGTH)));
        assert_eq!(Track::read(Some(&long)), Track::default());
    }

    #[test]
    fn a_hard_limit_takes_the_place_of_a_soft_one() {
        let read = |text: &'static str| Track::read(Some(&Bytes::from_static(text.as_bytes())));
        let track = read("count=1,bytes=-1=;countHardLimit=4");
        assert_eq!((track.count_limit(), track.bytes_limit()), (Some(Limit::Hard(4)), None));
        let track = read("count=1,bytes=0=;countHardLimit=-1");
        assert_eq!(track.count_limit(), Some(Limit::Soft(1)));
        assert_eq!(track.bytes_limit(), Some(Limit::Soft(0)));
    }
}
