//! What is taken is told to the one who took it, and to nobody else.

use serde_json::Value;

use crate::history::Outcome;
use crate::people::Call;
use crate::{Case, Moment, Violation};

use super::log::{How, Item, Log};

/// Whether an operation takes items.
pub fn takes(call: &Call<'_>) -> bool {
    matches!(call.operation, "take" | "take-many")
}

/// Q1, Q2, Q3 and Q9 of what is answered, and in which order several items are told.
pub fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| takes(call)) {
        let Some((answered, outcome)) = call.answered else { continue };
        let told = match outcome {
            Outcome::Ok { value, .. } => items(value),
            Outcome::Err { .. } => Vec::new(),
            // Somebody who withdraws is told nothing.
            _ => continue,
        };
        check_count(case, log, call, answered, &told, found);
        let mut paths = Vec::with_capacity(told.len());
        let mut last: Option<usize> = None;
        for value in told {
            let path = absolute(case, call, value);
            let item = log.find(&path, answered.at);
            if let Some(why) = wrong(case, log, call, answered, value, item) {
                let (id, why) = why;
                let sentence =
                    format!("participant {} was told that it took {path}: {why}", call.who);
                found.push(Violation::new(id, answered.at, sentence).by([call.who]));
            }
            let place = log.items.iter().position(|it| it.path == path);
            if place.zip(last).is_some_and(|(it, last)| log.comes_before(it, last)) {
                let (who, later) = (call.who, log.kind.later);
                let sentence = format!("participant {who} was told of {path} behind {later}");
                found.push(Violation::new(log.kind.id, answered.at, sentence).by([call.who]));
            }
            last = place;
            paths.push(path);
        }
        for item in &log.items {
            let is_its =
                item.gone.is_some_and(|gone| gone.by == Some(call.id) && gone.how == How::Alone);
            if is_its && !paths.iter().any(|path| path == item.path) {
                let sentence = format!(
                    "participant {} removed {} and was not told of it: nobody has it",
                    call.who, item.path
                );
                found.push(Violation::new("Q2", answered.at, sentence).by([call.who]));
            }
        }
    }
}

/// Q9: a call takes as many items as it asks for at most. What its participant had before is
/// answered once more, however much that is.
fn check_count(
    case: &Case<'_>,
    log: &Log<'_>,
    call: &Call<'_>,
    answered: Moment,
    told: &[&Value],
    found: &mut Vec<Violation>,
) {
    let most = case.arguments(call).and_then(|given| given.get("max")?.as_u64());
    let Some(most) = most.and_then(|most| usize::try_from(most).ok()) else { return };
    let is_new = |value: &&&Value| {
        let item = log.find(&absolute(case, call, value), answered.at);
        item.is_some_and(|item| match number(value, "fence") {
            Some(fence) => item.claims.iter().any(|claim| {
                u64::try_from(claim.czxid) == Ok(fence) && claim.since.at > call.invoked.at
            }),
            None => item.gone.is_some_and(|gone| gone.when.at > call.invoked.at),
        })
    };
    let count = told.iter().filter(is_new).count();
    if count > most {
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who} took {count} items, and asked for {most} at \
             most"
        );
        let violation = Violation::new("Q9", answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// What is wrong with what was told of an item, and which promise that breaks.
fn wrong(
    case: &Case<'_>,
    log: &Log<'_>,
    call: &Call<'_>,
    answered: Moment,
    value: &Value,
    item: Option<&Item<'_>>,
) -> Option<(&'static str, String)> {
    let Some(item) = item else { return Some(("Q1", "nobody has put that in".to_owned())) };
    if is_other_data(value, item) {
        return Some(("Q1", "it was put in with other data".to_owned()));
    }
    if number(value, "czxid") != u64::try_from(item.czxid).ok() {
        return Some(("Q3", "it has another czxid".to_owned()));
    }
    if is_other_priority(log, value, item) {
        return Some(("Q1", format!("its priority is {}", item.priority)));
    }
    let attempt = number(value, "attempt");
    let Some(fence) = number(value, "fence") else {
        return match item.gone {
            Some(gone) if gone.by == Some(call.id) || gone.by.is_none() => {
                let before = u64::try_from(item.version).ok().map(|version| version + 1);
                (attempt != before).then(|| ("Q3", format!("it was taken {} times", item.version)))
            }
            Some(_) => Some(("Q2", "somebody else has removed it".to_owned())),
            None => Some(("Q2", "it is still there".to_owned())),
        };
    };
    let session = case.people.person(call.who)?.session;
    let fits = |czxid: i64| u64::try_from(czxid).is_ok_and(|czxid| czxid == fence);
    let claim = item.claims.iter().find(|claim| fits(claim.czxid) && claim.session == session);
    let Some(claim) = claim else {
        return Some(("Q3", format!("it has no claim of fence {fence}")));
    };
    if claim.since.at > answered.at {
        return Some(("Q3", "it claimed that later".to_owned()));
    }
    if attempt != u64::try_from(claim.version).ok() {
        return Some(("Q3", format!("that was its attempt {}", claim.version)));
    }
    None
}

/// The items that an answer tells of.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    }
}

/// A number of an answer, which may be written as text.
pub(super) fn number(value: &Value, key: &str) -> Option<u64> {
    let value = value.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Whether an answer tells an item with other data than it was put in with.
pub(super) fn is_other_data(value: &Value, item: &Item<'_>) -> bool {
    let text = value.get("data").and_then(Value::as_str);
    text.is_some_and(|text| text.as_bytes() != item.data)
}

/// Whether an answer tells an item of a kind that has priorities with another one than its own.
pub(super) fn is_other_priority(log: &Log<'_>, value: &Value, item: &Item<'_>) -> bool {
    let told = value.get("priority").and_then(Value::as_i64);
    log.kind.priority.is_some() && told != Some(item.priority)
}

/// The path of the item that an answer tells of, in the whole tree.
pub(super) fn absolute(case: &Case<'_>, call: &Call<'_>, value: &Value) -> String {
    let path = value.get("path").and_then(Value::as_str).unwrap_or_default();
    let mount = case.people.person(call.who).map_or("", |person| person.mount);
    [mount, path].concat()
}
