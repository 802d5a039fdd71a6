//! Does it go on? Nobody waits in a ring, nobody waits for nothing, and nobody is turned away.

use std::collections::BTreeSet;

use serde_json::Value;
use wok_judge::history::{Outcome, ParticipantId, What};
use wok_judge::people::Call;
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation, turns};

use crate::lens::{Grants, name_of};
use crate::{asked, is_sound};

/// How long a hand-over may take after the last fault, beyond two of the longest session timeouts: one
/// for the session of a killed host, one for a connection to be given up and found again.
const HAND_OVER_US: u64 = 5_000_000;

/// A place that a component knows to be its own.
struct Place<'a> {
    who: ParticipantId,
    contender: &'a Contender<'a>,
    /// The entry that told it. Before, it may be one that nobody asks for any more: the request of a wait
    /// that was given up, carried out late.
    at: usize,
    /// The call that it was made for.
    call: &'a Call<'a>,
}

impl Place<'_> {
    /// Whether its participant waits with it after that entry.
    fn waits(&self, case: &Case<'_>, at: usize) -> bool {
        let is_over = self.call.answered.is_some_and(|(answered, _)| answered.at <= at);
        let end = case.people.person(self.who).and_then(|person| person.end);
        let has_ended = end.is_some_and(|end| end.when().at <= at);
        let is_known = self.at <= at && self.contender.lives_at(at);
        is_known && case.promise.waits.contains(&self.call.operation) && !is_over && !has_ended
    }

    fn is_ahead_of(&self, other: &Place<'_>) -> bool {
        let (one, other) = (self.contender, other.contender);
        one.parent == other.parent && one.came < other.came
    }
}

/// All places, in the order in which their participants knew them.
fn places<'a>(case: &'a Case<'a>) -> Vec<Place<'a>> {
    let entries = case.history.iter().enumerate();
    let answered = entries.filter_map(|(at, entry)| match &entry.what {
        What::HostCallAnswered { participant, created: Some(path), .. } => {
            let contender = case.truth.find(path, at)?;
            let call = case.people.call_at(*participant, at)?;
            Some(Place { who: *participant, contender, at, call })
        }
        _ => None,
    });
    answered.collect()
}

/// D1: nobody waits for somebody who waits for it, directly or by others. Looked at whenever somebody has
/// gone to the end of a line: only then can a ring close.
pub(super) fn check_rings(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let places = places(case);
    for newest in places.iter().filter(|it| it.waits(case, it.at)) {
        let (who, at) = (newest.who, newest.at);
        let waiting: Vec<&Place<'_>> = places.iter().filter(|it| it.waits(case, at)).collect();
        let ahead_of = |who: ParticipantId| {
            let own = waiting.iter().filter(move |it| it.who == who);
            let ahead = own.flat_map(|own| waiting.iter().filter(|it| it.is_ahead_of(own)));
            ahead.map(|other| other.who)
        };
        let (mut reached, mut next) = (BTreeSet::new(), vec![who]);
        while let Some(one) = next.pop() {
            next.extend(ahead_of(one).filter(|other| reached.insert(*other)));
        }
        if !reached.contains(&who) {
            continue;
        }
        let sentence = format!(
            "participant {who} waits with {} for one that waits for it, directly or by others: none \
             of them is ever granted anything",
            newest.contender.path
        );
        found.push(Violation::new(id, at, sentence).by(reached));
    }
}

/// W1: somebody whose newest contender is the first in its line goes on: to the line of the next lock, or
/// it is answered.
pub(super) fn check_turns(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let Some(calm) = case.faults.calm() else { return };
    let patience = case.truth.longest_timeout_us().saturating_mul(2).saturating_add(HAND_OVER_US);
    let places = places(case);
    for call in case.people.calls() {
        let Some(person) = case.people.person(call.who) else { continue };
        let own = places.iter().rev().find(|place| place.call.id == call.id);
        let Some(Place { contender: newest, .. }) = own else { continue };
        let Some(first) = newest.first else { continue };
        let due = first.us.max(calm.us).saturating_add(patience);
        let Some(at) = case.first_after(due) else { continue };
        let is_before = |when: Option<u64>| when.is_some_and(|when| when <= due);
        if is_before(newest.deleted_at().map(|when| when.us))
            || is_before(call.answered.map(|(when, _)| when.us))
            || is_before(person.end.map(|end| end.when().us))
        {
            continue;
        }
        let (who, path) = (call.who, newest.path);
        let sentence = format!(
            "participant {who} goes on waiting, though {path} has been first in line since entry {}, \
             and it stands in no other line behind that",
            first.at
        );
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([calm.at, first.at, call.invoked.at]).by([who]));
    }
}

/// W1 of those who are turned away: only for names that are none, and where other locks are held.
pub(super) fn check_refusals(
    case: &Case<'_>,
    grants: &Grants<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let holds_others = |call: &Call<'_>, names: &[&str]| {
        let Some(person) = case.people.person(call.who) else { return false };
        let mut beliefs = case.people.beliefs_of(call.who).filter(|belief| {
            belief.since.at < call.invoked.at && belief.lasts_beyond(call.invoked.at)
        });
        beliefs.any(|belief| {
            let grant = grants.all().find(|it| it.who == call.who && it.at == belief.since.at);
            grant.is_some_and(|grant| grant.names(person) != names)
        })
    };
    let is_refused = |call: &Call<'_>| {
        let Some((_, Outcome::Err { value, .. })) = call.answered else { return false };
        let names = asked(case, call);
        value.get("invalid").is_some() && (!is_sound(&names) || holds_others(call, &names))
    };
    turns::check_refusals_but(case, id, is_refused, found);
}

/// W3: an attempt watches nothing, and the lock that it names was another's when it stood in its line.
pub(super) fn check_attempts(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let attempts = || case.people.calls().iter().filter(|call| call.operation == "try-acquire");
    for (at, entry) in case.history.iter().enumerate() {
        let What::HostCall { participant: who, name, .. } = &entry.what else { continue };
        let call = case.people.call_at(*who, at).filter(|call| call.operation == "try-acquire");
        if let Some(call) = call.filter(|_| name == "wait" || name.starts_with("watch")) {
            let sentence = format!("the `try-acquire` of participant {who} called `{name}`");
            found.push(Violation::new(id, at, sentence).involving([call.invoked.at]).by([*who]));
        }
    }
    for call in attempts() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(busy) = value.get("busy").and_then(Value::as_str) else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let was_behind = case.truth.contenders().iter().any(|it| {
            let is_own = case.people.asker(it).is_some_and(|asker| asker.id == call.who);
            let within = call.invoked.at < it.created.at && it.created.at < answered.at;
            let is_there = is_own && within && name_of(person, it.parent) == Some(busy);
            is_there && case.truth.in_the_way_of(it, it.created.at).is_some()
        });
        if was_behind && asked(case, call).contains(&busy) {
            continue;
        }
        let who = call.who;
        let sentence = format!(
            "the `try-acquire` of participant {who} was answered that {busy:?} is somebody else's, and \
             nobody was ahead of it there"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
