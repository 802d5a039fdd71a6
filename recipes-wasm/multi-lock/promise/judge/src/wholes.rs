//! All or none: what is granted as one, and given back as one.

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::Outcome;
use wok_judge::people::{Belief, Call, Over, Person};
use wok_judge::truth::Contender;
use wok_judge::{Case, Moment, Violation};

use crate::lens::{Grant, Grants, name_of};
use crate::{asked, granted, is_sound};

/// A1: who is told to hold something holds, by the claim that it is told of, each lock that it asked for,
/// and no other. So one that still waits for a lock is not told that it holds one.
pub(super) fn check_grants(
    case: &Case<'_>,
    grants: &Grants<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for grant in grants.all() {
        let Some(call) = case.people.call_at(grant.who, grant.at) else { continue };
        let Some(person) = case.people.person(grant.who) else { continue };
        let names = asked(case, call);
        let held = grant.names(person);
        if held == names {
            continue;
        }
        let who = grant.who;
        let sentence =
            format!("participant {who} was told to hold {held:?}, and had asked for {names:?}");
        let violation = Violation::new(id, grant.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// A1 and M1 of what is answered: a grant for each lock that was asked for, in the order of the names, and
/// by the znode of that `czxid`. Names that are none are answered no grant.
pub(super) fn check_answers(
    case: &Case<'_>,
    whole: &'static str,
    valid: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let Some(records) = granted(value).filter(|_| asks(case, call)) else { continue };
        let (who, operation, names) = (call.who, call.operation, asked(case, call));
        let name = |record: &Value| record.get("name").and_then(Value::as_str).map(str::to_owned);
        let told: Vec<String> = records.iter().filter_map(name).collect();
        if told != names || !is_sound(&names) {
            let sentence = format!(
                "`{operation}` answered participant {who} the locks {told:?}, and it had asked for \
                 {names:?}"
            );
            let violation = Violation::new(whole, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
        for record in
            records.iter().filter(|record| !is_by_its_znode(case, person, answered, record))
        {
            let sentence = format!(
                "`{operation}` answered participant {who} {record}, which is no znode of that lock with \
                 that fence"
            );
            found.push(Violation::new(valid, answered.at, sentence).by([who]));
        }
    }
}

fn is_by_its_znode(case: &Case<'_>, person: &Person<'_>, answered: Moment, record: &Value) -> bool {
    let text = |key| record.get(key).and_then(Value::as_str).unwrap_or_default();
    let path = [person.mount, text("path")].concat();
    let contender = case.truth.find(&path, answered.at);
    let fence = record.get("fence").and_then(fence_of);
    contender.is_some_and(|contender| {
        Some(contender.czxid.unsigned_abs()) == fence
            && name_of(person, contender.parent) == Some(text("name"))
    })
}

/// A2: what one `release` gives back goes in one txn, where no fault is in its way. M7: and whatever ends
/// a grant, none of its znodes stays.
pub(super) fn check_releases(
    case: &Case<'_>,
    grants: &Grants<'_>,
    at_once: &'static str,
    left: &'static str,
    found: &mut Vec<Violation>,
) {
    for grant in grants.all() {
        let Some(person) = case.people.person(grant.who) else { continue };
        let belief = case.people.beliefs_of(grant.who).find(|belief| belief.since.at == grant.at);
        let Some(over) = belief.and_then(released) else { continue };
        let parts: Vec<&Contender<'_>> =
            grant.paths.iter().filter_map(|path| case.truth.find(path, grant.at)).collect();
        for part in &parts {
            let Some(at) = case.overdue(person, part, over) else { continue };
            let (who, path) = (grant.who, part.path);
            let sentence =
                format!("{path} is still there, and participant {who} has given its locks back");
            let violation = Violation::new(left, at, sentence);
            found.push(violation.involving([grant.at, over.at]).by([who]));
        }
        found.extend(one_by_one(case, at_once, person, (grant, over), &parts));
    }
}

/// The violation, if the znodes of one grant went in several txns.
fn one_by_one(
    case: &Case<'_>,
    id: &'static str,
    person: &Person<'_>,
    (grant, over): (&Grant<'_>, Moment),
    parts: &[&Contender<'_>],
) -> Option<Violation> {
    let call = case.people.call_at(person.id, over.at)?;
    let (answered, Outcome::Ok { .. }) = call.answered? else { return None };
    let timeout = case.truth.longest_timeout_us();
    let is_spared = case.faults.spared(person.host, call.invoked.us, answered.us, timeout);
    if call.operation != "release" || !is_spared {
        return None;
    }
    let first = parts.first()?.deleted_at();
    let other = parts.iter().find(|part| part.deleted_at() != first)?;
    let sentence = format!(
        "the `release` of participant {} deleted {} and {} in different txns",
        person.id,
        parts.first()?.path,
        other.path
    );
    let violation = Violation::new(id, answered.at, sentence);
    Some(violation.involving([grant.at, call.invoked.at]).by([person.id]))
}

fn released(belief: &Belief<'_>) -> Option<Moment> {
    belief.over.filter(|(_, how)| *how == Over::Released).map(|(when, _)| when)
}

/// Whether a call asks for locks.
fn asks(case: &Case<'_>, call: &Call<'_>) -> bool {
    case.promise.asks.contains(&call.operation)
}
