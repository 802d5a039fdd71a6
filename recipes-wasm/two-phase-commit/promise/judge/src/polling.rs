//! Who waits for an outcome is told, and need not ask.

use wok_judge::history::What;
use wok_judge::{Case, Violation};

use crate::Made;

/// How many host calls an `outcome` may make: it reads whom the transaction asks, looks at it, and
/// decides when its time is over.
const ONCE: usize = 8;
/// And how many more for each thing that happened to any transaction meanwhile, as a participant sees
/// to others while it waits: it looks, finds that another one was faster, and looks again.
const AGAIN: usize = 4;

/// H1: the host calls of an `outcome` are as many as what happened gives reason for, where no fault did.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let timeout = case.truth.longest_timeout_us();
    for made in calls.iter().filter(|made| made.call.operation == "outcome") {
        let Made { call, host, .. } = made;
        let Some((answered, _)) = call.answered else { continue };
        if !case.faults.spared(*host, call.invoked.us, answered.us, timeout) {
            continue;
        }
        let meanwhile = case.history.get(call.invoked.at..answered.at).unwrap_or_default();
        let asks = |what: &What| {
            matches!(what, What::HostCall { participant, name, .. }
                if *participant == call.who && name != "wait" && name != "release")
        };
        let asked = meanwhile.iter().filter(|entry| asks(&entry.what)).count();
        let changed = meanwhile.iter().filter(
            |entry| matches!(&entry.what, What::Txn { changes, .. } if !changes.is_empty()),
        );
        let reasons = changed.count();
        if asked <= ONCE + AGAIN * reasons {
            continue;
        }
        let who = call.who;
        let sentence = format!(
            "participant {who} asked the ensemble {asked} times in one `outcome`, and {reasons} things \
             happened that it had to know of"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
