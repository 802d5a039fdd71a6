//! What a look at the election's directory means.

use wok_sdk::{Contender, Line, Standing};

/// What a candidate does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody volunteered earlier: it leads.
    Lead,
    /// Somebody did.
    Watch {
        /// The name of the one who volunteered last before: the largest lower counter.
        predecessor: String,
        /// What its going means.
        then: Then,
    },
    /// The own candidate was deleted.
    Gone,
}

/// What the predecessor's going means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It led, and later candidates stand behind us: we lead.
    Lead,
    /// It may have been a candidate that withdrew: look who is ahead now.
    LookAgain,
}

/// Decides for the candidate `own`, given the line there is.
pub(crate) fn decide(own: &Contender, line: &impl Line) -> Step {
    match line.standing(own) {
        Standing::First => Step::Lead,
        Standing::Behind { predecessor, ahead } => Step::Watch {
            predecessor: predecessor.name,
            then: if ahead == 1 { Then::Lead } else { Then::LookAgain },
        },
        Standing::Gone => Step::Gone,
    }
}

/// What an observer was told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The highest term so far.
    term: Option<u64>,
    /// Whether that term was told to be over.
    is_over: bool,
}

/// What an observer is told next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing: it knows, or what was read is older than what it knows.
    None,
    /// There is a new leader.
    Leader,
    /// There is no leader.
    Vacant,
}

impl Told {
    /// Compares with what was read now, the leader's term (its `czxid`) or that there is none. Terms
    /// only grow, so an observer never goes back to one that is over.
    pub(crate) fn hear(&mut self, term: Option<u64>) -> News {
        match term {
            Some(term) if self.term.is_none_or(|told| term > told) => {
                *self = Told { term: Some(term), is_over: false };
                News::Leader
            }
            None if self.term.is_some() && !self.is_over => {
                self.is_over = true;
                News::Vacant
            }
            _ => News::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use wok_sdk::Naming;

    use super::*;

    const NAMING: Naming = Naming::curator("-latch-");

    #[track_caller]
    fn check(own: &str, children: &[&str], expected: Step) {
        let own = NAMING.read(own.to_owned()).expect("the own name is a candidate's");
        assert_eq!(decide(&own, &NAMING.line(children.iter().copied())), expected);
    }

    fn watch(predecessor: &str, then: Then) -> Step {
        Step::Watch { predecessor: predecessor.to_owned(), then }
    }

    #[test]
    fn the_lowest_counter_leads() {
        check("z-latch-0000000001", &["a-latch-0000000002", "z-latch-0000000001"], Step::Lead);
    }

    #[test]
    fn the_largest_lower_counter_is_watched_and_not_the_leader() {
        check(
            "a-latch-0000000005",
            &[
                "b-latch-0000000001",
                "c-latch-0000000004",
                "d-latch-0000000003",
                "a-latch-0000000005",
            ],
            watch("c-latch-0000000004", Then::LookAgain),
        );
    }

    #[test]
    fn the_second_leads_when_the_leader_goes() {
        check(
            "a-latch-0000000002",
            &["b-latch-0000000001", "a-latch-0000000002"],
            watch("b-latch-0000000001", Then::Lead),
        );
    }

    #[test]
    fn the_line_goes_on_where_the_counter_wraps() {
        check(
            "a-latch--2147483648",
            &["a-latch--2147483648", "b-latch-2147483647"],
            watch("b-latch-2147483647", Then::Lead),
        );
    }

    #[test]
    fn the_announcement_and_other_children_are_no_candidates() {
        check(
            "a-latch-0000000002",
            &["announcement", "x-lock-0000000001", "a-latch-0000000002"],
            Step::Lead,
        );
    }

    #[test]
    fn without_its_own_znode_nobody_leads() {
        check("a-latch-0000000001", &["announcement"], Step::Gone);
        check("a-latch-0000000001", &["b-latch-0000000000"], Step::Gone);
    }

    #[test]
    fn an_observer_is_told_each_term_once_and_never_goes_back() {
        let mut told = Told::default();
        let heard = [Some(5), Some(5), Some(9), Some(5), Some(9), None, None, Some(9), Some(12)];
        let news = heard.map(|term| told.hear(term));
        assert_eq!(
            news,
            [
                News::Leader,
                News::None,
                News::Leader,
                News::None,
                News::None,
                News::Vacant,
                News::None,
                News::None,
                News::Leader
            ]
        );
    }

    #[test]
    fn an_election_without_a_leader_from_the_start_is_no_news() {
        assert_eq!(Told::default().hear(None), News::None);
    }
}
