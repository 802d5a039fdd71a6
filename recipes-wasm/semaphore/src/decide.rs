//! What a look at the queue means, and what a look at the leases means.

use wok_sdk::{Contender, Line, Standing};

/// Whose turn it is, for somebody who stands in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody is ahead: this place alone may take permits.
    Ours,
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
    /// It was the first, and later ones stand behind us: it is our turn.
    Ours,
    /// It may have given up its wait while others are still ahead.
    LookAgain,
}

/// Decides whose turn it is, for the place `own` in the queue.
pub(crate) fn turn(own: &Contender, queue: &impl Line) -> Turn {
    match queue.standing(own) {
        Standing::First => Turn::Ours,
        Standing::Behind { predecessor, ahead } => Turn::WaitFor {
            predecessor: predecessor.name,
            then: if ahead == 1 { Then::Ours } else { Then::LookAgain },
        },
        Standing::Gone => Turn::Gone,
    }
}

/// How many permits there are, by the data of the leases' directory: four bytes, big-endian, as Curator's
/// `SharedCount` writes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Nobody has said it yet.
    Nothing,
    /// So many.
    Permits(u32),
    /// The data are no number, or one that is out of bounds.
    Unreadable,
}

impl Stored {
    /// The largest number of permits. Four characters that somebody has typed in are a number as well:
    /// one that is higher than 500 million, and must not let everybody in.
    pub(crate) const LARGEST: u32 = 1_000_000;

    /// Reads the data.
    pub(crate) fn parse(data: &[u8]) -> Self {
        if data.is_empty() {
            return Stored::Nothing;
        }
        let number = <[u8; 4]>::try_from(data).map(u32::from_be_bytes);
        match number {
            Ok(permits) if permits <= Stored::LARGEST => Stored::Permits(permits),
            _ => Stored::Unreadable,
        }
    }

    /// The data that say so many, at most [`Stored::LARGEST`].
    pub(crate) fn data(permits: u32) -> [u8; 4] {
        permits.to_be_bytes()
    }
}

/// The leases' directory, as one read has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leases {
    /// How many permits there are.
    pub(crate) stored: Stored,
    /// The version of the data that say so.
    pub(crate) version: i32,
    /// How many leases there are, of all clients.
    pub(crate) taken: u32,
}

/// What a participant's settings say of the number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Nothing: the stored number counts.
    Open,
    /// So many, and nobody has compared that yet.
    Stated(u32),
    /// So many, and once that was the stored number. Since then the stored number counts.
    Agreed(u32),
}

impl Terms {
    /// How many the settings say.
    fn stated(self) -> Option<u32> {
        match self {
            Terms::Open => None,
            Terms::Stated(permits) | Terms::Agreed(permits) => Some(permits),
        }
    }

    /// The terms, now that they were compared with what is stored and nothing was refused.
    pub(crate) fn agreed(self) -> Self {
        self.stated().map_or(Terms::Open, Terms::Agreed)
    }
}

/// What the first in the queue does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There are enough: take them, as long as the data are of this version.
    Take {
        /// How many permits there are.
        permits: u32,
        /// The version of the data that say so.
        version: i32,
    },
    /// Too few are left.
    Wait,
    /// Nobody has said yet how many there are: say so, and look again.
    Store {
        /// So many.
        permits: u32,
        /// The version that the data have now; none if there is no directory.
        version: Option<i32>,
    },
    /// It would be wrong, or without end, to wait.
    Refuse(Refusal),
}

/// Why nothing is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Neither the settings nor the data say how many permits there are.
    Nothing,
    /// The data are no number.
    Unreadable,
    /// The settings say another number.
    Differs {
        /// That of the settings.
        stated: u32,
        /// That of the data.
        stored: u32,
    },
    /// There are fewer permits than were asked for.
    TooMany {
        /// So many there are.
        permits: u32,
    },
}

