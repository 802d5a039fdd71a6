//! Judges of a recorded run: which of the promises did it break?
//!
//! Each judge is one pass over the history, or over what `Truth` and `People` took down in
//! theirs, and judges from outside: by what the ensemble committed and what people were told, never
//! by what a component thought. A history may be cut off anywhere; what it does not show is not held
//! against it.
//!
//! | id | judge | broken if |
//! |---|---|---|
//! | M1 | `grants` | a grant's fence is not the `czxid` of the participant's own contender, or that was first in line only before it was asked for |
//! | M2 | `exclusion` | the ensemble's log has two owners at once: one becomes first while the one before is still there |
//! | M3 | `exclusion` | the guarded resource takes a lower fence after a higher one, refuses one that is not lower, or is shown one that was never granted |
//! | M4 | `grants` | fences do not strictly grow from owner to owner |
//! | M5 | `beliefs` | somebody believes to hold what has gone to the next, but for a pause and news under way |
//! | M6 | `grants` | somebody is granted before another who came earlier and still stands in line |
//! | M7 | `leftovers` | a contender outlives its request, or one request has two |
//! | M8 | `linear` | what callers saw is no mutex with growing fences, whatever the order in which it happened |
//! | Q1 | `quorum` | somebody is granted a claim, or acts on one, though the newest txn of its session is long ago |
//! | V1 | `consent` | an ephemeral znode is deleted by another session than its own |
//! | W1 | `waiting` | a waiter whose turn it is, or any call at all, stays blocked; or one is turned away without a fault |
//! | W2 | `grants` | a wait succeeds though its condition never held, or is answered with a fence that is not held |
//! | H1 | `herd`, `polling` | one deletion wakes more than one contender; or one that waits asks the ensemble again and again |
//! | E1 | as M1 to M4 | two lead, or terms do not grow |
//! | E2 | as M5 | a leader is not told that it leads no more before another does |
//! | E3 | `waiting`, `beliefs` | nobody takes the lead that is free, or one whose znode is gone keeps it |
//! | E4 | `observers` | an observer is told of a leader that never was, or goes back to an earlier one |
//! | X1 | `isolation` | a component reaches outside its mount |
//! | X2 | `leftovers` | a participant acts after its end, or leaves a watch behind |
//! | L1 | `limits` | a component traps, uses up what it may, or does not end when it is cancelled |
//! | S1 | `watches` | a watch event has no cause, comes twice, or comes in the wrong order |

mod beliefs;
mod consent;
mod counter;
mod exclusion;
mod faults;
mod grants;
mod herd;
mod isolation;
mod leftovers;
mod limits;
mod linear;
mod observers;
mod people;
mod polling;
mod quorum;
mod truth;
mod waiting;
mod watches;

#[cfg(test)]
mod random;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::simulation::history::{Entry, ParticipantId};
use faults::Faults;
use people::People;
use truth::Truth;

/// Violations of one invariant that are told: the first says what is wrong, the rest mostly follow.
const MOST_OF_A_KIND: usize = 3;

/// What a recipe promises, by the name of its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Mutual exclusion, first come first served.
    Lock,
    /// One leader at a time.
    LeaderElection,
    /// Something else: only what every recipe owes is judged.
    Unknown,
}

impl Interface {
    /// The interface of that name, such as `wok:lock/lock@0.1.0`. A fork keeps the interface's own
    /// name, whatever it calls its package, and with it the promise.
    pub fn of(name: &str) -> Self {
        let name = name.rsplit('/').next().unwrap_or_default();
        match name.split('@').next() {
            Some("lock") => Interface::Lock,
            Some("leader-election") => Interface::LeaderElection,
            _ => Interface::Unknown,
        }
    }

    /// Whether an operation asks to stand in line, and is answered with the grant.
    fn asks(self, operation: &str) -> bool {
        match self {
            Interface::Lock => operation == "acquire" || operation == "try-acquire",
            Interface::LeaderElection => operation == "volunteer",
            Interface::Unknown => false,
        }
    }

    /// Whether an operation waits in line for as long as it takes, and so turns nobody away.
    fn waits(self, operation: &str) -> bool {
        self.asks(operation) && operation != "try-acquire"
    }

    /// What is held.
    fn noun(self) -> &'static str {
        match self {
            Interface::Lock => "the lock",
            Interface::LeaderElection => "the lead",
            Interface::Unknown => "the claim",
        }
    }
}

