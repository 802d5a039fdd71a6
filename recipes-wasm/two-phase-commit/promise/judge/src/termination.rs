//! Who waits for an outcome, and for how long.

use std::collections::BTreeSet;

use wok_judge::history::{FaultKind, What};
use wok_judge::people::End;
use wok_judge::{Case, Violation};

use crate::Made;

/// How long it may take if no fault is in its way: a participant that coordinates several transactions sees to
/// each of them first, in some round trips of a slow link.
const UNDISTURBED_US: u64 = 5_000_000;

/// And how long beyond two sessions' timeouts, from when the last fault was over: one for the session of
/// a coordinator that is killed, one for a connection to be given up and found again.
const BEYOND_US: u64 = 5_000_000;

/// T4: who waits for an outcome learns it when the decision is made, or can be, or the time is over.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let timeout = case.truth.longest_timeout_us();
    for made in calls.iter().filter(|made| made.call.operation == "outcome") {
        let Made { call, tx, host, .. } = made;
        // A clock that was set back has its host wait once more for all the time there is.
        let over = match has_jumped(case, *host) {
            true => call.invoked.us.max(tx.created.us).saturating_add(tx.within_us),
            false => tx.deadline_us(),
        };
        let moments = [tx.decidable(), tx.decision().map(|(decided, _)| decided)];
        let from = moments.into_iter().flatten().map(|moment| moment.us).chain([over]).min();
        let from = from.unwrap_or(over).max(call.invoked.us);
        let soon = from.saturating_add(UNDISTURBED_US);
        // A decision may be left to a coordinator of any host, which is there for as long as its
        // session lasts.
        let hosts: BTreeSet<_> = case.people.persons().map(|person| person.host).collect();
        let is_calm = hosts.iter().all(|host| case.faults.spared(*host, from, soon, timeout));
        let due = if is_calm {
            Some(soon)
        } else {
            let patience = timeout.saturating_mul(2).saturating_add(BEYOND_US);
            let due = |host: &u32| case.faults.due(*host, from, patience);
            hosts.iter().map(due).try_fold(0, |latest: u64, due| Some(due?.max(latest)))
        };
        let Some((due, at)) = due.and_then(|due| Some((due, case.first_after(due)?))) else {
            continue;
        };
        let is_over = call.answered.is_some_and(|(answered, _)| answered.us <= due);
        let person = case.people.person(call.who);
        let end = person.and_then(|person| person.end).map(End::when);
        if is_over || end.is_some_and(|end| end.us <= due) {
            continue;
        }
        let (who, path) = (call.who, tx.path);
        let sentence = format!("participant {who} still waits for the outcome of {path}");
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([call.invoked.at, tx.created.at]).by([who]));
    }
}

fn has_jumped(case: &Case<'_>, of: u32) -> bool {
    case.history.iter().any(|entry| match entry.what {
        What::Fault { fault: FaultKind::ClockJump, host, .. } => host.is_none_or(|host| host == of),
        _ => false,
    })
}
