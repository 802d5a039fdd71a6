//! What is answered about the number of permits: is it so?

use serde_json::Value;
use wok_judge::history::{Change, Outcome, What};
use wok_judge::people::{Call, Person};
use wok_judge::{Case, Moment, Violation};

use crate::log::{NumberWrite, Semaphores, number};

/// P4: `available` tells of permits, and of how many nobody holds, as it was at one moment; and `resize` is
/// answered when its number is stored.
pub(super) fn check(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let why = match call.operation {
            "available" => wrong(case, semaphores, person, call, (answered, value)),
            "resize" => unstored(case, person, call, answered),
            _ => None,
        };
        let Some(why) = why else { continue };
        let (who, operation) = (call.who, call.operation);
        let sentence = format!("the `{operation}` of participant {who} was answered, but {why}");
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// What is wrong with the numbers that `available` told, if they never were so together.
fn wrong(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    person: &Person<'_>,
    call: &Call<'_>,
    (answered, told): (Moment, &Value),
) -> Option<String> {
    let count = |key: &str| told.get(key).and_then(Value::as_u64);
    let (permits, available) = count("permits").zip(count("available"))?;
    let stated = person.config.get("permits").and_then(Value::as_u64);
    // Where nothing is stored the settings say how many there are.
    let is_so = |stored: Option<u64>, taken: u64| {
        stored.or(stated) == Some(permits) && available == permits.saturating_sub(taken)
    };
    let from = case.known_to_server(call, answered);
    let states = semaphores.at(person.mount).map_or(&[][..], |it| it.states.as_slice());
    let begins_later = states.first().is_none_or(|first| first.since.at > from);
    let first = states.partition_point(|state| state.since.at <= from).saturating_sub(1);
    let mut since = states.get(first..).unwrap_or_default().iter();
    let was_so = (begins_later && is_so(None, 0))
        || since.any(|it| it.since.us <= answered.us && is_so(it.permits, it.taken));
    (!was_so)
        .then(|| format!("there never were {available} free ones of {permits} since entry {from}"))
}

/// Why the number that `resize` is to store was not stored, if it was not.
fn unstored(
    case: &Case<'_>,
    person: &Person<'_>,
    call: &Call<'_>,
    answered: Moment,
) -> Option<String> {
    let asked = case.arguments(call)?.get("permits")?.as_u64()?;
    let stores = |change: &Change| match change {
        Change::Created { path, data, .. } | Change::DataSet { path, data, .. } => {
            path.strip_prefix(person.mount) == Some("/leases")
                && number(data.bytes()) == Some(asked)
        }
        _ => false,
    };
    let meanwhile = case.history.get(call.invoked.at..answered.at)?;
    let is_stored = meanwhile.iter().any(|entry| match &entry.what {
        What::Txn { session, changes, .. } => {
            *session == person.session && changes.iter().any(stores)
        }
        _ => false,
    });
    (!is_stored).then(|| format!("it did not store that there are {asked} permits"))
}

/// P4 of the number itself: nobody changes it but by a `resize`, and who stores the first one stores
/// what a `resize` or the settings say. What another program writes is that program's.
pub(super) fn check_writes(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for write in semaphores.all().flat_map(|semaphore| &semaphore.writes) {
        let is_its = |person: &&Person<'_>| {
            person.session == write.session && person.mount == write.directory
        };
        let writers: Vec<&Person<'_>> = case.people.persons().filter(is_its).collect();
        let stated = |person: &&Person<'_>| person.config.get("permits").and_then(Value::as_u64);
        let mut stated = writers.iter().filter_map(stated).peekable();
        let is_asked_for = match write.before {
            Some(before) => write.permits == Some(before),
            // Where nobody has said any number, this is not the place to ask where it comes from.
            None if !write.is_first || stated.peek().is_none() => true,
            None => write.permits.is_none_or(|permits| stated.any(|it| it == permits)),
        };
        if writers.is_empty() || is_asked_for || is_resize(case, &writers, write) {
            continue;
        }
        let text = |permits: Option<u64>| permits.map_or("none".to_owned(), |it| it.to_string());
        let sentence = format!(
            "{} permits are stored in {}/leases, where {} were, and no `resize` says so",
            text(write.permits),
            write.directory,
            text(write.before)
        );
        let violation = Violation::new(id, write.when.at, sentence);
        let one = writers.first().filter(|_| writers.len() == 1);
        found.push(violation.by(one.map(|person| person.id)));
    }
}

/// Whether one of those has called `resize` with the number that was written. A call that was given up
/// may take effect later.
fn is_resize(case: &Case<'_>, writers: &[&Person<'_>], write: &NumberWrite<'_>) -> bool {
    let asks = |call: &Call<'_>| {
        let asked = case.arguments(call).and_then(|given| given.get("permits")?.as_u64());
        let is_done = call.answered.is_some_and(|(answered, outcome)| {
            answered.at < write.when.at && matches!(outcome, Outcome::Ok { .. } | Outcome::Busy)
        });
        call.operation == "resize"
            && call.invoked.at < write.when.at
            && asked == write.permits
            && !is_done
            && writers.iter().any(|person| person.id == call.who)
    };
    case.people.calls().iter().any(asks)
}