/// A promise that a run broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The invariant's id.
    pub invariant: &'static str,
    /// What happened, for people.
    pub sentence: String,
    /// The entry at which it is broken.
    pub at: usize,
    /// The entries that led there, in their order.
    pub involved: Vec<usize>,
    /// Who took part.
    pub participants: Vec<ParticipantId>,
}

impl Violation {
    fn new(invariant: &'static str, at: usize, sentence: String) -> Self {
        Violation { invariant, sentence, at, involved: vec![at], participants: Vec::new() }
    }

    fn involving(mut self, entries: impl IntoIterator<Item = usize>) -> Self {
        self.involved.extend(entries);
        self.involved.sort_unstable();
        self.involved.dedup();
        self
    }

    fn by(mut self, participants: impl IntoIterator<Item = ParticipantId>) -> Self {
        self.participants.extend(participants);
        self
    }
}

/// A place in the history: the number of an entry, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: usize,
    us: u64,
}

impl Moment {
    fn of(at: usize, entry: &Entry) -> Self {
        Moment { at, us: entry.at_us }
    }
}

/// A history, and what can be looked up in it.
struct Case<'a> {
    interface: Interface,
    history: &'a [Entry],
    truth: &'a Truth<'a>,
    people: People<'a>,
    faults: Faults,
}

impl<'a> Case<'a> {
    fn of(history: &'a [Entry], truth: &'a Truth<'a>, interface: Interface) -> Self {
        let people = People::of(history, truth, interface);
        Case { interface, history, truth, people, faults: Faults::of(history) }
    }

    /// The first entry later than that; none if the history does not reach so far.
    fn first_after(&self, us: u64) -> Option<usize> {
        let at = self.history.partition_point(|entry| entry.at_us <= us);
        (at < self.history.len()).then_some(at)
    }
}

/// Judges a run by what its recipe promises. In the order in which the promises were broken, a few
/// violations of each at most.
pub fn judge(history: &[Entry], interface: Interface) -> Vec<Violation> {
    let truth = Truth::of(history);
    let case = Case::of(history, &truth, interface);
    let mut found = Vec::new();
    match interface {
        Interface::Lock => {
            grants::check_validity(&case, "M1", &mut found);
            exclusion::check_log(&case, "M2", &mut found);
            exclusion::check_resource(&case, "M3", &mut found);
            grants::check_growth(&case, "M4", &mut found);
            grants::check_order(&case, "M6", &mut found);
            grants::check_condition(&case, "W2", &mut found);
            // A second opinion is asked for where the first is that all is well.
            if found.is_empty() {
                linear::check(&case, "M8", &mut found);
            }
            beliefs::check(&case, "M5", "M5", &mut found);
            quorum::check(&case, "Q1", &mut found);
            waiting::check_turns(&case, "W1", &mut found);
            waiting::check_refusals(&case, "W1", &mut found);
            polling::check(&case, "H1", &mut found);
        }
        Interface::LeaderElection => {
            grants::check_validity(&case, "E1", &mut found);
            exclusion::check_log(&case, "E1", &mut found);
            exclusion::check_resource(&case, "E1", &mut found);
            grants::check_growth(&case, "E1", &mut found);
            grants::check_condition(&case, "W2", &mut found);
            beliefs::check(&case, "E2", "E3", &mut found);
            quorum::check(&case, "Q1", &mut found);
            waiting::check_turns(&case, "E3", &mut found);
            waiting::check_refusals(&case, "E3", &mut found);
            observers::check(&case, "E4", &mut found);
            polling::check(&case, "H1", &mut found);
        }
        Interface::Unknown => {}
    }
    leftovers::check_znodes(&case, "M7", &mut found);
    leftovers::check_silence(&case, "X2", &mut found);
    waiting::check_blocked(&case, "W1", &mut found);
    herd::check(&case, "H1", &mut found);
    consent::check(&case, "V1", &mut found);
    isolation::check(&case, "X1", &mut found);
    limits::check(&case, "L1", &mut found);
    watches::check(&case, "S1", &mut found);
    first_of_each(found)
}

fn first_of_each(mut found: Vec<Violation>) -> Vec<Violation> {
    found.sort_by_key(|violation| violation.at);
    let mut told: Vec<Violation> = Vec::new();
    for violation in found {
        let of_its_kind = told.iter().filter(|other| other.invariant == violation.invariant);
        if of_its_kind.count() < MOST_OF_A_KIND {
            told.push(violation);
        }
    }
    told
}
