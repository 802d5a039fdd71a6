//! Whether those who follow a transaction are told how it ended.

use wok_judge::history::{Outcome, Told, What};
use wok_judge::people::{Call, End};
use wok_judge::{Case, Moment, Violation};

use crate::Made;
use crate::arrivals::leaving;
use crate::log::{Log, Tx};

/// The operations by which a participant follows a transaction that is there.
const FOLLOWS: [&str; 2] = ["register", "vote"];

/// How long it may take, if no fault is in its way: a participant that follows several transactions sees to each
/// of them first, in some round trips of a slow link. An operation that waits sees to all of them as well.
const UNDISTURBED_US: u64 = 5_000_000;

/// T6: a participant is told how a transaction ended, and why, if it has begun it, registered for it or voted in
/// it, and nobody else is. Where a fault was in the way nothing is asked here.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let told = told(case, log);
    for Ending { at, who, tx, reason } in &told {
        let is_so = tx.decisions.iter().any(|made| made.when.at < *at && made.reason == *reason);
        let what = match (is_so, may_follow(case, calls, *who, tx, *at)) {
            (true, true) => continue,
            (false, _) => "with a reason that is not the decision's",
            (_, false) => "and had not begun it, nor registered or voted",
        };
        let sentence = format!("participant {who} was told of the end of {}, {what}", tx.path);
        found.push(Violation::new(id, *at, sentence).involving([tx.created.at]).by([*who]));
    }
    for (call, tx) in followed(case, calls, log) {
        let Some((at, from)) = due(case, call, tx) else { continue };
        let is_told = |ending: &Ending<'_, '_>| {
            let since = call.invoked.at..at;
            ending.who == call.who && ending.tx.path == tx.path && since.contains(&ending.at)
        };
        if told.iter().any(is_told) {
            continue;
        }
        let sentence = format!("participant {} was not told how {} ended", call.who, tx.path);
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([call.invoked.at, from.at]).by([call.who]));
    }
}

/// What a participant was told of an end.
struct Ending<'c, 'a> {
    at: usize,
    who: u32,
    tx: &'c Tx<'a>,
    reason: &'c str,
}

fn told<'c, 'a>(case: &'c Case<'a>, log: &'c Log<'a>) -> Vec<Ending<'c, 'a>> {
    let mut told = Vec::new();
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant, notice: Told::Emitted { event, detail } } = &entry.what
        else {
            continue;
        };
        let Some(person) = case.people.person(*participant) else { continue };
        let tx = detail.get("transaction").and_then(|path| log.find(person.mount, path));
        let Some(tx) = tx.filter(|_| event == "decided") else { continue };
        let reason = detail.get("reason").map_or("", String::as_str);
        told.push(Ending { at, who: *participant, tx, reason });
    }
    told
}

/// Whether the participant may follow the transaction at that entry: of a call that is withdrawn nobody knows
/// whether it was carried out.
fn may_follow(case: &Case<'_>, calls: &[Made<'_, '_>], who: u32, tx: &Tx<'_>, at: usize) -> bool {
    let of_site = calls.iter().any(|made| {
        made.call.who == who
            && made.tx.path == tx.path
            && FOLLOWS.contains(&made.call.operation)
            && made.call.invoked.at < at
    });
    let is_its_own = case.people.person(who).is_some_and(|person| person.session == tx.session);
    let begins = |call: &Call<'_>| {
        call.who == who && call.operation == "begin" && call.invoked.at < tx.created.at
    };
    of_site || (is_its_own && case.people.calls().iter().any(begins))
}

/// The calls that were answered by which a participant follows a transaction.
fn followed<'c, 'a>(
    case: &'c Case<'a>,
    calls: &'c [Made<'c, 'a>],
    log: &'c Log<'a>,
) -> impl Iterator<Item = (&'c Call<'a>, &'c Tx<'a>)> {
    let of_sites = calls.iter().filter(|made| FOLLOWS.contains(&made.call.operation));
    let of_sites = of_sites.map(|made| (made.call, made.tx));
    let begun = case.people.calls().iter().filter(|call| call.operation == "begin");
    let begun = begun.filter_map(|call| {
        let (_, Outcome::Ok { value, .. }) = call.answered? else { return None };
        Some((call, log.find(case.people.person(call.who)?.mount, value.as_str()?)?))
    });
    let all = of_sites.chain(begun);
    all.filter(|(call, _)| matches!(call.answered, Some((_, Outcome::Ok { .. }))))
}

/// By when the participant that made the call has to have been told, and since when it could be. None if it
/// need not be.
fn due(case: &Case<'_>, call: &Call<'_>, tx: &Tx<'_>) -> Option<(usize, Moment)> {
    let (answered, _) = call.answered?;
    let (decided, _) = tx.decision()?;
    let (from, person) = (decided.max(answered), case.people.person(call.who)?);
    let due = from.us.saturating_add(UNDISTURBED_US);
    let at = case.first_after(due)?;
    let ends = [person.end.map(End::when), leaving(case, call.who), tx.deleted];
    let is_over = ends.into_iter().flatten().any(|end| end.at <= at);
    // The decision may be left to a coordinator of any host.
    (!is_over && case.is_undisturbed(from.us, due)).then_some((at, from))
}
