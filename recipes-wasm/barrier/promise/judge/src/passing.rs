//! Who passes, and when.

use wok_judge::history::{Outcome, What};
use wok_judge::people::{Call, End, Person};
use wok_judge::{Case, Violation};

use crate::Made;
use crate::states::{States, Up};

/// How long a waiter may take to hear that the barrier was lowered, if no fault is in its way.
const UNDISTURBED_US: u64 = 1_000_000;

/// And how long beyond a session's timeout, from when the last fault of its host was over.
const BEYOND_US: u64 = 2_000_000;

/// B1: at some moment of a wait that is answered the barrier was down.
pub(super) fn check_passes(
    calls: &[Made<'_, '_>],
    states: &States<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (_, call) in calls.iter().filter(|(_, call)| call.operation == "wait") {
        let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
        let Some(up) = states.up_all_the_time(call.invoked.at, answered.at) else { continue };
        let who = call.who;
        let sentence =
            format!("participant {who} passed, and the barrier was up all the time of its wait");
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([up.from(), call.invoked.at]).by([who]));
    }
}

/// B2: a waiter that has met the barrier is answered soon after that barrier is lowered. What becomes of the barrier after that does not matter.
pub(super) fn check_openings(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    states: &States<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (person, call) in calls.iter().filter(|(_, call)| call.operation == "wait") {
        for up in &states.ups {
            if has_met(case, person, call, up) {
                found.extend(missed(case, person, call, up, id));
            }
        }
    }
}

/// Whether the call has asked for the barrier, was answered, and began to wait, while it was up that
/// time.
fn has_met(case: &Case<'_>, person: &Person<'_>, call: &Call<'_>, up: &Up<'_>) -> bool {
    let from = call.invoked.at.max(up.from());
    let over = call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
    let during = case.history.get(from..over.min(up.until()).min(case.history.len()));
    let (mut asked, mut is_answered) = (None, false);
    during.unwrap_or_default().iter().any(|entry| match &entry.what {
        What::HostCall { participant, name, .. } if *participant == person.id && name == "wait" => {
            is_answered
        }
        What::HostCall { participant, number, paths, .. } if *participant == person.id => {
            is_answered = false;
            asked = paths.iter().any(|path| path == person.mount).then_some(*number);
            false
        }
        What::HostCallAnswered { number, .. } if asked == Some(*number) => {
            is_answered = true;
            false
        }
        _ => false,
    })
}

/// A wait that goes on though the barrier was lowered.
fn missed(
    case: &Case<'_>,
    person: &Person<'_>,
    call: &Call<'_>,
    up: &Up<'_>,
    id: &'static str,
) -> Option<Violation> {
    let lowered = up.lowered?.when;
    let timeout = case.truth.longest_timeout_us();
    let soon = lowered.us.saturating_add(UNDISTURBED_US);
    let due = match case.faults.spared(person.host, lowered.us, soon, timeout) {
        true => soon,
        false => case.faults.due(person.host, lowered.us, timeout.saturating_add(BEYOND_US))?,
    };
    let at = case.first_after(due)?;
    let is_over = call.answered.is_some_and(|(answered, _)| answered.us <= due);
    let has_ended = person.end.map(End::when).is_some_and(|end| end.us <= due);
    if is_over || has_ended {
        return None;
    }
    let who = call.who;
    let sentence =
        format!("participant {who} still waits, and the barrier that it has met was lowered");
    Some(Violation::new(id, at, sentence).involving([call.invoked.at, lowered.at]).by([who]))
}
