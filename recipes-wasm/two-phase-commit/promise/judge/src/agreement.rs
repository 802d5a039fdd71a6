//! What callers and followers are told of a transaction.

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{Outcome, Told, What};
use wok_judge::{Case, Violation};

use crate::log::{Log, Tx};
use crate::{Made, log};

/// T1: who is told an outcome is told the decision, and after it was made. T5: a status shows what is.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
    agreement: &'static str,
    status: &'static str,
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
            found.extend(objection(tx, told, answered.at, agreement).map(|it| it.by([call.who])));
        }
        if call.operation == "status"
            && let Some(what) = misshown(tx, value, answered.at)
        {
            found.push(log::wrong(status, answered, tx, &what).by([call.who]));
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
            found.extend(objection(tx, told, at, agreement).map(|it| it.by([*participant])));
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

/// What is shown of a site that is not so.
fn misshown(tx: &Tx<'_>, shown: &Value, at: usize) -> Option<String> {
    let sites = shown.get("sites")?.as_array()?;
    let names: Vec<_> = sites.iter().filter_map(|it| it.get("site")?.as_str()).collect();
    if names != tx.sites {
        return Some(format!("was shown with the sites {names:?}"));
    }
    for (site, name) in sites.iter().zip(names) {
        let cast = tx.vote(name).filter(|vote| vote.when.at < at);
        let vote = site.get("vote").and_then(Value::as_str);
        if vote.is_some() && vote != cast.map(|vote| vote.word) {
            return Some(format!("was shown with a vote of {name} that was not cast"));
        }
        let Some(in_doubt) = site.get("in-doubt-ms").and_then(fence_of) else { continue };
        let Some((decided, cast)) = tx.decision().zip(cast) else {
            return Some(format!("was shown with {name} in doubt for {in_doubt} ms, and still is"));
        };
        let was = tx.in_doubt_ms(cast, decided.0);
        if !was.contains(&in_doubt) {
            let (least, most) = (was.start(), was.end());
            return Some(format!(
                "was shown with {name} in doubt for {in_doubt} ms, not {least} to {most}"
            ));
        }
    }
    None
}
