//! Which locks are taken in which order, and what a look at the line of one of them means.

use std::fmt;

use wok_sdk::{Contender, Line, Standing};

/// As many locks as one participant may hold: each is a znode that the host watches, and all of them are
/// given back by one `multi`, which has 128 parts at most.
const MOST_LOCKS: usize = 100;

/// Why names are refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is none.
    Nothing,
    /// There are so many.
    TooMany(usize),
    /// This one is no segment of a path.
    NoSegment(String),
    /// This one is there twice.
    Twice(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Nothing => f.write_str("no lock is named: name one at least"),
            Refusal::TooMany(count) => write!(f, "{count} locks are more than {MOST_LOCKS}"),
            Refusal::NoSegment(name) => write!(
                f,
                "{name:?} names no lock: a name is one segment of a path, without a slash and without \
                 characters that ZooKeeper refuses, and neither empty nor `.` nor `..`"
            ),
            Refusal::Twice(name) => write!(
                f,
                "{name:?} is there twice, and a lock is not reentrant: name each lock once"
            ),
        }
    }
}

/// The order in which the locks of these names are taken: that of their bytes, so that it is the same for
/// everybody.
pub(crate) fn in_order(mut names: Vec<String>) -> Result<Vec<String>, Refusal> {
    if names.is_empty() {
        return Err(Refusal::Nothing);
    }
    if names.len() > MOST_LOCKS {
        return Err(Refusal::TooMany(names.len()));
    }
    if let Some(other) = names.iter().find(|name| !is_segment(name)) {
        return Err(Refusal::NoSegment(other.clone()));
    }
    names.sort_unstable();
    let twice = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next);
    match twice {
        Some((name, _)) => Err(Refusal::Twice(name.clone())),
        None => Ok(names),
    }
}

/// Whether a name is one segment of a path. ZooKeeper looks at UTF-16 units and refuses some of them.
pub(crate) fn is_segment(name: &str) -> bool {
    let is_refused = |character: char| {
        matches!(
            u32::from(character),
            0..=0x1F | 0x2F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..
        )
    };
    !matches!(name, "" | "." | "..") && !name.chars().any(is_refused)
}

/// What to do next in the line of one lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody is ahead: go on to the next lock. Nothing is held before it is so in all lines.
    GoOn,
    /// Somebody is ahead.
    WaitFor {
        /// The name of the next one ahead.
        predecessor: String,
        /// What its going means.
        then: Then,
    },
    /// The own place was deleted.
    Gone,
}

/// What the predecessor's going means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It was the first, and later contenders stand behind us: nobody is ahead any more.
    GoOn,
    /// It may have given up its wait while others are still ahead.
    LookAgain,
}

/// Decides for the contender `own`, given the line of one lock.
pub(crate) fn decide(own: &Contender, line: &impl Line) -> Step {
    match line.standing(own) {
        Standing::First => Step::GoOn,
        Standing::Behind { predecessor, ahead } => Step::WaitFor {
            predecessor: predecessor.name,
            then: if ahead == 1 { Then::GoOn } else { Then::LookAgain },
        },
        Standing::Gone => Step::Gone,
    }
}

#[cfg(test)]
mod tests {
    use wok_sdk::Naming;

    use super::*;

    const NAMING: Naming = Naming::curator("-lock-");

