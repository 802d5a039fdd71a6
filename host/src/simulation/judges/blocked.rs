//! Nobody waits for ever.

use wok_judge::{Case, Violation};

use crate::simulation::history::What;

/// W1 of everybody: when all have finished, no call is left without an answer.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::Final { blocked, .. } = &entry.what else { continue };
        for call in case.people.calls().iter().filter(|call| blocked.contains(&call.id)) {
            let (who, operation) = (call.who, call.operation);
            let sentence = format!("the `{operation}` of participant {who} was never answered");
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
    }
}
