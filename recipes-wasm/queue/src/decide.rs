//! What the names of items mean, and which of them are taken.

use wok_sdk::Sequence;
use wok_sdk::zookeeper::Error;

/// How the items of a queue are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `qn-<uuid>-item-<counter>`. The word before the counter is there for the counter's sake: behind
    /// a hyphen alone, the sign of one that has wrapped could not be told from the hyphen.
    Own,
    /// `qn-<counter>`.
    CuratorSimple,
    /// `entry-<priority>-<counter>`.
    Kazoo,
}

/// The priority that kazoo gives an item whose producer names none.
const KAZOO_PRIORITY: &str = "100";

impl Layout {
    /// What an item's name begins with: everything but the counter, which the server appends. `uuid` is
    /// one that nobody has used.
    pub(crate) fn stem(self, uuid: &str) -> String {
        match self {
            Layout::Own => ["qn-", uuid, "-item-"].concat(),
            Layout::CuratorSimple => "qn-".to_owned(),
            Layout::Kazoo => ["entry-", KAZOO_PRIORITY, "-"].concat(),
        }
    }

    /// What stands before the counter of every item, where the counter alone says which is older.
    pub(crate) fn infix(self) -> Option<&'static str> {
        match self {
            Layout::Own => Some("-item-"),
            Layout::CuratorSimple => Some("qn-"),
            Layout::Kazoo => None,
        }
    }

    /// When the item of that name has its turn; none if it is none of this queue's items.
    pub(crate) fn turn(self, name: &str) -> Option<Turn> {
        let (priority, counter) = match self {
            Layout::Own => (0, name.strip_prefix("qn-")?.rsplit_once("-item-")?.1),
            Layout::CuratorSimple => (0, name.strip_prefix("qn-")?),
            Layout::Kazoo => {
                let rest = name.strip_prefix("entry-")?;
                let (sign, rest) = rest.strip_prefix('-').map_or((1, rest), |rest| (0, rest));
                let (digits, counter) = rest.split_once('-')?;
                (sign << 56 | in_order_of_text(digits)?, counter)
            }
        };
        Some(Turn { priority, sequence: Sequence::parse(counter)? })
    }
}

/// A number for a priority without its sign, so that the numbers are in the order in which kazoo takes the
/// priorities: kazoo sorts names as text. For the priorities that kazoo's own `put` accepts, from 000 to
/// 999, that is the order of their values. Priorities that were written by hand, below zero or with more
/// digits, are taken in the order in which kazoo would take them. None if they are not digits, or more than seven.
fn in_order_of_text(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !(1..=7).contains(&digits.len()) {
        return None;
    }
    let number = digits.bytes().fold(0, |number, byte| number << 8 | u64::from(byte));
    // A shorter one is filled up with zeros. These come before every digit, as does the hyphen that follows
    // the priority in the name.
    Some(number << (8 * (7 - digits.len())))
}

/// When an item has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Lower ones come first. Only kazoo's items differ in it.
    priority: u64,
    sequence: Sequence,
}

