//! An observer is told, and need not ask.

use wok_judge::Violation;
use wok_judge::history::{ParticipantId, What};
use wok_judge::people::Person;

use crate::Case;
use crate::calls::{Answer, Asked, Call};

/// H1: from an observation on, a participant asks the ensemble by itself as often as the root was
/// written since what it was told, at most: one read each, and none without a change.
pub(crate) fn check(case: &Case<'_, '_>, id: &'static str, found: &mut Vec<Violation>) {
    for person in case.people.persons() {
        let observations: Vec<&Call<'_>> =
            case.calls_of(person.id).filter(|call| matches!(call.asked, Asked::Observe)).collect();
        for (place, call) in observations.iter().enumerate() {
            let (Answer::Observed(begun), Some(answered)) = (&call.answer, call.returned) else {
                continue;
            };
            let next = observations.get(place + 1).map(|next| next.invoked.at);
            let until = next.unwrap_or(case.history.len());
            check_one(case, person, (*begun, answered.at, until), id, found);
        }
    }
}

/// Of one observation, which began with that revision, between these entries.
fn check_one(
    case: &Case<'_, '_>,
    person: &Person<'_>,
    (begun, from, until): (i64, usize, usize),
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut asked = 0_usize;
    for (at, entry) in case.history.iter().enumerate().take(until).skip(from) {
        let What::HostCall { participant, .. } = &entry.what else { continue };
        if *participant != person.id || is_within_a_call(case, person.id, at) {
            continue;
        }
        asked += 1;
        let states = case.states.between(0, at);
        let written = states.filter(|state| state.wrote_root && state.revision > begun).count();
        let since = case.history.get(from).map_or(0, |entry| entry.at_us);
        if asked <= written || !case.is_spared(person.host, since, entry.at_us) {
            continue;
        }
        let sentence = format!(
            "participant {} observes, and asked the ensemble {asked} times; the configuration was \
             written {written} times",
            person.id
        );
        found.push(Violation::new(id, at, sentence).involving([from]).by([person.id]));
        return;
    }
}

/// How many host calls a wait may make: two looks where there is no root, and both again because the
/// root came in between.
const ONCE: usize = 4;
/// And how many more for each time that the root was written meanwhile.
const AGAIN: usize = 2;

/// H1 of who waits.
pub(crate) fn check_waits(case: &Case<'_, '_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.calls.iter().filter(|call| matches!(call.asked, Asked::Wait(_))) {
        let Some(answered) = call.returned else { continue };
        if !case.is_spared(call.host, call.invoked.us, answered.us) {
            continue;
        }
        let meanwhile = case.history.get(call.invoked.at..answered.at).unwrap_or_default();
        let asks = |what: &What| {
            matches!(what, What::HostCall { participant, name, .. }
                if *participant == call.who && name != "wait")
        };
        let asked = meanwhile.iter().filter(|entry| asks(&entry.what)).count();
        let states = case.states.between(call.invoked.at, answered.at);
        let written = states.filter(|state| state.wrote_root).count();
        if asked <= ONCE + AGAIN * written {
            continue;
        }
        let who = call.who;
        let sentence = format!(
            "participant {who} asked the ensemble {asked} times in one `wait`, and the \
             configuration was written {written} times"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

fn is_within_a_call(case: &Case<'_, '_>, who: ParticipantId, at: usize) -> bool {
    case.calls_of(who)
        .any(|call| call.invoked.at < at && call.returned.is_none_or(|returned| at < returned.at))
}
