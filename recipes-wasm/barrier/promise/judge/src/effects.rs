//! Which call made which change.

use wok_judge::Violation;
use wok_judge::history::Outcome;
use wok_judge::people::Call;

use crate::Made;
use crate::states::{Changed, States};

/// B4: who raises and lowers the barrier has been asked to; and each time that it is lowered, that is
/// by another call. A `raise` whose reply is lost may raise again what somebody has lowered meanwhile.
pub(super) fn check(
    calls: &[Made<'_, '_>],
    states: &States<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for raised in states.ups.iter().filter_map(|up| up.raised) {
        if !calls.iter().any(|made| made.1.operation == "raise" && makes(made, raised)) {
            let sentence = "the barrier was raised, and nobody had asked for it".to_owned();
            found.push(Violation::new(id, raised.when.at, sentence));
        }
    }
    let mut lowering: Vec<&Made<'_, '_>> =
        calls.iter().filter(|(_, call)| call.operation == "lower").collect();
    // Of several that may have made a change, the one that ends first can make the fewest others.
    lowering.sort_by_key(|(_, call)| end(call));
    for lowered in states.ups.iter().filter_map(|up| up.lowered) {
        match lowering.iter().position(|made| makes(made, lowered)) {
            Some(place) => drop(lowering.remove(place)),
            None => {
                let sentence =
                    "the barrier was lowered, and nobody had asked for it, or not so often";
                found.push(Violation::new(id, lowered.when.at, sentence.to_owned()));
            }
        }
    }
}

/// Whether the call may have made the change.
fn makes((person, call): &Made<'_, '_>, change: Changed) -> bool {
    person.session == change.session
        && call.invoked.at < change.when.at
        && change.when.at < end(call)
}

/// The entry before which a call has made its change. What nobody was told of may still happen when
/// the caller has gone.
fn end(call: &Call<'_>) -> usize {
    match call.answered {
        Some((answered, Outcome::Ok { .. } | Outcome::Busy)) => answered.at,
        _ => usize::MAX,
    }
}
