//! What a look at a generation means.

/// What a generation's data say: for how many it is, and once it is open, who is inside.
///
/// As text: the size, and a line for each name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// How many make the round.
    pub(crate) size: u32,
    /// The names of the members' znodes; none before it is open.
    pub(crate) inside: Vec<String>,
}

impl Round {
    /// A round that nobody has entered yet.
    pub(crate) fn forming(size: u32) -> Self {
        Round { size, inside: Vec::new() }
    }

    /// Reads a generation's data; none if they are no such thing.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(data).ok()?.lines();
        let size = lines.next()?.parse().ok()?;
        Some(Round { size, inside: lines.map(str::to_owned).collect() })
    }

    /// What is written into a generation.
    pub(crate) fn data(&self) -> Vec<u8> {
        let mut text = self.size.to_string();
        for name in &self.inside {
            text.push('\n');
            text.push_str(name);
        }
        text.into_bytes()
    }

    /// Whether this member is inside.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.inside.iter().any(|it| it == name)
    }
}

/// A generation as its znode was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// None if the data are none of this recipe's.
    pub(crate) round: Option<Round>,
    /// Zero while it forms. Its data are set once, when it opens.
    pub(crate) version: i32,
    /// How many children it has.
    pub(crate) children: u32,
}

impl Generation {
    /// Whether it has opened: nobody enters it any more.
    pub(crate) fn is_open(&self) -> bool {
        self.version != 0
    }
}

/// What an arriving member does about a generation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It waits there with others.
    Join,
    /// It completes the number, unless some of the children are no members.
    Complete,
    /// The round is over, full, or nobody's: it begins the next one.
    Succeed {
        /// What becomes of this one.
        old: Old,
    },
    /// Others wait there for a round of another size.
    Refuse {
        /// For how many; none if the data are none of this recipe's.
        size: Option<u32>,
    },
}

/// What becomes of a generation that has a successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// There is nothing of it.
    Gone,
    /// Nobody is in it, and nobody may come in: it is deleted in the same step.
    Bury,
    /// Its members are still inside.
    Keep,
    /// It forms for another size, and nobody waits in it. Something of somebody else's keeps it from being
    /// deleted, so it is opened in the same step, for nobody: who was about to wait in it goes on.
    Close,
}

/// Decides for somebody who wants to enter with `size`, given the generation it has found.
pub(crate) fn arrive(found: Option<&Generation>, size: u32) -> Arrival {
    let Some(found) = found else {
        return Arrival::Succeed { old: Old::Gone };
    };
    let old = if found.children == 0 { Old::Bury } else { Old::Keep };
    if found.is_open() {
        return Arrival::Succeed { old };
    }
    let there = found.round.as_ref().map(|round| round.size);
    if there != Some(size) {
        // A size that nobody waits for binds nobody.
        return match old {
            Old::Keep => Arrival::Refuse { size: there },
            _ => Arrival::Succeed { old },
        };
    }
    if found.children.saturating_add(1) >= size { Arrival::Complete } else { Arrival::Join }
}

/// Whether a generation can open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Some are missing.
    Few,
    /// They make a round.
    Enough,
    /// They are more than a round: those who came first make it.
    TooMany,
}

/// Counts the members of a generation that forms.
pub(crate) fn count(members: &[String], size: u32) -> Count {
    let there = u32::try_from(members.len()).unwrap_or(u32::MAX);
    match there.cmp(&size) {
        std::cmp::Ordering::Less => Count::Few,
        std::cmp::Ordering::Equal => Count::Enough,
        std::cmp::Ordering::Greater => Count::TooMany,
    }
}

/// Those who came first, given the `czxid` of each.
pub(crate) fn earliest(mut members: Vec<(u64, String)>, size: u32) -> Vec<String> {
    members.sort_unstable();
    members.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    members.into_iter().map(|(_, name)| name).collect()
}

