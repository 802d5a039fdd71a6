//! Nobody waits for nothing, and who waits, waits quietly.

use serde_json::Value;

use crate::history::{Change, Outcome, What};
use crate::people::{Call, End};
use crate::polling::{self, Allowance};
use crate::truth::{Contender, split};
use crate::{Case, Violation, turns};

use super::log::{Log, part_of};
use super::takes::takes;

/// How long it may take that an item is taken for which somebody waits, where no fault is in the way,
/// beyond a session's timeout: the first in line may be dead.
const UNDISTURBED_US: u64 = 4_000_000;

/// The host calls of a call: an old list's next items, of which some are taken by others, a list, the place,
/// the wait for the next one ahead, the directories, two watches, and the same again.
const ALLOWED: Allowance = Allowance { once: 24, again: 6 };

/// W1: a participant does not wait while there is an item that nobody has, and a participant that asks while
/// there is none is not turned away. H1: a participant that waits stands in line, and asks the ensemble no
/// more often than it has a reason to.
pub fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    check_wakes(case, log, found);
    check_refusals(case, found);
    check_herd(case, found);
}

/// W1: an item that nobody has and for which somebody waits is taken, once no host is disturbed any more:
/// a participant that still waits then stands behind others. As long as others take one item after the other,
/// the participant may be the slower one each time.
fn check_wakes(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    let calls: Vec<&Call<'_>> = case.people.calls().iter().filter(|call| takes(call)).collect();
    for item in &log.items {
        let taken = taken(log, item.queue);
        for (since, until) in item.spans() {
            for call in &calls {
                let person = case.people.person(call.who);
                let Some(person) = person.filter(|it| it.mount == item.queue) else { continue };
                let ends =
                    [until, call.answered.map(|(answered, _)| answered), person.end.map(End::when)];
                let end = ends.into_iter().flatten().map(|end| end.us).min();
                let from = since.us.max(call.invoked.us);
                let Some(due) =
                    due_behind(case, from, &taken).filter(|due| end.is_none_or(|end| end > *due))
                else {
                    continue;
                };
                let Some(at) = case.first_after(due) else { continue };
                let sentence = format!(
                    "participant {} waits for an item, and {} is there for anybody to take",
                    call.who, item.path
                );
                let violation = Violation::new("W1", at, sentence).by([call.who]);
                found.push(violation.involving([since.at, call.invoked.at]));
            }
        }
    }
}

/// When items of that queue were taken or went, in microseconds.
fn taken(log: &Log<'_>, queue: &str) -> Vec<u64> {
    let items = log.items.iter().filter(|item| item.queue == queue);
    let moments = items.flat_map(|item| {
        let claimed = item.claims.iter().map(|claim| claim.since.us);
        claimed.chain(item.gone.map(|gone| gone.when.us))
    });
    moments.collect()
}

/// When something is due that could begin at that time, and anew each time that something was taken before
/// it was due.
fn due_behind(case: &Case<'_>, mut from: u64, taken: &[u64]) -> Option<u64> {
    loop {
        let due = due(case, from)?;
        let meanwhile = taken.iter().copied().filter(|us| from < *us && *us <= due);
        match meanwhile.max() {
            Some(last) => from = last,
            None => return Some(due),
        }
    }
}

/// How many items may be asked for at once.
const MOST: u64 = 64;

/// W1: who asks for items while there are none waits, and is answered neither an error nor none.
fn check_refusals(case: &Case<'_>, found: &mut Vec<Violation>) {
    let asks_for_a_wrong_number = |call: &Call<'_>| {
        let most = case.arguments(call).and_then(|given| given.get("max")?.as_u64());
        most.is_some_and(|most| !(1..=MOST).contains(&most))
    };
    turns::check_refusals_but(case, "W1", asks_for_a_wrong_number, found);
    for call in case.people.calls().iter().filter(|call| takes(call)) {
        let Some((answered, Outcome::Ok { value: Value::Array(items), .. })) = call.answered else {
            continue;
        };
        if items.is_empty() {
            let (who, operation) = (call.who, call.operation);
            let sentence = format!("the `{operation}` of participant {who} was answered no item");
            let violation = Violation::new("W1", answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
    }
}

/// When what could begin at that time is done on the host that takes longest.
fn due(case: &Case<'_>, from: u64) -> Option<u64> {
    let patience = case.truth.longest_timeout_us().saturating_add(UNDISTURBED_US);
    let due = |host| case.faults.due(host, from, patience);
    let dues: Option<Vec<u64>> = case.people.persons().map(|person| due(person.host)).collect();
    dues?.into_iter().max()
}

/// H1: who waits stands in line, and of the line only the first has to do with the items; and one that
/// waits asks as often as something has happened that it could wait for.
fn check_herd(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::HostCall { participant, paths, name, .. } = &entry.what else { continue };
        let Some(person) = case.people.person(*participant) else { continue };
        let call = case.people.call_at(person.id, at);
        let Some(call) = call.filter(|call| takes(call)) else { continue };
        let asked_at =
            |place: &Contender<'_>| case.people.asked_at(place).unwrap_or(place.created.at);
        let is_its_place = |place: &&Contender<'_>| {
            split(place.parent) == Some((person.mount, "consumers"))
                && case.people.asker(place).is_some_and(|asker| asker.id == *participant)
                && (call.invoked.at..at).contains(&asked_at(place))
        };
        // It may be gone by now, and its owner not know that. Of two that two participants of one session
        // asked for at one time, either may be this one's.
        let mut own = case.truth.contenders().iter().filter(is_its_place).peekable();
        let stands = own.peek().is_some();
        let is_first = own.any(|place| place.first.is_some_and(|first| first.at < at));
        let looks = paths.iter().any(|path| split(path) == Some((person.mount, "items")));
        let why = match (name.as_str(), stands) {
            ("wait", false) => "waits without a place in line",
            (_, true) if looks && !is_first => {
                "looks at the items, and others are ahead of it in line"
            }
            _ => continue,
        };
        let sentence = format!("participant {participant} {why}");
        found.push(Violation::new("H1", at, sentence).by([*participant]));
    }
    check_polling(case, found);
}

fn check_polling(case: &Case<'_>, found: &mut Vec<Violation>) {
    let is_reason = |change: &Change| match change {
        Change::Created { path, .. } | Change::Deleted { path } => part_of(path)
            .is_some_and(|(_, part, _)| ["items", "claims", "consumers"].contains(&part)),
        _ => false,
    };
    for call in case.people.calls().iter().filter(|call| takes(call)) {
        polling::check_call(case, call, ALLOWED, is_reason, "H1", found);
    }
}