/// Decides for the first in the queue, who wants so many permits. `found` is none if there is no
/// directory of leases.
pub(crate) fn decide(wanted: u32, terms: Terms, found: Option<&Leases>) -> Step {
    let permits = match permits(terms, found) {
        Ok(permits) => permits,
        Err(refusal) => return Step::Refuse(refusal),
    };
    if wanted > permits {
        return Step::Refuse(Refusal::TooMany { permits });
    }
    match found {
        None => Step::Store { permits, version: None },
        Some(Leases { stored: Stored::Nothing, version, .. }) => {
            Step::Store { permits, version: Some(*version) }
        }
        Some(leases) if wanted <= permits.saturating_sub(leases.taken) => {
            Step::Take { permits, version: leases.version }
        }
        Some(_) => Step::Wait,
    }
}

/// How many permits there are: what is stored, and what the settings say where nothing is.
fn permits(terms: Terms, found: Option<&Leases>) -> Result<u32, Refusal> {
    match (found.map_or(Stored::Nothing, |leases| leases.stored), terms) {
        (Stored::Nothing, terms) => terms.stated().ok_or(Refusal::Nothing),
        (Stored::Unreadable, _) => Err(Refusal::Unreadable),
        (Stored::Permits(stored), Terms::Stated(stated)) if stated != stored => {
            Err(Refusal::Differs { stated, stored })
        }
        (Stored::Permits(stored), _) => Ok(stored),
    }
}

/// How many permits there are, and how many of them nobody holds. Settings that say another number than
/// is stored do not matter to somebody who only looks.
pub(crate) fn available(terms: Terms, found: Option<&Leases>) -> Result<(u32, u32), Refusal> {
    let permits = permits(terms.agreed(), found)?;
    let taken = found.map_or(0, |leases| leases.taken);
    Ok((permits, permits.saturating_sub(taken)))
}

#[cfg(test)]
mod tests {
    use wok_sdk::Naming;

    use super::*;

    const NAMING: Naming = Naming::curator("-lock-");

    #[track_caller]
    fn check_turn(own: &str, children: &[&str], expected: Turn) {
        let own = NAMING.read(own.to_owned()).expect("the own name is a contender's");
        assert_eq!(turn(&own, &NAMING.line(children.iter().copied())), expected);
    }

    fn wait_for(predecessor: &str, then: Then) -> Turn {
        Turn::WaitFor { predecessor: predecessor.to_owned(), then }
    }

    #[test]
    fn the_first_in_the_queue_has_its_turn_whatever_the_names_are() {
        check_turn("a-lock-0000000000", &["a-lock-0000000000"], Turn::Ours);
        let queue = ["a-lock-0000000002", "z-lock-0000000001"];
        check_turn("z-lock-0000000001", &queue, Turn::Ours);
        check_turn("a-lock-0000000002", &queue, wait_for("z-lock-0000000001", Then::Ours));
    }

    #[test]
    fn when_one_of_several_ahead_goes_the_queue_is_read_again() {
        check_turn(
            "a-lock-0000000003",
            &["c-lock-0000000001", "b-lock-0000000002", "a-lock-0000000003"],
            wait_for("b-lock-0000000002", Then::LookAgain),
        );
    }

    #[test]
    fn the_queue_goes_on_where_the_counter_wraps() {
        let queue = ["a-lock--2147483648", "b-lock-2147483647"];
        check_turn("a-lock--2147483648", &queue, wait_for("b-lock-2147483647", Then::Ours));
        check_turn("b-lock-2147483647", &queue, Turn::Ours);
    }

    #[test]
    fn foreign_children_stand_in_no_queue() {
        let queue = ["config", "b-lock-0000000002", "x-lease-0000000001", "-lock-1"];
        check_turn("b-lock-0000000002", &queue, Turn::Ours);
    }

    #[test]
    fn without_its_own_place_nobody_has_a_turn() {
        check_turn("a-lock-0000000001", &[], Turn::Gone);
        check_turn("a-lock-0000000001", &["b-lock-0000000002"], Turn::Gone);
    }

    fn leases(stored: u32, taken: u32) -> Leases {
        Leases { stored: Stored::Permits(stored), version: 7, taken }
    }

    #[track_caller]
    fn check(wanted: u32, leases: Leases, expected: Step) {
        assert_eq!(decide(wanted, Terms::Open, Some(&leases)), expected);
    }

