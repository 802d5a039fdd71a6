//! What callers and followers are told of a transaction.

use serde_json::Value;
use wok_judge::history::{Outcome, Told, What};
use wok_judge::{Case, Violation};

use crate::Made;
use crate::log::{Log, Tx};

/// T1: who is told an outcome is told the decision, and after it was made.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Made { call, tx, .. } in calls {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let told = match call.operation {
            "outcome" => value.get("decision"),
            "status" => value.get("outcome").and_then(|outcome| outcome.get("decision")),
            _ => None,
        };
        if let Some(told) = told.and_then(Value::as_str) {
            found.extend(objection(tx, told, answered.at, id).map(|it| it.by([call.who])));
        }
    }
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant, notice: Told::Emitted { event, detail } } = &entry.what
        else {
            continue;
        };
        let Some(person) = case.people.person(*participant) else { continue };
        let of = detail.get("transaction").and_then(|path| log.find(person.mount, path));
        let (Some(tx), Some(told)) = (of, detail.get("decision")) else { continue };
        if event == "decided" {
            found.extend(objection(tx, told, at, id).map(|it| it.by([*participant])));
        }
    }
}

fn objection(tx: &Tx<'_>, told: &str, at: usize, id: &'static str) -> Option<Violation> {
    let path = tx.path;
    let sentence = match tx.decision().filter(|(made, _)| made.at < at) {
        Some((_, decision)) if decision == told => return None,
        Some((_, decision)) => {
            format!("{told} was told of {path}, which was decided to {decision}")
        }
        None => format!("{told} was told of {path}, which was not decided"),
    };
    Some(Violation::new(id, at, sentence).involving([tx.created.at]))
}
