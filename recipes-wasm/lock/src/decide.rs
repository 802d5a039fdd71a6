//! What a look at the children of the lock's directory means.

use wok_sdk::{Contender, Line, Standing};

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody is ahead: the lock is ours.
    Hold,
    /// Somebody is ahead.
    WaitFor {
        /// The name of the next one ahead.
        predecessor: String,
        /// What its going means.
        then: Then,
    },
    /// Our own contender was deleted: we are in no line any more.
    Gone,
}

/// What the predecessor's going means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It was the first, and later contenders stand behind us: the lock is ours.
    Hold,
    /// It may have given up its wait while others are still ahead.
    LookAgain,
}

/// Decides for the contender `own`, given the line there is.
pub(crate) fn decide(own: &Contender, line: &impl Line) -> Step {
    match line.standing(own) {
        Standing::First => Step::Hold,
        Standing::Behind { predecessor, ahead } => Step::WaitFor {
            predecessor: predecessor.name,
            then: if ahead == 1 { Then::Hold } else { Then::LookAgain },
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
    fn check(own: &str, children: &[&str], expected: Step) {
        let own = NAMING.read(own.to_owned()).expect("the own name is a contender's");
        assert_eq!(decide(&own, &NAMING.line(children.iter().copied())), expected);
    }

    fn wait_for(predecessor: &str, then: Then) -> Step {
        Step::WaitFor { predecessor: predecessor.to_owned(), then }
    }

    #[test]
    fn whoever_is_alone_holds() {
        check("a-lock-0000000000", &["a-lock-0000000000"], Step::Hold);
    }

    #[test]
    fn the_lowest_counter_holds_though_its_name_sorts_last() {
        check("z-lock-0000000001", &["a-lock-0000000002", "z-lock-0000000001"], Step::Hold);
    }

    #[test]
    fn when_the_only_one_ahead_goes_the_lock_is_ours() {
        check(
            "a-lock-0000000002",
            &["a-lock-0000000002", "z-lock-0000000001", "b-lock-0000000003"],
            wait_for("z-lock-0000000001", Then::Hold),
        );
    }

    #[test]
    fn when_one_of_several_ahead_goes_the_list_is_read_again() {
        check(
            "a-lock-0000000003",
            &["c-lock-0000000001", "b-lock-0000000002", "a-lock-0000000003"],
            wait_for("b-lock-0000000002", Then::LookAgain),
        );
    }

    #[test]
    fn the_line_goes_on_where_the_counter_wraps() {
        check(
            "a-lock--2147483648",
            &["a-lock--2147483648", "b-lock-2147483647"],
            wait_for("b-lock-2147483647", Then::Hold),
        );
        check("b-lock-2147483647", &["a-lock--2147483648", "b-lock-2147483647"], Step::Hold);
    }

    #[test]
    fn foreign_children_are_in_no_line() {
        check(
            "b-lock-0000000002",
            &["config", "b-lock-0000000002", "x__READ__0000000001", "-lock-1"],
            Step::Hold,
        );
    }

    #[test]
    fn without_its_own_znode_nobody_holds() {
        check("a-lock-0000000001", &[], Step::Gone);
        check("a-lock-0000000001", &["b-lock-0000000000"], Step::Gone);
        check("a-lock-0000000001", &["b-lock-0000000002"], Step::Gone);
    }
}
