//! A waiter is told, and need not ask.

use wok_judge::history::What;
use wok_judge::{Case, Violation};

use crate::Made;
use crate::states::States;

/// How many host calls about the barrier a call may make: a wait looks once, a raise creates and
/// looks, a lower looks and deletes.
const ONCE: usize = 2;
/// And how many more for each change of the barrier meanwhile.
const AGAIN: usize = 2;

/// H1: the host calls of a call are as many as the changes of the barrier meanwhile give reason for,
/// where no fault did. All waiters wake when the barrier is lowered, each of them once.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    states: &States<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (person, call) in calls {
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
        let within = |at: &&usize| (call.invoked.at..answered.at).contains(*at);
        let changes = states.changes.iter().filter(within).count();
        if asked <= ONCE + AGAIN * changes {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "participant {who} asked the ensemble {asked} times in one `{operation}`, and the \
             barrier changed {changes} times"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