    #[track_caller]
    fn check_order(names: &[&str], expected: Result<&[&str], Refusal>) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(in_order(owned(names)), expected.map(owned), "{names:?}");
    }

    #[test]
    fn locks_are_taken_in_one_order_whatever_order_is_asked_for() {
        for names in [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"], ["c", "b", "a"]] {
            check_order(&names, Ok(&["a", "b", "c"]));
        }
        check_order(&["b"], Ok(&["b"]));
    }

    #[test]
    fn the_order_is_that_of_the_bytes() {
        check_order(
            &["b", "B", "a", "10", "9", "é", "z"],
            Ok(&["10", "9", "B", "a", "b", "z", "é"]),
        );
        check_order(&["ab", "a", "a-b", "a b"], Ok(&["a", "a b", "a-b", "ab"]));
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused_wherever_it_stands() {
        check_order(&["a", "a"], Err(Refusal::Twice("a".to_owned())));
        check_order(&["b", "a", "c", "b"], Err(Refusal::Twice("b".to_owned())));
    }

    #[test]
    fn none_and_too_many_are_refused() {
        check_order(&[], Err(Refusal::Nothing));
        let names = |count: usize| (0..count).map(|number| format!("{number:03}")).collect();
        assert_eq!(in_order(names(MOST_LOCKS)).map(|names: Vec<_>| names.len()), Ok(MOST_LOCKS));
        assert_eq!(in_order(names(MOST_LOCKS + 1)), Err(Refusal::TooMany(MOST_LOCKS + 1)));
    }

    #[test]
    fn what_is_no_segment_of_a_path_is_no_name() {
        for name in [
            "", ".", "..", "/", "a/b", "/a", "a/", "../a", "a\0", "a\n", "\u{7f}", "\u{e000}", "😀",
        ] {
            check_order(&["a", name], Err(Refusal::NoSegment(name.to_owned())));
        }
        for name in ["...", ".a", "a.", "a b", "zookeeper", "_c_x-lock-0000000001", "grün", "鎖"]
        {
            assert!(is_segment(name), "{name:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        for (refusal, part) in [
            (Refusal::Nothing, "no lock is named"),
            (Refusal::TooMany(101), "101 locks are more than 100"),
            (Refusal::NoSegment("a/b".to_owned()), "\"a/b\" names no lock"),
            (Refusal::Twice("a".to_owned()), "\"a\" is there twice"),
        ] {
            assert!(refusal.to_string().contains(part), "{refusal}");
        }
    }

    #[track_caller]
    fn check(own: &str, children: &[&str], expected: Step) {
        let own = NAMING.read(own.to_owned()).expect("the own name is a contender's");
        assert_eq!(decide(&own, &NAMING.line(children.iter().copied())), expected);
    }

    fn wait_for(predecessor: &str, then: Then) -> Step {
        Step::WaitFor { predecessor: predecessor.to_owned(), then }
    }

    #[test]
    fn the_lowest_counter_is_first_though_its_name_sorts_last() {
        check("a-lock-0000000000", &["a-lock-0000000000"], Step::GoOn);
        let line = ["a-lock-0000000002", "z-lock-0000000001", "b-lock-0000000003"];
        check("z-lock-0000000001", &line, Step::GoOn);
        check("a-lock-0000000002", &line, wait_for("z-lock-0000000001", Then::GoOn));
    }

    #[test]
    fn when_one_of_several_ahead_goes_the_line_is_read_again() {
        check(
            "a-lock-0000000003",
            &["c-lock-0000000001", "b-lock-0000000002", "a-lock-0000000003"],
            wait_for("b-lock-0000000002", Then::LookAgain),
        );
    }

    #[test]
    fn the_line_goes_on_where_the_counter_wraps() {
        let line = ["a-lock--2147483648", "b-lock-2147483647"];
        check("a-lock--2147483648", &line, wait_for("b-lock-2147483647", Then::GoOn));
        check("b-lock-2147483647", &line, Step::GoOn);
    }

    #[test]
    fn foreign_children_are_in_no_line() {
        let line = ["config", "b-lock-0000000002", "x__READ__0000000001", "-lock-1"];
        check("b-lock-0000000002", &line, Step::GoOn);
    }

    #[test]
    fn without_its_own_place_nobody_goes_on() {
        check("a-lock-0000000001", &[], Step::Gone);
        check("a-lock-0000000001", &["b-lock-0000000000"], Step::Gone);
        check("a-lock-0000000001", &["b-lock-0000000002"], Step::Gone);
    }
}