/// What a member does that has finished. The numbers are the steps of the published text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Departure<'a> {
    /// Nobody is left: all have finished (2).
    Over,
    /// It is the only one left: it deletes its znode, and all have finished (3).
    Last,
    /// It is the lowest. Its znode stays as the flag that all others watch, until the highest of them
    /// and then all others are gone (4).
    StayAndWaitFor(&'a str),
    /// It deletes its znode, if that is still there, and waits for the lowest (5).
    GoAndWaitFor(&'a str),
}

/// Decides for the member `own`, given those of its round that are left. Any fixed order of the names
/// does: all members have the same.
pub(crate) fn depart<'a>(own: &str, left: impl IntoIterator<Item = &'a str>) -> Departure<'a> {
    let (mut lowest, mut highest, mut is_there) = (None, None, false);
    for name in left {
        if name == own {
            is_there = true;
            continue;
        }
        lowest = lowest.into_iter().chain([name]).min();
        highest = highest.into_iter().chain([name]).max();
    }
    match (lowest, highest) {
        (Some(_), Some(highest)) if is_there && lowest > Some(own) => {
            Departure::StayAndWaitFor(highest)
        }
        (Some(lowest), _) => Departure::GoAndWaitFor(lowest),
        _ if is_there => Departure::Last,
        _ => Departure::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forming(size: u32, children: u32) -> Generation {
        Generation { round: Some(Round::forming(size)), version: 0, children }
    }

    #[track_caller]
    fn check_arrival(found: &Generation, expected: Arrival) {
        assert_eq!(arrive(Some(found), 3), expected);
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_generation_is_read_as_it_was_written() {
        for round in
            [Round::forming(3), Round { size: 2, inside: names(&["member-b", "member-a"]) }]
        {
            assert_eq!(Round::parse(&round.data()), Some(round));
        }
        for data in [&b""[..], b"three", b"-1", b"3 4", b"\xff"] {
            assert_eq!(Round::parse(data), None, "{data:?}");
        }
    }

    #[test]
    fn those_who_come_early_wait_and_the_one_who_is_missing_completes() {
        check_arrival(&forming(3, 0), Arrival::Join);
        check_arrival(&forming(3, 1), Arrival::Join);
        check_arrival(&forming(3, 2), Arrival::Complete);
        check_arrival(&forming(3, 3), Arrival::Complete);
        assert_eq!(arrive(Some(&forming(1, 0)), 1), Arrival::Complete);
    }

    #[test]
    fn an_open_generation_admits_nobody_and_is_buried_when_it_is_empty() {
        let open = |children| Generation { version: 1, ..forming(3, children) };
        check_arrival(&open(2), Arrival::Succeed { old: Old::Keep });
        check_arrival(&open(0), Arrival::Succeed { old: Old::Bury });
        check_arrival(&Generation { version: 7, ..open(1) }, Arrival::Succeed { old: Old::Keep });
        assert_eq!(arrive(None, 3), Arrival::Succeed { old: Old::Gone });
    }

    #[test]
    fn another_size_is_refused_as_long_as_somebody_waits_for_it() {
        check_arrival(&forming(4, 1), Arrival::Refuse { size: Some(4) });
        check_arrival(&forming(4, 0), Arrival::Succeed { old: Old::Bury });
        let foreign = Generation { round: None, ..forming(3, 1) };
        check_arrival(&foreign, Arrival::Refuse { size: None });
    }

    #[test]
    fn a_generation_opens_with_as_many_as_make_a_round_and_not_with_fewer() {
        for (members, expected) in [
            (&["a", "b"][..], Count::Few),
            (&["a", "b", "c"], Count::Enough),
            (&["a", "b", "c", "d"], Count::TooMany),
            (&[], Count::Few),
        ] {
            assert_eq!(count(&names(members), 3), expected, "{members:?}");
        }
    }

    #[test]
    fn of_too_many_those_who_came_first_make_the_round() {
        let came = [(9, "a"), (7, "d"), (8, "b"), (12, "c")];
        let came = came.map(|(czxid, name)| (czxid, name.to_owned())).to_vec();
        assert_eq!(earliest(came, 2), names(&["d", "b"]));
    }

    #[test]
    fn the_lowest_stays_until_all_others_are_gone() {
        assert_eq!(depart("a", ["b", "a", "c"]), Departure::StayAndWaitFor("c"));
        assert_eq!(depart("a", ["b", "a"]), Departure::StayAndWaitFor("b"));
        assert_eq!(depart("a", ["a"]), Departure::Last);
    }

    #[test]
    fn all_others_go_and_wait_for_the_lowest() {
        assert_eq!(depart("b", ["b", "a", "c"]), Departure::GoAndWaitFor("a"));
        assert_eq!(depart("c", ["b", "a"]), Departure::GoAndWaitFor("a"));
        // It has deleted its znode, and the member that was the lowest has died.
        assert_eq!(depart("a", ["b", "c"]), Departure::GoAndWaitFor("b"));
    }

    #[test]
    fn when_nobody_is_left_all_have_finished() {
        assert_eq!(depart("a", []), Departure::Over);
    }
}