    #[test]
    fn permits_are_taken_all_or_none() {
        check(1, leases(3, 0), Step::Take { permits: 3, version: 7 });
        check(1, leases(3, 2), Step::Take { permits: 3, version: 7 });
        check(1, leases(3, 3), Step::Wait);
        check(2, leases(3, 1), Step::Take { permits: 3, version: 7 });
        check(2, leases(3, 2), Step::Wait);
        check(3, leases(3, 1), Step::Wait);
    }

    #[test]
    fn more_leases_than_permits_let_nobody_in_and_nothing_overflows() {
        check(1, leases(3, 5), Step::Wait);
        check(1, leases(3, u32::MAX), Step::Wait);
        check(100, leases(Stored::LARGEST, Stored::LARGEST), Step::Wait);
    }

    #[test]
    fn more_permits_than_there_are_would_be_waited_for_without_end() {
        check(4, leases(3, 0), Step::Refuse(Refusal::TooMany { permits: 3 }));
        check(1, leases(0, 0), Step::Refuse(Refusal::TooMany { permits: 0 }));
        let refused = Step::Refuse(Refusal::TooMany { permits: 3 });
        assert_eq!(decide(4, Terms::Stated(3), None), refused);
    }

    #[test]
    fn the_first_one_says_how_many_there_are() {
        let stated = Terms::Stated(3);
        assert_eq!(decide(1, stated, None), Step::Store { permits: 3, version: None });
        let unsaid = Leases { stored: Stored::Nothing, version: 2, taken: 9 };
        let store = Step::Store { permits: 3, version: Some(2) };
        assert_eq!(decide(1, stated, Some(&unsaid)), store);
        assert_eq!(decide(1, Terms::Agreed(3), Some(&unsaid)), store);
        for found in [None, Some(&unsaid)] {
            assert_eq!(decide(1, Terms::Open, found), Step::Refuse(Refusal::Nothing));
        }
    }

    #[test]
    fn settings_that_differ_are_refused_once_and_the_stored_number_counts_after_that() {
        let found = leases(4, 3);
        let refused = Refusal::Differs { stated: 3, stored: 4 };
        assert_eq!(decide(1, Terms::Stated(3), Some(&found)), Step::Refuse(refused));
        for terms in [Terms::Open, Terms::Stated(4), Terms::Stated(3).agreed()] {
            let take = Step::Take { permits: 4, version: 7 };
            assert_eq!(decide(1, terms, Some(&found)), take, "{terms:?}");
        }
        assert_eq!(Terms::Open.agreed(), Terms::Open);
    }

    #[test]
    fn data_that_are_no_number_are_refused() {
        let found = Leases { stored: Stored::Unreadable, version: 0, taken: 0 };
        let refused = Step::Refuse(Refusal::Unreadable);
        assert_eq!(decide(1, Terms::Stated(3), Some(&found)), refused);
        assert_eq!(available(Terms::Open, Some(&found)), Err(Refusal::Unreadable));
    }

    #[test]
    fn the_data_are_those_of_curators_shared_count() {
        for (permits, data) in [(1, [0, 0, 0, 1]), (Stored::LARGEST, [0, 0x0f, 0x42, 0x40])] {
            assert_eq!(Stored::data(permits), data);
            assert_eq!(Stored::parse(&data), Stored::Permits(permits));
        }
        assert_eq!(Stored::parse(&[]), Stored::Nothing);
        assert_eq!(Stored::parse(&[0; 4]), Stored::Permits(0));
        // What people type, and what is below zero.
        for data in [&b"3"[..], b"1000", b"    ", &[0; 3], &[0; 5], b"10.1.2.3", &[0xff; 4]] {
            assert_eq!(Stored::parse(data), Stored::Unreadable, "{data:?}");
        }
    }

    #[test]
    fn what_is_available_is_told_whatever_the_settings_say() {
        assert_eq!(available(Terms::Stated(9), Some(&leases(3, 1))), Ok((3, 2)));
        assert_eq!(available(Terms::Open, Some(&leases(3, 5))), Ok((3, 0)));
        assert_eq!(available(Terms::Stated(9), None), Ok((9, 9)));
        assert_eq!(available(Terms::Open, None), Err(Refusal::Nothing));
    }
}
