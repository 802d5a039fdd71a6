//! Does it go on? The first in the queue gets its permits, and nobody is turned away for nothing.

use wok_judge::history::Outcome;
use wok_judge::people::{Call, End};
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation};

use crate::log::{Semaphore, Semaphores};
use crate::wanted;

/// How long it may take that permits are taken which are free, where no fault is in the way.
const UNDISTURBED_US: u64 = 2_000_000;

/// W1: enough permits are free all the time, and the first in the queue takes them, however they came to
/// be free: leases went, or there are more permits than before.
pub(super) fn check_waits(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for place in case.truth.contenders() {
        let Some(semaphore) = semaphores.of_place(place) else { continue };
        let Some((person, first)) = case.people.asker(place).zip(place.first) else { continue };
        let call = case.people.call_at(person.id, place.created.at);
        let Some(call) = call.filter(|call| call.operation == "acquire") else { continue };
        let ends = place.deleted_at().into_iter().chain(call.answered.map(|(when, _)| when));
        let until = ends.chain(person.end.map(End::when)).map(|end| end.us).min();
        let until = until.unwrap_or_else(|| case.history.last().map_or(0, |last| last.at_us));
        let timeout = case.truth.longest_timeout_us();
        for (from, to) in spans(semaphore, wanted(case, call)) {
            let from = from.max(first.us);
            let due = from.saturating_add(UNDISTURBED_US);
            let is_late =
                due < to.min(until) && case.faults.spared(person.host, from, due, timeout);
            let Some(at) = case.first_after(due).filter(|_| is_late) else { continue };
            found.push(late(case, id, at, call, place));
        }
    }
}

/// The times in which so many permits are free without a break.
fn spans(semaphore: &Semaphore<'_>, wanted: u64) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    let mut since = None;
    for state in &semaphore.states {
        match (state.free() >= wanted, since) {
            (true, None) => since = Some(state.since.us),
            (false, Some(from)) => {
                spans.push((from, state.since.us));
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|from| (from, u64::MAX)));
    spans
}

fn late(
    case: &Case<'_>,
    id: &'static str,
    at: usize,
    call: &Call<'_>,
    place: &Contender<'_>,
) -> Violation {
    let (who, path) = (call.who, place.path);
    let sentence = format!(
        "participant {who} waits for {} permits, which are free, and {path} is the first in the queue",
        wanted(case, call)
    );
    Violation::new(id, at, sentence).involving([call.invoked.at, place.created.at]).by([who])
}

/// How many permits one participant may hold.
const MOST: u64 = 100;

/// W1 of those who are turned away: only where settings differ, where there are too few permits,
/// for somebody who holds another number of permits, and where nobody may have so many.
pub(super) fn check_refusals(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    stated: Option<u64>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let is_refused = |call: &Call<'_>| {
        let Some((answered, Outcome::Err { value, .. })) = call.answered else { return false };
        let Some(person) = case.people.person(call.who) else { return false };
        let wanted = wanted(case, call);
        let is_wrong = |permits: u64| permits < wanted || stated.is_some_and(|it| it != permits);
        // Where nothing is stored yet, what the participant states itself counts, if it does.
        let is_unstored_wrong = || stated.is_none_or(is_wrong);
        let was_wrong = semaphores.at(person.mount).map_or_else(is_unstored_wrong, |semaphore| {
            let mut states = semaphore.between(call.invoked.at, answered.at);
            // The number may have been stored only after the call began.
            (!semaphore.is_known_at(call.invoked.at) && is_unstored_wrong())
                || states.any(|state| state.permits.map_or_else(is_unstored_wrong, is_wrong))
        });
        let holds = case.people.beliefs_of(call.who).any(|belief| {
            belief.since.at < call.invoked.at && belief.lasts_beyond(call.invoked.at)
        });
        let is_for_nobody = !(1..=MOST).contains(&wanted);
        value.get("invalid").is_some() && (was_wrong || holds || is_for_nobody)
    };
    wok_judge::turns::check_refusals_but(case, id, is_refused, found);
}
