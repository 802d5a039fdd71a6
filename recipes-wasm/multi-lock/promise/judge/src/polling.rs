//! Who waits is told, and need not ask.

use wok_judge::history::{Change, What};
use wok_judge::truth::split;
use wok_judge::{Case, Violation};

use crate::asked;
use crate::lens::name_of;

/// How many host calls a call may make for each lock: the place, the wait for the next one ahead, a look
/// and the wait once more because what was to be watched had gone.
const EACH: usize = 4;
/// And for all of them: the claim, or giving up what it has.
const ONCE: usize = 2;
/// And how many more for each znode that went or was written meanwhile in one of the lines.
const AGAIN: usize = 4;

/// H1 of what is asked: one that waits asks as often as something has happened that it could wait for,
/// where no fault did.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        if !case.promise.asks.contains(&call.operation) {
            continue;
        }
        let until = call.answered.map(|(answered, _)| answered);
        let Some(person) = case.people.person(call.who) else { continue };
        let Some(until) = until else { continue };
        let timeout = case.truth.longest_timeout_us();
        if !case.faults.spared(person.host, call.invoked.us, until.us, timeout) {
            continue;
        }
        let meanwhile = case.history.get(call.invoked.at..until.at).unwrap_or_default();
        let asks = |what: &What| {
            matches!(what, What::HostCall { participant, name, .. }
                if *participant == call.who && name != "wait")
        };
        let asking = meanwhile.iter().filter(|entry| asks(&entry.what)).count();
        let names = asked(case, call);
        let once = ONCE + EACH * names.len();
        if asking <= once {
            continue;
        }
        let changes = meanwhile.iter().filter_map(|entry| match &entry.what {
            What::Txn { changes, .. } => Some(changes),
            _ => None,
        });
        let is_reason = |change: &&Change| match change {
            Change::Deleted { path } | Change::DataSet { path, .. } => split(path)
                .and_then(|(line, _)| name_of(person, line))
                .is_some_and(|name| names.contains(&name)),
            _ => false,
        };
        let reasons = changes.flatten().filter(is_reason).count();
        if asking <= once + AGAIN * reasons {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "participant {who} asked the ensemble {asking} times in one `{operation}`, and {reasons} \
             things happened that it could wait for"
        );
        let violation = Violation::new(id, until.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
