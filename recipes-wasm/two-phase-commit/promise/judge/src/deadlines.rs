//! Whether all are told the same deadline.

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::Outcome;
use wok_judge::{Case, Violation};

use crate::Made;
use crate::log::{self, Log, Tx};

/// T5 and C4: the deadlines that `status` and `transactions` tell are those of one clock, the servers'. What
/// that clock shows when the history begins is not known. But each deadline, less the time that the sites
/// have, is when the transaction's creation was stamped; and so it says what the clock may have shown.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
    of_statuses: &'static str,
    of_lists: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut told = Vec::new();
    for Made { call, tx, .. } in calls.iter().filter(|made| made.call.operation == "status") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        told.push((answered, call.who, *tx, value, of_statuses));
    }
    for call in case.people.calls().iter().filter(|call| call.operation == "transactions") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        for one in value.as_array().into_iter().flatten() {
            let path = one.get("path").and_then(Value::as_str).unwrap_or_default();
            let tx = log.find(person.mount, path);
            told.extend(tx.map(|tx| (answered, call.who, tx, one, of_lists)));
        }
    }
    told.sort_by_key(|(answered, ..)| *answered);
    let (mut least, mut most) = (i128::MIN, i128::MAX);
    for (answered, who, tx, value, id) in told {
        let Some(deadline) = value.get("deadline-ms").and_then(fence_of) else { continue };
        let (earliest, latest) = began(tx, deadline);
        if earliest.max(least) > latest.min(most) {
            let what =
                format!("was told with the deadline {deadline}, by another clock than others");
            found.push(log::wrong(id, answered, tx, &what).by([who]));
            continue;
        }
        (least, most) = (least.max(earliest), most.min(latest));
    }
}

/// What the servers' clock showed when the history began, at the least and at the most, if the transaction has
/// that deadline.
fn began(tx: &Tx<'_>, deadline_ms: u64) -> (i128, i128) {
    let stamp = i128::from(deadline_ms) - i128::from(tx.within_us / 1000);
    let stamped = tx.stamped_ms();
    // The clock's milliseconds and the history's need not begin at one time.
    (stamp - i128::from(*stamped.end()) - 1, stamp - i128::from(*stamped.start()) + 1)
}
