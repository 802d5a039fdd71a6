//! How many leases there are, and whose turn it was to create them.

use wok_judge::grants::fence_of;
use wok_judge::history::Outcome;
use wok_judge::people::{Belief, Call};
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation};

use crate::grants::leases_of;
use crate::log::{Semaphore, Semaphores, Taking, is_queue_of};
use crate::wanted;

/// P2: leases are granted by the txn that takes their place out of the queue. After it there are no more
/// leases than permits, and it created as many as were asked for. Where there are fewer permits than
/// before, leases may be more for a while; then none are granted. The number that counts is the one
/// that was stored: a txn that creates leases and writes another number gives itself as many as it
/// likes.
///
/// A recipe may also create its leases first and wait with them, as Curator does. They are granted later:
/// at some time before that is told there were no more leases than permits.
pub(super) fn check_numbers(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for semaphore in semaphores.all() {
        found.extend(semaphore.takings.iter().filter_map(|it| changes_number(semaphore, id, it)));
        for taking in semaphore.takings.iter().filter(|taking| taking.place.is_some()) {
            let at = taking.when.at;
            found.extend(too_many(semaphore, (at, at), id, at, taking));
            let asked = place(case, taking).and_then(|place| asked(case, place));
            let Some(call) = asked.filter(|call| wanted(case, call) != taking.count) else {
                continue;
            };
            found.push(other_than_asked(case, id, at, call, taking.count));
        }
    }
    for belief in case.people.beliefs() {
        let leases = leases_of(case, semaphores, belief);
        let taken =
            leases.first().and_then(|lease| taking_of(case, semaphores, belief, lease.czxid));
        let Some((semaphore, taking)) = taken.filter(|(_, taking)| taking.place.is_none()) else {
            continue;
        };
        let told = belief.since.at;
        found.extend(too_many(semaphore, (taking.when.at, told), id, told, taking));
    }
}

/// P2 of what is answered: the grant has as many leases as the call asked for, also where it is one
/// that the participant had before.
pub(super) fn check_answers(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls().iter().filter(|call| call.operation == "acquire") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let fence = value.get("fence").and_then(fence_of);
        let czxid = fence.and_then(|fence| i64::try_from(fence).ok());
        let mount = case.people.person(call.who).map(|person| person.mount);
        let semaphore = mount.and_then(|mount| semaphores.at(mount));
        let Some((semaphore, czxid)) = semaphore.zip(czxid) else { continue };
        let count = u64::try_from(semaphore.created_by(czxid).count()).unwrap_or(u64::MAX);
        // Whether there is such a grant at all is M1's question.
        if count > 0 && count != wanted(case, call) {
            found.push(other_than_asked(case, id, answered.at, call, count));
        }
    }
}

fn taking_of<'a>(
    case: &Case<'_>,
    semaphores: &'a Semaphores<'a>,
    belief: &Belief<'_>,
    czxid: i64,
) -> Option<(&'a Semaphore<'a>, &'a Taking<'a>)> {
    let semaphore = semaphores.at(case.people.person(belief.who)?.mount)?;
    let taking = semaphore.takings.iter().find(|taking| taking.czxid == czxid)?;
    Some((semaphore, taking))
}

/// The violation, if there were more leases than permits between two entries all the time.
fn too_many(
    semaphore: &Semaphore<'_>,
    (from, until): (usize, usize),
    id: &'static str,
    at: usize,
    taking: &Taking<'_>,
) -> Option<Violation> {
    let over = |(taken, permits): (u64, u64)| (taken > permits).then_some((taken, permits));
    let states = semaphore.between(from, until);
    let counts: Option<Vec<_>> =
        states.map(|state| over((state.taken, state.permits.unwrap_or(0)))).collect();
    let (taken, permits) = counts?.last().copied()?;
    let sentence = format!(
        "{} leases were granted in {}/leases, and then there were {taken} for {permits} permits",
        taking.count, taking.directory
    );
    Some(Violation::new(id, at, sentence).involving([taking.when.at]).by(taking.asker))
}

