//! What a look at the children of the seat's directory means. Pure, so that `cargo test` needs no
//! ZooKeeper.

use wok_sdk::{Contender, Line, Standing};

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody was first: the seat is ours.
    Sit,
    /// Somebody has it, or will have it before us.
    Leave,
    /// Our own znode was deleted.
    Gone,
}

/// Decides for the contender `own`, given the line there is.
pub(crate) fn decide(own: &Contender, line: &impl Line) -> Step {
    match line.standing(own) {
        Standing::First => Step::Sit,
        Standing::Behind { .. } => Step::Leave,
        Standing::Gone => Step::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NAMING;

    #[track_caller]
    fn check(own: &str, children: &[&str], expected: Step) {
        let own = NAMING.read(own.to_owned()).expect("the own name is a contender's");
        assert_eq!(decide(&own, &NAMING.line(children.iter().copied())), expected);
    }

    #[test]
    fn whoever_is_alone_sits() {
        check("a-seat-0000000000", &["a-seat-0000000000"], Step::Sit);
    }

    #[test]
    fn whoever_came_later_leaves_whatever_the_names_are() {
        check("a-seat-0000000002", &["a-seat-0000000002", "z-seat-0000000001"], Step::Leave);
        check("z-seat-0000000001", &["a-seat-0000000002", "z-seat-0000000001"], Step::Sit);
    }

    #[test]
    fn without_its_own_znode_nobody_sits() {
        check("a-seat-0000000001", &[], Step::Gone);
    }
}