impl Turn {
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

/// What was found among names.
#[derive(Debug)]
pub(crate) struct Found {
    /// The items whose turn comes first, in order.
    pub(crate) names: Vec<String>,
    /// The first name that is no item's, if there is one.
    pub(crate) stranger: Option<String>,
}

/// The items whose turn comes first, at most so many, from names in any order. Keeps no more than
/// these: a long list costs the component no memory.
pub(crate) fn first_of(
    names: impl IntoIterator<Item = String>,
    layout: Layout,
    most: usize,
) -> Found {
    let mut first: Vec<(Turn, String)> = Vec::new();
    let mut stranger = None;
    for name in names {
        let Some(turn) = layout.turn(&name) else {
            stranger = stranger.or(Some(name));
            continue;
        };
        let at = first.partition_point(|(other, _)| other.is_before(turn));
        if at < most {
            first.truncate(most.saturating_sub(1));
            first.insert(at, (turn, name));
        }
    }
    Found { names: first.into_iter().map(|(_, name)| name).collect(), stranger }
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

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[track_caller]
    fn check_first(layout: Layout, names: &[&str], most: usize, expected: &[&str]) {
        assert_eq!(first_of(owned(names), layout, most).names, expected);
    }

    #[test]
    fn the_first_name_that_is_no_items_is_told() {
        let names = ["entry-100-0000000001", "qn-0000000002", "lock", "entry-100-0000000000"];
        for (layout, stranger) in
            [(Layout::Kazoo, "qn-0000000002"), (Layout::CuratorSimple, "entry-100-0000000001")]
        {
            let found = first_of(owned(&names), layout, 1);
            assert_eq!(found.stranger.as_deref(), Some(stranger), "{layout:?}");
        }
        let found = first_of(owned(&names[..1]), Layout::Kazoo, 1);
        assert_eq!(found.stranger, None);
    }

    #[test]
    fn what_is_put_in_is_read_as_an_item_of_its_layout_and_of_no_other() {
        let layouts = [Layout::Own, Layout::CuratorSimple, Layout::Kazoo];
        for layout in layouts {
            for counter in ["0000000007", "2147483647", "-2147483648", "-000000001"] {
                let name = [&*layout.stem(UUID), counter].concat();
                let readers: Vec<_> =
                    layouts.into_iter().filter(|it| it.turn(&name).is_some()).collect();
                assert_eq!(readers, [layout], "{name}");
            }
        }
    }

    #[test]
    fn foreign_children_are_no_items() {
        let foreign = [
            "",
            "lock",
            "qn-",
            "qn-7",
            "entry-",
            "entry--",
            "entry-0000000001",
            "entry--0000000001",
            "entry---0000000001",
            "entry-x-0000000001",
            "entry-+05-0000000001",
            "entry-\u{e9}5-0000000001",
            "entry-12345678-0000000001",
            "-item-1",
        ];
        for layout in [Layout::Own, Layout::CuratorSimple, Layout::Kazoo] {
            check_first(layout, &foreign, 9, &[]);
        }
    }

    #[test]
    fn the_oldest_comes_first_also_where_the_counter_wraps_and_whatever_the_text_says() {
        let names = ["qn-z-item--2147483648", "qn-b-item-2147483647", "qn-c-item-2147483646", "x"];
        let sorted = ["qn-c-item-2147483646", "qn-b-item-2147483647", "qn-z-item--2147483648"];
        check_first(Layout::Own, &names, 9, &sorted);
        check_first(Layout::Own, &names, 2, &sorted[..2]);
        check_first(Layout::Own, &names, 1, &sorted[..1]);
        let names = ["qn-0000000010", "qn-0000000009"];
        check_first(Layout::CuratorSimple, &names, 9, &["qn-0000000009", "qn-0000000010"]);
    }

    #[test]
    fn kazoos_priorities_come_before_age() {
        let names = ["entry-100-0000000001", "entry-007-0000000002", "entry-100-0000000000"];
        let sorted = ["entry-007-0000000002", "entry-100-0000000000", "entry-100-0000000001"];
        check_first(Layout::Kazoo, &names, 9, &sorted);
    }

    #[test]
    fn items_of_kazoos_layout_are_taken_in_the_order_of_kazoos_sorted_names() {
        let priorities = ["000", "001", "007", "010", "099", "100", "101", "998", "999"];
        let others = ["-01", "-1", "-05", "-10", "-999", "-1000", "5", "1000", "1001", "9999999"];
        let mut names: Vec<String> = Vec::new();
        for priority in priorities.into_iter().chain(others) {
            for counter in ["0000000010", "0000000009"] {
                names.push(["entry-", priority, "-", counter].concat());
            }
        }
        let taken = first_of(names.clone(), Layout::Kazoo, 99).names;
        names.sort();
        assert_eq!(taken, names);
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
