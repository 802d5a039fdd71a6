//! What the names of items mean, and which of them are taken.

use wok_sdk::Sequence;
use wok_sdk::zookeeper::Error;

/// What stands before the counter. A word, for the counter's sake: behind a hyphen alone, the sign of one
/// that has wrapped could not be told from the hyphen.
pub(crate) const INFIX: &str = "-item-";

/// What turns a priority into a number without a sign, in the same order.
const SIGN: u32 = 1 << 31;

/// What an item's name begins with: everything but the counter, which the server appends. `uuid` is one
/// that nobody has used.
///
/// All priorities are as wide, and the sign is the highest of the 32 bits, turned over: so a list that
/// somebody sorts as text is in the order of priorities, from 00000000 for the lowest to ffffffff.
pub(crate) fn stem(priority: i32, uuid: &str) -> String {
    format!("pq-{:08x}-{uuid}{INFIX}", priority.cast_unsigned() ^ SIGN)
}

/// When an item has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Lower ones come first.
    pub(crate) priority: i32,
    sequence: Sequence,
}

impl Turn {
    /// That of the item of that name; none if it is no item.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (priority, rest) = name.strip_prefix("pq-")?.split_once('-')?;
        if priority.len() != 8 || !priority.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let priority = (u32::from_str_radix(priority, 16).ok()? ^ SIGN).cast_signed();
        let sequence = Sequence::parse(rest.rsplit_once(INFIX)?.1)?;
        Some(Turn { priority, sequence })
    }

    /// The counter in its name.
    pub(crate) fn counter(self) -> i32 {
        self.sequence.number()
    }

    fn is_before(self, other: Turn) -> bool {
        match self.priority == other.priority {
            true => self.sequence.is_before(other.sequence),
            false => self.priority < other.priority,
        }
    }
}

/// The items whose turn comes first, in order, at most so many, from names in any order. Keeps no more
/// than these: a long list costs the component no memory.
pub(crate) fn first_of(names: impl IntoIterator<Item = String>, most: usize) -> Vec<String> {
    let mut first: Vec<(Turn, String)> = Vec::new();
    for name in names {
        let Some(turn) = Turn::of(&name) else { continue };
        let at = first.partition_point(|(other, _)| other.is_before(turn));
        if at < most {
            first.truncate(most.saturating_sub(1));
            first.insert(at, (turn, name));
        }
    }
    first.into_iter().map(|(_, name)| name).collect()
}

/// What to do with an item that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Take it.
    Take,
    /// It was taken as often as it may be: it is a dead letter.
    Bury,
    /// The list that showed its name is older than the item: the directory was removed meanwhile, and
    /// its counter began anew. So the list says nothing of what is older.
    ListAgain,
}

/// Decides that. An item's version is the number of times that it was taken; `is_listed` says whether the
/// item is the one that the list names.
pub(crate) fn verdict(version: i32, is_listed: bool, max_attempts: Option<u32>) -> Verdict {
    if !is_listed {
        return Verdict::ListAgain;
    }
    match max_attempts {
        Some(most) if attempts(version) >= most => Verdict::Bury,
        _ => Verdict::Take,
    }
}

/// How often an item of that version was taken.
pub(crate) fn attempts(version: i32) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX)
}

/// What is answered to the participant that acknowledges items, where one of them could not be removed:
/// `others` is the answer without that one.
///
/// An item that is not there any more is done. While this participant's claim stands, no client that looks
/// at claims takes the item, so somebody has acknowledged it by `ack-item`, or another client has deleted it.
pub(crate) fn answer(others: Result<(), Error>, why: Error) -> Result<(), Error> {
    match why {
        Error::NoNode => others,
        why => Err(why),
    }
}