/// The violation, if the txn that created leases wrote another number of permits than was stored.
fn changes_number(
    semaphore: &Semaphore<'_>,
    id: &'static str,
    taking: &Taking<'_>,
) -> Option<Violation> {
    let at = taking.when.at;
    let (before, after) = semaphore.permits_around(at)?;
    let after = after.filter(|after| *after != before)?;
    let sentence = format!(
        "{} leases were granted in {}/leases by a txn that wrote {after} permits over {before}",
        taking.count, taking.directory
    );
    Some(Violation::new(id, at, sentence).by(taking.asker))
}

fn other_than_asked(
    case: &Case<'_>,
    id: &'static str,
    at: usize,
    call: &Call<'_>,
    count: u64,
) -> Violation {
    let (who, wanted) = (call.who, wanted(case, call));
    let sentence =
        format!("{count} leases were granted to participant {who}, which asked for {wanted}");
    Violation::new(id, at, sentence).involving([call.invoked.at]).by([who])
}

/// P3: somebody whose settings say how many permits there are takes some only if that was the number at
/// some time since it first asked. The number may have changed since: what was compared once is not
/// compared again.
pub(super) fn check_settings(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    stated: Option<u64>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let Some(stated) = stated else { return };
    for semaphore in semaphores.all() {
        for taking in &semaphore.takings {
            let Some(who) = taking.asker else { continue };
            let mut own = case.people.calls().iter().filter(|call| call.who == who);
            let Some(first) = own.find(|call| call.operation == "acquire") else { continue };
            let stored = semaphore.between(first.invoked.at, taking.when.at);
            let stored: Vec<u64> = stored.filter_map(|state| state.permits).collect();
            if stored.is_empty() || stored.contains(&stated) {
                continue;
            }
            let sentence = format!(
                "participant {who} took permits though its settings say that there are {stated}, which \
                 was never stored since it first asked"
            );
            let violation = Violation::new(id, taking.when.at, sentence);
            found.push(violation.involving([first.invoked.at]).by([who]));
        }
    }
}

/// M6: who creates leases is the first in the queue.
pub(super) fn check_order(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for taking in semaphores.all().flat_map(|semaphore| &semaphore.takings) {
        let at = taking.when.at;
        let (why, before) = match place(case, taking) {
            None => ("without a place in the queue".to_owned(), None),
            Some(place) if place.first.is_some_and(|first| first.at < at) => continue,
            Some(place) => {
                let ahead = case.truth.in_the_way_of(place, at);
                let who = ahead.map_or("somebody", |ahead| ahead.path);
                (format!("while {who} stood before {}", place.path), ahead)
            }
        };
        let sentence = format!("leases were created in {}/leases {why}", taking.directory);
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving(before.map(|it| it.created.at)).by(taking.asker));
    }
}

/// The place in the queue that leases were taken with: the one that went for them, or one that stays.
fn place<'a>(case: &'a Case<'_>, taking: &Taking<'_>) -> Option<&'a Contender<'a>> {
    let at = taking.when.at;
    if let Some(path) = taking.place {
        return case.truth.find(path, at);
    }
    let is_its_own = |place: &&Contender<'_>| {
        let is_own = case.people.asker(place).is_some_and(|asker| Some(asker.id) == taking.asker);
        is_own && place.lives_at(at) && is_queue_of(place.parent, taking.directory)
    };
    let own = case.truth.contenders().iter().filter(is_its_own);
    own.min_by_key(|place| place.first.map_or(usize::MAX, |first| first.at))
}

/// The call that a place was made for.
fn asked<'a>(case: &'a Case<'_>, place: &Contender<'_>) -> Option<&'a Call<'a>> {
    let person = case.people.asker(place)?;
    case.people.call_at(person.id, place.created.at).filter(|call| call.operation == "acquire")
}
