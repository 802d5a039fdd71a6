//! What a look at the children of the lock's directory means.

use wok_sdk::{Contender, Gone, Line, Naming, Standing};

/// How readers and writers of one line are named. Each naming reads both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) read: Naming,
    pub(crate) write: Naming,
}

impl Names {
    /// As Curator's `InterProcessReadWriteLock` names them, behind the hyphen of its protection.
    pub(crate) const CURATOR: Names = Names {
        read: Naming::curator("-__READ__").beside(&["-__WRIT__"]),
        write: Naming::curator("-__WRIT__").beside(&["-__READ__"]),
    };

    /// As kazoo's `ReadLock` and `WriteLock` name them.
    pub(crate) const KAZOO: Names = Names {
        read: Naming::kazoo("__rlock__").beside(&["__lock__"]),
        write: Naming::kazoo("__lock__").beside(&["__rlock__"]),
    };

    /// Whether the contender is a writer.
    pub(crate) fn writes(&self, contender: &Contender) -> bool {
        self.write.is_own(contender)
    }
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody is in the way: the lock is ours.
    Hold,
    /// Somebody is in the way.
    WaitFor {
        /// The name of the next one ahead that is.
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
    /// It was the only one in the way, and later contenders stand behind us: the lock is ours.
    Hold,
    /// It is a writer, with others before it. If it had the lock, they have gone before, and the lock is
    /// ours; it may also have given up its wait.
    HoldAfterAClaim,
    /// Others may be ahead still, or in its place.
    LookAgain,
}

impl Then {
    /// Whether the lock is ours once the predecessor has gone that way.
    pub(crate) fn holds_after(self, gone: Gone) -> bool {
        match self {
            Then::Hold => true,
            Then::HoldAfterAClaim => gone == Gone::AsClaim,
            Then::LookAgain => false,
        }
    }
}

/// Decides for the contender `own`, given the line there is.
pub(crate) fn decide(names: &Names, own: &Contender, line: &impl Line) -> Step {
    if names.writes(own) {
        decide_to_write(names, own, line)
    } else {
        decide_to_read(names, own, line)
    }
}

/// A reader looks at the writers ahead, and at nobody else.
fn decide_to_read(names: &Names, own: &Contender, line: &impl Line) -> Step {
    match line.standing_among(own, names.write) {
        Standing::First => Step::Hold,
        Standing::Behind { predecessor, ahead } => {
            // A writer that goes by a downgrade has gone as well: a reader is not in our way.
            let then = if ahead == 1 { Then::Hold } else { Then::HoldAfterAClaim };
            Step::WaitFor { predecessor: predecessor.name, then }
        }
        Standing::Gone => Step::Gone,
    }
}

/// A writer looks at everybody ahead.
fn decide_to_write(names: &Names, own: &Contender, line: &impl Line) -> Step {
    match line.standing(own) {
        Standing::First => Step::Hold,
        Standing::Behind { predecessor, ahead } => {
            // Several readers hold at once, so one that had claimed says nothing of those before it;
            // and a writer that goes may have become a reader, which stands in its place.
            let is_the_only_reader = ahead == 1 && !names.writes(&predecessor);
            let then = if is_the_only_reader { Then::Hold } else { Then::LookAgain };
            Step::WaitFor { predecessor: predecessor.name, then }
        }
        Standing::Gone => Step::Gone,
    }
}

/// Who of a whole line, which is in order, holds the lock.
pub(crate) fn holders(names: &Names, line: &[Contender]) -> Vec<bool> {
    let mut is_behind_a_writer = false;
    let in_order = line.iter().enumerate().map(|(ahead, contender)| {
        let writes = names.writes(contender);
        let holds = if writes { ahead == 0 } else { !is_behind_a_writer };
        is_behind_a_writer |= writes;
        holds
    });
    in_order.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(names: &Names, children: &[&str]) -> Vec<Contender> {
        names.read.line(children.iter().copied())
    }

    #[track_caller]
    fn check_by(names: &Names, own: &str, children: &[&str], expected: Step) {
        let own = names.read.read(own.to_owned()).expect("the own name is a contender's");
        assert_eq!(decide(names, &own, &line(names, children)), expected);
    }

    #[track_caller]
    fn check(own: &str, children: &[&str], expected: Step) {
        check_by(&Names::CURATOR, own, children, expected);
    }

    fn wait_for(predecessor: &str, then: Then) -> Step {
        Step::WaitFor { predecessor: predecessor.to_owned(), then }
    }

    #[test]
    fn whoever_is_alone_holds() {
        check("a-__READ__0000000000", &["a-__READ__0000000000"], Step::Hold);
        check("a-__WRIT__0000000000", &["a-__WRIT__0000000000"], Step::Hold);
    }

    #[test]
    fn readers_are_admitted_together() {
        let line = ["c-__READ__0000000003", "a-__READ__0000000001", "b-__READ__0000000002"];
        for own in line {
            check(own, &line, Step::Hold);
        }
    }

    #[test]
    fn a_reader_does_not_wait_for_a_younger_writer() {
        let line = ["a-__READ__0000000001", "b-__WRIT__0000000002"];
        check("a-__READ__0000000001", &line, Step::Hold);
    }

    #[test]
    fn a_reader_does_not_overtake_a_writer_that_waits() {
        let line = ["a-__READ__0000000001", "b-__WRIT__0000000002", "c-__READ__0000000003"];
        check("c-__READ__0000000003", &line, wait_for("b-__WRIT__0000000002", Then::Hold));
    }

    #[test]
    fn a_reader_watches_the_nearest_writer_before_it() {
        let line = [
            "d-__WRIT__0000000005",
            "a-__WRIT__0000000001",
            "b-__WRIT__0000000002",
            "r-__READ__0000000003",
            "c-__READ__0000000004",
        ];
        let then = Then::HoldAfterAClaim;
        check("c-__READ__0000000004", &line, wait_for("b-__WRIT__0000000002", then));
    }

    #[test]
    fn a_writer_waits_for_the_nearest_whatever_it_is() {
        let line = ["a-__WRIT__0000000001", "b-__READ__0000000002", "c-__WRIT__0000000003"];
        check("c-__WRIT__0000000003", &line, wait_for("b-__READ__0000000002", Then::LookAgain));
    }

    #[test]
    fn when_the_only_reader_ahead_goes_the_lock_is_a_writers() {
        let line = ["b-__READ__0000000002", "c-__WRIT__0000000003"];
        check("c-__WRIT__0000000003", &line, wait_for("b-__READ__0000000002", Then::Hold));
    }

    #[test]
    fn when_the_only_writer_ahead_goes_a_writer_looks_for_a_reader_in_its_place() {
        let line = ["b-__WRIT__0000000002", "c-__WRIT__0000000003"];
        check("c-__WRIT__0000000003", &line, wait_for("b-__WRIT__0000000002", Then::LookAgain));
        let downgraded = ["b-__READ__0000000002", "c-__WRIT__0000000003"];
        check("c-__WRIT__0000000003", &downgraded, wait_for("b-__READ__0000000002", Then::Hold));
    }

    #[test]
    fn a_claim_that_goes_says_that_no_writer_is_before_it_and_nothing_of_readers() {
        for (then, as_claim, otherwise) in [
            (Then::Hold, true, true),
            (Then::HoldAfterAClaim, true, false),
            (Then::LookAgain, false, false),
        ] {
            assert_eq!(then.holds_after(Gone::AsClaim), as_claim, "{then:?}");
            assert_eq!(then.holds_after(Gone::Otherwise), otherwise, "{then:?}");
        }
    }

    #[test]
    fn a_writer_whose_curator_neighbour_reads_in_its_own_place_waits_for_it() {
        // Curator has both znodes of one counter for a while.
        let line = ["x-__WRIT__0000000001", "y-__READ__0000000001", "c-__WRIT__0000000002"];
        check("c-__WRIT__0000000002", &line, wait_for("y-__READ__0000000001", Then::LookAgain));
    }

    #[test]
    fn the_line_goes_on_where_the_counter_wraps() {
        let line = ["a-__READ__-2147483648", "b-__WRIT__2147483647", "c-__WRIT__-2147483647"];
        check("a-__READ__-2147483648", &line, wait_for("b-__WRIT__2147483647", Then::Hold));
        check("b-__WRIT__2147483647", &line, Step::Hold);
        check("c-__WRIT__-2147483647", &line, wait_for("a-__READ__-2147483648", Then::LookAgain));
    }

    #[test]
    fn kazoos_names_are_told_apart() {
        let line = ["b__lock__0000000001", "a__rlock__0000000002", "c__lock__0000000003"];
        let check = |own: &str, expected: Step| check_by(&Names::KAZOO, own, &line, expected);
        check("b__lock__0000000001", Step::Hold);
        check("a__rlock__0000000002", wait_for("b__lock__0000000001", Then::Hold));
        check("c__lock__0000000003", wait_for("a__rlock__0000000002", Then::LookAgain));
    }

    #[test]
    fn foreign_children_are_in_no_line() {
        let line = ["config", "b-__WRIT__0000000002", "x-lock-0000000001", "-__READ__1"];
        check("b-__WRIT__0000000002", &line, Step::Hold);
    }

    #[test]
    fn without_its_own_znode_nobody_holds() {
        for own in ["a-__READ__0000000001", "a-__WRIT__0000000001"] {
            check(own, &[], Step::Gone);
            check(own, &["b-__WRIT__0000000000"], Step::Gone);
            check(own, &["b-__READ__0000000002"], Step::Gone);
        }
    }

    #[test]
    fn the_holders_are_the_first_writer_or_the_readers_before_any() {
        let check = |children: &[&str], expected: &[bool]| {
            let names = &Names::CURATOR;
            assert_eq!(holders(names, &line(names, children)), expected, "{children:?}");
        };
        let (r1, r2, r4) = ("a-__READ__0000000001", "b-__READ__0000000002", "d-__READ__0000000004");
        let (w0, w3) = ("z-__WRIT__0000000000", "c-__WRIT__0000000003");
        check(&[], &[]);
        check(&[r1, r2, w3, r4], &[true, true, false, false]);
        check(&[w0, r1, w3], &[true, false, false]);
    }
}