/// How many of the items that have these lengths, in order, are taken at once: as many as fit, and one
/// at least.
pub(crate) fn fitting(lengths: impl IntoIterator<Item = u32>, bytes: u32) -> usize {
    let sums = lengths.into_iter().scan(0_u32, |sum, length| {
        *sum = sum.saturating_add(length);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= bytes).count().max(1)
}

/// The name of an item, given any path that ends with it.
pub(crate) fn name_in(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

    fn name(priority: i32, counter: &str) -> String {
        [&*stem(priority, UUID), counter].concat()
    }

    /// In this order, whatever order they are listed in.
    #[track_caller]
    fn check_order(sorted: &[String]) {
        for turned in 0..sorted.len() {
            let mut names = sorted.to_vec();
            names.rotate_left(turned);
            names.push("notes".to_owned());
            for most in 0..=sorted.len() {
                assert_eq!(first_of(names.clone(), most), sorted[..most], "{turned} {most}");
            }
        }
    }

    #[test]
    fn lower_priorities_come_first_and_negative_ones_before_all() {
        let priorities = [i32::MIN, -1000, -1, 0, 5, 10, i32::MAX];
        let sorted: Vec<String> =
            priorities.into_iter().map(|priority| name(priority, "0000000003")).collect();
        check_order(&sorted);
        assert!(sorted.is_sorted(), "as text, too");
        for (priority, name) in priorities.into_iter().zip(&sorted) {
            assert_eq!(Turn::of(name).unwrap().priority, priority);
        }
    }

    #[test]
    fn of_one_priority_the_oldest_comes_first_also_where_the_counter_wraps() {
        let counters = ["2147483646", "2147483647", "-2147483648", "-2147483647"];
        check_order(&counters.map(|counter| name(-7, counter)));
        let names = [name(1, "0000000009"), name(1, "0000000010"), name(2, "0000000001")];
        check_order(&names);
    }

    #[test]
    fn foreign_children_are_no_items() {
        let foreign = [
            "".to_owned(),
            "qn-0000000001".to_owned(),
            format!("qn-{UUID}{INFIX}0000000001"),
            format!("pq-+0000001-{UUID}{INFIX}0000000001"),
            format!("pq-80000000-{UUID}{INFIX}1"),
            format!("pq-800000000-{UUID}{INFIX}0000000001"),
        ];
        assert_eq!(first_of(foreign, 9), Vec::<String>::new());
    }

    #[test]
    fn an_item_is_buried_once_it_was_taken_as_often_as_it_may_be() {
        for (version, most, expected) in [
            (0, None, Verdict::Take),
            (i32::MAX, None, Verdict::Take),
            (2, Some(3), Verdict::Take),
            (3, Some(3), Verdict::Bury),
            // More than two thousand million times.
            (i32::MIN, Some(3), Verdict::Bury),
        ] {
            assert_eq!(verdict(version, true, most), expected, "{version} {most:?}");
        }
    }

    #[test]
    fn an_item_that_the_list_cannot_know_has_it_listed_again() {
        assert_eq!(verdict(0, false, None), Verdict::ListAgain);
        assert_eq!(verdict(9, false, Some(1)), Verdict::ListAgain);
    }

    #[test]
    fn as_many_are_taken_as_fit_and_one_at_least() {
        assert_eq!(fitting([4, 4, 4], 8), 2);
        assert_eq!(fitting([9, 1], 8), 1);
        assert_eq!(fitting([0, 0, 0], 8), 3);
        assert_eq!(fitting([1, u32::MAX, u32::MAX], 8), 1);
    }

    #[test]
    fn an_item_that_has_gone_is_acknowledged_and_one_that_was_written_to_is_not() {
        assert!(answer(Ok(()), Error::NoNode).is_ok());
        assert!(matches!(answer(Ok(()), Error::BadVersion), Err(Error::BadVersion)));
        let written_to = || Err(Error::BadVersion);
        assert!(matches!(answer(written_to(), Error::NoNode), Err(Error::BadVersion)));
    }

    #[test]
    fn an_item_is_named_by_any_path_that_ends_with_it() {
        for path in ["qn-1", "/items/qn-1", "/queues/a/claims/qn-1"] {
            assert_eq!(name_in(path), "qn-1");
        }
    }
}
