//! What is put in is in the queue, once.

use serde_json::Value;

use crate::history::Outcome;
use crate::people::Call;
use crate::{Case, Violation};

use super::log::{Item, Log};

/// Q1: an acknowledged put is in the queue with what was put, in its order; Q5: one that is not
/// acknowledged is in it once, or not at all, and an operation says which.
pub fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some(wanted) = wanted(case, call) else { continue };
        let until = call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
        let is_its_own = |item: &&Item<'_>| item.by == Some(call.id);
        let own: Vec<&Item<'_>> = log.items.iter().filter(is_its_own).collect();
        let in_time = own.iter().filter(|item| item.put.at <= until);
        let is_all = in_time.map(|item| item.data).eq(wanted.iter().map(Vec::as_slice));
        let priority = priority_asked(case, call);
        let has_priority = log.kind.priority.is_some();
        let is_all = is_all && own.iter().all(|it| !has_priority || it.priority == priority);
        let (id, what) = match call.answered {
            Some((_, Outcome::Ok { .. })) if is_all && own.len() == wanted.len() => continue,
            Some((_, Outcome::Ok { .. })) => ("Q1", "was acknowledged"),
            Some((_, Outcome::Err { .. })) if own.is_empty() => continue,
            Some((_, Outcome::Err { .. })) => ("Q5", "was refused"),
            _ if own.is_empty() || own.len() == wanted.len() => continue,
            _ => ("Q5", "was given up"),
        };
        let at = call.answered.map_or(call.invoked.at, |(answered, _)| answered.at);
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who}, of {} items, {what}, and put in {}",
            wanted.len(),
            own.len()
        );
        let violation = Violation::new(id, at, sentence).by([who]);
        found.push(violation.involving(own.iter().map(|item| item.put.at)));
    }
    check_answers(case, found);
}

/// Q5: nobody is left to find out.
fn check_answers(case: &Case<'_>, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Err { value, .. })) = call.answered else { continue };
        if value.as_str() == Some("outcome-unknown") {
            let (who, operation) = (call.who, call.operation);
            let sentence = format!("`{operation}` of participant {who} was answered {value}");
            found.push(Violation::new("Q5", answered.at, sentence).by([who]));
        }
    }
}

/// The priority that a call gives to what it puts in.
fn priority_asked(case: &Case<'_>, call: &Call<'_>) -> i64 {
    case.arguments(call).and_then(|given| given.get("priority")?.as_i64()).unwrap_or_default()
}

/// What a call puts in, as far as it is text.
fn wanted(case: &Case<'_>, call: &Call<'_>) -> Option<Vec<Vec<u8>>> {
    let arguments = case.arguments(call)?;
    let bytes = |data: &Value| data.as_str().map(|text| text.as_bytes().to_vec());
    match call.operation {
        "put" => Some(vec![bytes(arguments.get("data")?)?]),
        "put-all" => arguments.get("items")?.as_array()?.iter().map(bytes).collect(),
        _ => None,
    }
}
