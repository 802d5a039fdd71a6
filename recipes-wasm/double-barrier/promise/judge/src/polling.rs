//! A member that waits is told, and need not ask.

use wok_judge::history::{Change, What};
use wok_judge::{Case, Violation};

/// How many host calls a call may make: two looks at generations, one of which has opened, the own
/// znode, the opening, and the claim.
const ONCE: usize = 12;
/// And how many more for each generation that came, opened or went meanwhile, and each member that went.
const AGAIN: usize = 6;

/// H1 of what is asked: the host calls of a member that waits are as many as what happened
/// meanwhile gives reason for, where no fault did. That others come is no reason.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some((answered, _)) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
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
        if asked <= ONCE {
            continue;
        }
        let changes = meanwhile.iter().filter_map(|entry| match &entry.what {
            What::Txn { changes, .. } => Some(changes),
            _ => None,
        });
        let is_reason = |change: &&Change| match change {
            Change::Created { ephemeral_owner, .. } => *ephemeral_owner == 0,
            Change::Deleted { .. } | Change::DataSet { .. } => true,
            _ => false,
        };
        let reasons = changes.flatten().filter(is_reason).count();
        if asked <= ONCE + AGAIN * reasons {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "participant {who} asked the ensemble {asked} times in one `{operation}`, and {reasons} \
             things happened that it could wait for"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
