//! Who passes, and when.

use std::collections::BTreeSet;

use wok_judge::history::Outcome;
use wok_judge::people::End;
use wok_judge::{Case, Violation};

use crate::Made;
use crate::counts::Counts;

/// How long a wait at an open latch may take, if no fault is in its way.
const UNDISTURBED_US: u64 = 1_000_000;

/// And how long beyond a session's timeout, from when the last fault of its host was over.
const BEYOND_US: u64 = 2_000_000;

/// A2: when a wait is answered, as many ids as make the latch open have been asked for, and counted.
pub(super) fn check_passes(
    calls: &[Made<'_, '_>],
    counts: &Counts<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Made { call, .. } in calls.iter().filter(|made| made.call.operation == "wait") {
        let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
        let earlier = calls.iter().filter(|made| made.call.invoked.at < answered.at);
        let asked: BTreeSet<_> = earlier.filter_map(|made| made.id).collect();
        let counted = counts.before(answered.at);
        let enough = counts.needed;
        if asked.len() >= enough && counted >= enough {
            continue;
        }
        let (who, asked) = (call.who, asked.len());
        let sentence = format!(
            "participant {who} passed when {asked} ids had been asked for and {counted} counted, \
             and {enough} open the latch"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// C1: a wait at a latch that is open is answered soon, and a latch that has opened stays so.
pub(super) fn check_waits(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    counts: &Counts<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let Some(opened) = counts.opened() else { return };
    for Made { person, call, .. } in calls.iter().filter(|made| made.call.operation == "wait") {
        let from = opened.us.max(call.invoked.us);
        let timeout = case.truth.longest_timeout_us();
        let soon = from.saturating_add(UNDISTURBED_US);
        let due = match case.faults.spared(person.host, from, soon, timeout) {
            true => Some(soon),
            false => case.faults.due(person.host, from, timeout.saturating_add(BEYOND_US)),
        };
        let Some((due, at)) = due.and_then(|due| Some((due, case.first_after(due)?))) else {
            continue;
        };
        let is_over = call.answered.is_some_and(|(answered, _)| answered.us <= due);
        let has_ended = person.end.map(End::when).is_some_and(|end| end.us <= due);
        if is_over || has_ended {
            continue;
        }
        let who = call.who;
        let sentence = format!("participant {who} still waits, and the latch is open");
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([call.invoked.at, opened.at]).by([who]));
    }
}
