//! What the tests of a judge assert: that the judge accepts what is good, finds what is broken and
//! nothing else, and copes with a history of which a part is missing.
//!
//! ```
//! use wok_judge::history::{Entry, Told, What};
//! use wok_judge::proofs::{
//!     assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
//! };
//! use wok_judge::stories::{Story, good_lock};
//! use wok_judge::{Judge, Violation};
//!
//! # struct NothingIsLost;
//! # impl Judge for NothingIsLost {
//! #     const INVARIANTS: &'static [(&'static str, &'static str)] =
//! #         &[("N1", "nobody loses what it holds")];
//! #     fn begin(_config: &str) -> Result<Self, String> {
//! #         Ok(NothingIsLost)
//! #     }
//! #     fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
//! #         let is_loss = |entry: &Entry| {
//! #             matches!(entry.what, What::Told { notice: Told::Lost { .. }, .. })
//! #         };
//! #         let losses = history.iter().enumerate().filter(|(_, entry)| is_loss(entry));
//! #         losses.map(|(at, _)| Violation::new("N1", at, "it is lost".to_owned())).collect()
//! #     }
//! # }
//! fn verdict(history: &[Entry]) -> Vec<Violation> {
//!     NothingIsLost.verdict(history)
//! }
//!
//! let mut story = Story::new();
//! story.acquire(1, 0).win(1);
//! assert_good_wherever_cut_off(&story, verdict);
//! assert_judged_without_beginning(&good_lock(), verdict);
//!
//! story.lose(1);
//! assert_breaks(&verdict(&story.entries), &["N1"]);
//! ```

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Violation;
use crate::history::Entry;
use crate::stories::Story;

/// Asserts that a verdict names these invariants and no others, each at least once. A verdict that
/// names none is that of a good history.
///
/// # Panics
/// At the caller's line, if the verdict names others, or does not tell its violations in the order in
/// which the promises were broken, as [`first_of_each`](crate::first_of_each) does. The message shows
/// all violations.
#[track_caller]
pub fn assert_breaks(verdict: &[Violation], invariants: &[&str]) {
    let broken: BTreeSet<_> = verdict.iter().map(|violation| &*violation.invariant).collect();
    assert_eq!(broken, invariants.iter().copied().collect(), "{verdict:#?}");
    let is_in_order = verdict.is_sorted_by_key(|violation| violation.at);
    assert!(is_in_order, "they are not told in the order of `at`: {verdict:#?}");
}

/// Asserts that the judge finds nothing in the story, nor in any beginning of it: a history may be cut
/// off anywhere, and what it does not show is not held against it.
///
/// # Panics
/// At the caller's line, if the judge finds something. The message says in how many of the story's
/// entries, the shortest such beginning first.
#[track_caller]
pub fn assert_good_wherever_cut_off(story: &Story, verdict: impl Fn(&[Entry]) -> Vec<Violation>) {
    for length in 0..=story.entries.len() {
        let (shown, _) = story.entries.split_at(length);
        assert_eq!(verdict(shown), [], "the first {length} entries");
    }
}

/// Asserts that the judge comes to a verdict, whatever it is, however much of the story's beginning is
/// missing: calls that nobody made are answered then, and znodes go that never came.
///
/// # Panics
/// At the caller's line, if the judge panics. The message says without how many of the story's entries;
/// that of the judge's own panic is above it.
#[track_caller]
pub fn assert_judged_without_beginning(
    story: &Story,
    verdict: impl Fn(&[Entry]) -> Vec<Violation>,
) {
    for length in 0..=story.entries.len() {
        let (_, shown) = story.entries.split_at(length);
        // The verdict is a function of what is shown, so that a panic leaves nothing half done.
        let judged = catch_unwind(AssertUnwindSafe(|| verdict(shown)));
        assert!(judged.is_ok(), "the judge panics without the first {length} entries");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stories::good_lock;

    fn violations(told: &[(&'static str, usize)]) -> Vec<Violation> {
        told.iter().map(|&(id, at)| Violation::new(id, at, "it was broken".to_owned())).collect()
    }

    #[track_caller]
    fn check_fails(assertion: impl FnOnce()) {
        assert!(catch_unwind(AssertUnwindSafe(assertion)).is_err(), "it holds");
    }

    #[test]
    fn a_verdict_breaks_all_that_is_expected_and_nothing_else() {
        assert_breaks(&violations(&[("A", 1), ("B", 2), ("A", 2)]), &["B", "A"]);
        assert_breaks(&[], &[]);
        for others in [&[][..], &["B"], &["A", "B"]] {
            check_fails(|| assert_breaks(&violations(&[("A", 1)]), others));
        }
    }

    #[test]
    fn a_verdict_is_told_in_the_order_of_time() {
        check_fails(|| assert_breaks(&violations(&[("A", 2), ("A", 1)]), &["A"]));
    }

    #[test]
    fn a_story_is_good_only_if_every_beginning_is() {
        let story = good_lock();
        let whole = story.entries.len();
        assert_good_wherever_cut_off(&story, |_| Vec::new());
        for bad in [0, 7, whole] {
            let judge = |history: &[Entry]| match history.len() == bad {
                true => violations(&[("A", 0)]),
                false => Vec::new(),
            };
            check_fails(|| assert_good_wherever_cut_off(&story, judge));
        }
    }

    #[test]
    fn a_judge_has_to_cope_without_any_beginning() {
        let story = good_lock();
        let whole = story.entries.len();
        assert_judged_without_beginning(&story, |_| violations(&[("A", 0)]));
        for confusing in [0, 7, whole] {
            let judge = |history: &[Entry]| {
                assert_ne!(history.len(), confusing, "the judge is confused");
                Vec::new()
            };
            check_fails(|| assert_judged_without_beginning(&story, judge));
        }
    }
}
