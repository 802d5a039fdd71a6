//! What is told of the queue to somebody who takes nothing.

use std::ops::Range;

use serde_json::Value;

use crate::history::Outcome;
use crate::people::Call;
use crate::{Case, Moment, Violation};

use super::Peek;
use super::ends::{name_asked, named};
use super::log::{Item, Log};
use super::takes::{absolute, is_other_data, is_other_priority, number};

/// Q7 of what `peek` answers, and Q8 of `length`.
pub fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let until = case.end_of(answered);
        let (id, why) = match call.operation {
            "peek" => {
                let from = match (log.kind.peek, name_asked(case, call)) {
                    (Peek::BehindSync, None) => case.known_behind_sync(call, answered),
                    _ => case.known_to_server(call, answered),
                };
                ("Q7", misshown(case, log, call, value, from..until))
            }
            "length" => {
                let within = case.known_behind_sync(call, answered)..until;
                ("Q8", miscounted(case, log, call, value, within))
            }
            _ => continue,
        };
        let Some(why) = why else { continue };
        let (who, operation) = (call.who, call.operation);
        let sentence = format!("`{operation}` answered participant {who} {value}, but {why}");
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// Why the answer of `peek` is wrong, be it an item or that there is no item; none if it is right.
fn misshown(
    case: &Case<'_>,
    log: &Log<'_>,
    call: &Call<'_>,
    value: &Value,
    within: Range<usize>,
) -> Option<String> {
    let (from, until) = (within.start, within.end);
    let is_named = name_asked(case, call).is_some();
    if value.is_null() && is_named {
        let item = named(case, log, call, until).filter(|item| item.is_there(from, until));
        return item.map(|item| format!("{} was there all the while", item.path));
    }
    let mount = case.people.person(call.who)?.mount;
    let free = log.items.iter().enumerate().filter(|(_, it)| it.queue == mount);
    let mut free = free.filter(|(_, it)| it.is_free(from, until));
    if value.is_null() {
        return free
            .next()
            .map(|(_, item)| format!("{} was there to take all the while", item.path));
    }
    let path = absolute(case, call, value);
    let Some(item) = log.find(&path, until) else {
        return Some("nobody had put that in".to_owned());
    };
    if let Some(why) = mistold(log, item, value, from, until) {
        return Some(why);
    }
    if is_named {
        let is_it = named(case, log, call, until).is_some_and(|named| named.path == item.path);
        return (!is_it).then(|| "another item was asked for".to_owned());
    }
    if !item.was_free(from, until) {
        return Some("nobody could take it at any moment of the call".to_owned());
    }
    let place = log.items.iter().position(|it| it.path == path && it.czxid == item.czxid)?;
    let (_, earlier) = free.find(|(other, _)| log.comes_before(*other, place))?;
    let is_earlier = log.kind.earlier;
    Some(format!("{}, which {is_earlier}, was there to take all the while", earlier.path))
}

/// What is told of an item that was not so at any moment of the call.
fn mistold(
    log: &Log<'_>,
    item: &Item<'_>,
    value: &Value,
    from: usize,
    until: usize,
) -> Option<String> {
    if is_other_data(value, item) {
        return Some("it was put in with other data".to_owned());
    }
    if number(value, "czxid") != u64::try_from(item.czxid).ok() {
        return Some("it has another czxid".to_owned());
    }
    if is_other_priority(log, value, item) {
        return Some(format!("its priority is {}", item.priority));
    }
    let attempts = number(value, "attempts");
    let is_so = attempts.is_some_and(|attempts| item.had_attempts(attempts, from, until));
    (!is_so).then(|| "it was not there with so many attempts at any moment of the call".to_owned())
}

/// Which number that `length` answers there was at no moment of the call.
fn miscounted(
    case: &Case<'_>,
    log: &Log<'_>,
    call: &Call<'_>,
    value: &Value,
    within: Range<usize>,
) -> Option<String> {
    let mount = case.people.person(call.who)?.mount;
    if number(value, "taken") > number(value, "items") {
        return Some("no more can be taken than there are".to_owned());
    }
    let children = |part: &str| case.children_of(&[mount, "/", part].concat(), within.clone());
    let (least, most) = taken(log, mount, within.clone());
    let counts = [
        ("items", children("items")),
        ("taken", least..=most),
        ("dead-letters", children("dead-letters")),
    ];
    counts.into_iter().find_map(|(key, were)| {
        let is_so = number(value, key).is_some_and(|told| were.contains(&told));
        (!is_so).then(|| format!("`{key}` was from {} to {}", were.start(), were.end()))
    })
}

/// How many items were taken: those that were so all the while, and the most that were so at one moment.
/// `length` looks at one item after the other, so a new claim need not make up for one that has gone.
fn taken(log: &Log<'_>, mount: &str, within: Range<usize>) -> (u64, u64) {
    let (from, until) = (within.start, within.end);
    let items = log.items.iter().filter(|item| item.queue == mount);
    let spans: Vec<_> = items.flat_map(Item::taken).collect();
    let count = |from: usize, until: usize| {
        let lasts = |(since, end): &&(Moment, Option<Moment>)| {
            since.at <= from && end.is_none_or(|end| end.at > until)
        };
        spans.iter().filter(lasts).count() as u64
    };
    let begun = spans.iter().map(|(since, _)| since.at).filter(|at| within.contains(at));
    let most = begun.chain([from]).map(|at| count(at, at)).max().unwrap_or_default();
    (count(from, until), most)
}
