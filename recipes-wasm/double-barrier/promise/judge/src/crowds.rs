//! More members than make a round.

use wok_judge::history::Outcome;
use wok_judge::people::{Call, End};
use wok_judge::{Case, Violation};

use crate::rounds::Rounds;

/// How long it may take that a round opens, or ends, after the last fault, beyond two of the longest
/// session timeouts: one for the session of a killed host, one for a connection to be given up and
/// found again.
const BEYOND_US: u64 = 5_000_000;

/// How long it may take once nothing of the faults is left.
const UNDISTURBED_US: u64 = 2_000_000;

/// How long the last fault may be felt.
pub(super) fn patience(case: &Case<'_>) -> u64 {
    case.truth.longest_timeout_us().saturating_mul(2).saturating_add(BEYOND_US)
}

/// D3: a round is for as many as make one; and where so many wait all the time, somebody enters.
pub(super) fn check(
    case: &Case<'_>,
    rounds: &Rounds<'_>,
    size: usize,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for round in rounds.all() {
        let Some((opened, _)) = round.opened else { continue };
        let admitted = round.there_when_opened().filter(|member| round.admits(member)).count();
        if admitted > size {
            let sentence = format!("{} opened for {admitted} members, not {size}", round.path);
            found.push(Violation::new(id, opened.at, sentence));
        }
    }
    check_waits(case, size, id, found);
}

fn check_waits(case: &Case<'_>, size: usize, id: &'static str, found: &mut Vec<Violation>) {
    let Some(calm) = case.faults.calm() else { return };
    let entering: Vec<&Call<'_>> =
        case.people.calls().iter().filter(|call| call.operation == "enter").collect();
    for call in &entering {
        let undisturbed = calm.us.saturating_add(patience(case));
        let from_us = call.invoked.us.max(undisturbed);
        let due = from_us.saturating_add(UNDISTURBED_US);
        let Some(at) = case.first_after(due) else { continue };
        let mount = case.people.person(call.who).map(|person| person.mount);
        let waits = |other: &&&Call<'_>| {
            let Some(person) = case.people.person(other.who) else { return false };
            let ends = other.answered.map(|(when, _)| when).into_iter();
            let ends = ends.chain(person.end.map(End::when));
            other.invoked.us <= from_us
                && ends.min().is_none_or(|end| end.us > due)
                && Some(person.mount) == mount
        };
        let waiting = entering.iter().filter(waits).count();
        let has_entered = |other: &&Call<'_>| {
            let Some((when, Outcome::Ok { .. })) = other.answered else { return false };
            from_us <= when.us && when.us <= due
        };
        if !waits(&call) || waiting < size || entering.iter().any(has_entered) {
            continue;
        }
        let sentence =
            format!("{waiting} wait to enter, {size} make a round, and nobody has entered");
        found.push(Violation::new(id, at, sentence).involving([call.invoked.at]).by([call.who]));
    }
}
