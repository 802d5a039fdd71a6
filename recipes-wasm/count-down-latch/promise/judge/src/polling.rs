//! A waiter is told when the latch opens, and nothing before.

use wok_judge::history::What;
use wok_judge::{Case, Violation};

use crate::Made;
use crate::counts::Counts;

/// How many host calls a call may make: the first of all looks at the latch, makes the znode, looks
/// again, and makes the latch. Another wait looks, watches the gate, and reads the latch when it has
/// opened; a count looks, counts, and reads what remains if its id was counted before.
const ONCE: usize = 4;
/// And how many more for each change that it has to know of: a waiter those of the gate, of which the
/// first is the making of the latch; a count those of the latch.
const AGAIN: usize = 3;

/// H1: the host calls of a call are as many as what it has to know of gives reason for, where no fault
/// did. Other counts are none of a waiter's reasons.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    counts: &Counts<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Made { person, call, .. } in calls {
        let Some((answered, _)) = call.answered else { continue };
        let timeout = case.truth.longest_timeout_us();
        if !case.faults.spared(person.host, call.invoked.us, answered.us, timeout) {
            continue;
        }
        let meanwhile = case.history.get(call.invoked.at..answered.at).unwrap_or_default();
        let asks = |what: &What| {
            matches!(what, What::HostCall { participant, name, .. }
                if *participant == call.who && name != "wait")
        };
        let asked = meanwhile.iter().filter(|entry| asks(&entry.what)).count();
        let reasons = match call.operation {
            "wait" => &counts.gate,
            _ => &counts.changes,
        };
        let within = |at: &&usize| (call.invoked.at..answered.at).contains(*at);
        let reasons = reasons.iter().filter(within).count();
        if asked <= ONCE + AGAIN * reasons {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "participant {who} asked the ensemble {asked} times in one `{operation}`, and {reasons} \
             things happened that it had to know of"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
