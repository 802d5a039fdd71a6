//! Was it theirs to have? Grants against the ensemble's log.

use crate::history::{Outcome, ParticipantId, Told, What};
use crate::people::{Belief, Call, Person};
use crate::truth::Contender;
use crate::{Case, Moment, Violation};

/// M1: a grant names the participant's own contender, of its own session, by its `czxid`, and that
/// was the first of its line at some moment between being asked for and being told. It may be gone
/// by the time it is told: knowledge is old. One that was never first is W2's.
pub fn check_validity(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for belief in case.people.beliefs() {
        let why = match belief.contender {
            None => Some(format!("{} is no contender at all", belief.path)),
            Some(contender) => invalid(case, belief, contender),
        };
        let Some(why) = why else { continue };
        let sentence = format!("{}, but {why}", granted(case, belief));
        let created = belief.contender.map(|contender| contender.created.at);
        found.push(
            Violation::new(id, belief.since.at, sentence).involving(created).by([belief.who]),
        );
    }
    check_old_answers(case, id, found);
}

/// M1 of what is answered: a grant's contender was neither gone nor given up before it was asked for.
fn check_old_answers(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (call, answered, fence) in granting(case) {
        let Some(contender) = own(case, call.who, fence) else { continue };
        let belief = case.people.granted(contender);
        // It may be gone, and nobody has heard of it yet: M5 asks for how long.
        if belief.is_some_and(|belief| belief.lasts_beyond(call.invoked.at)) {
            continue;
        }
        let given_up = belief.and_then(|belief| belief.over).map(|(when, _)| (when, "given up"));
        let gone = contender.deleted_at().map(|when| (when, "gone"));
        let before = given_up.or(gone).filter(|(when, _)| when.at <= call.invoked.at);
        let Some((when, how)) = before else { continue };
        let (who, operation, path) = (call.who, call.operation, contender.path);
        let sentence = format!(
            "`{operation}` answered participant {who} fence {fence}, but {path} was {how} since \
             entry {}, before it was asked for",
            when.at
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([when.at, call.invoked.at]).by([who]));
    }
}

fn invalid(case: &Case<'_>, belief: &Belief<'_>, contender: &Contender<'_>) -> Option<String> {
    let path = contender.path;
    if u64::try_from(contender.czxid) != Ok(belief.fence) {
        return Some(format!("the czxid of {path} is {}", contender.czxid));
    }
    let person = case.people.person(belief.who)?;
    if contender.owner != person.session {
        return Some(format!("{path} belongs to session {:#x}, not to its own", contender.owner));
    }
    if let Some(asker) = case.people.asker(contender).filter(|asker| asker.id != belief.who) {
        return Some(format!("{path} is participant {}'s", asker.id));
    }
    let deleted = contender.deleted.filter(|deletion| deletion.when.at <= belief.asked)?;
    Some(format!("{path} was gone since entry {}, before it was asked for", deleted.when.at))
}

/// W2: a participant is granted only after its contender was the first of its line, and what a
/// component says of a fence is what it was granted.
pub fn check_condition(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for belief in case.people.beliefs() {
        let Some(contender) = belief.contender else { continue };
        if contender.first.is_some_and(|first| first.at < belief.since.at) {
            continue;
        }
        let ahead = case.truth.in_the_way_of(contender, belief.since.at);
        let why = match ahead {
            Some(ahead) => format!("while {} stood before it all the time", ahead.path),
            None => "though it was never its turn".to_owned(),
        };
        let sentence = format!("{} {why}", granted(case, belief));
        let entries = [contender.created.at].into_iter().chain(ahead.map(|it| it.created.at));
        let others = ahead.and_then(|ahead| case.people.asker(ahead)).map(|other| other.id);
        let violation = Violation::new(id, belief.since.at, sentence);
        found.push(violation.involving(entries).by([belief.who]).by(others));
    }
    check_answers(case, id, found);
    check_events(case, id, found);
}

/// What a component answers as its fence is the fence of a contender of its own that was first in
/// line by then. The grant itself may still be on its way to the application, or be withheld
/// because it has gone stale.
fn check_answers(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (call, answered, fence) in granting(case) {
        let (who, operation) = (call.who, call.operation);
        let why = match own(case, who, fence) {
            None => "which is none of its contenders'".to_owned(),
            Some(it) if it.first.is_none_or(|first| first.at >= answered.at) => {
                format!("though it had never been the turn of {}", it.path)
            }
            Some(it) if is_unclaimed(case, it, call, answered) => {
                "but has not claimed it: nobody would be told of its loss".to_owned()
            }
            Some(_) => continue,
        };
        let sentence = format!("`{operation}` answered participant {who} fence {fence}, {why}");
        found
            .push(Violation::new(id, answered.at, sentence).involving([call.invoked.at]).by([who]));
    }
}

/// Whether nobody was ever told to hold what was answered, though no fault was in the way.
fn is_unclaimed(
    case: &Case<'_>,
    contender: &Contender<'_>,
    call: &Call<'_>,
    answered: Moment,
) -> bool {
    let timeout = case.truth.longest_timeout_us();
    let spared = |person: &Person<'_>| {
        case.faults.spared(person.host, call.invoked.us, answered.us, timeout)
    };
    case.people.granted(contender).is_none()
        && case.people.person(call.who).is_some_and(spared)
        // What comes in the same instant may be taken down after it.
        && case.first_after(answered.us).is_some()
}

/// The calls that were answered with a grant: when, and with which fence.
fn granting<'a>(case: &'a Case<'a>) -> impl Iterator<Item = (&'a Call<'a>, Moment, u64)> {
    case.people.calls().iter().filter_map(|call| {
        let (answered, Outcome::Ok { value, .. }) = call.answered? else { return None };
        let fence = value.get("fence").and_then(fence_of);
        let fence = fence.filter(|_| case.promise.asks.contains(&call.operation))?;
        Some((call, answered, fence))
    })
}

/// So is what it tells with events of its own.
fn check_events(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant, notice: Told::Emitted { event, detail } } = &entry.what
        else {
            continue;
        };
        let fence = detail.get("fence").and_then(|fence| fence.parse().ok());
        let is_grant = case.promise.events.contains(&event.as_str());
        let Some(fence) = fence.filter(|_| is_grant) else { continue };
        if own(case, *participant, fence).is_some() {
            continue;
        }
        let sentence = format!(
            "`{event}` told participant {participant} fence {fence}, which is none of its contenders'"
        );
        found.push(Violation::new(id, at, sentence).by([*participant]));
    }
}

/// The participant's contender of that fence.
fn own<'a>(case: &'a Case<'a>, who: ParticipantId, fence: u64) -> Option<&'a Contender<'a>> {
    let mut created = case.truth.created_by(i64::try_from(fence).ok()?);
    created.find(|contender| case.people.asker(contender).is_some_and(|asker| asker.id == who))
}

/// M4: in the order in which they became the owner, those granted show strictly growing fences, where
/// they exclude each other. One that took a place in line from another is not compared with those that
/// came after that place was taken: it is younger than its place.
pub fn check_growth(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut grants: Vec<_> = case
        .people
        .beliefs()
        .iter()
        .filter_map(|belief| belief.contender.map(|contender| (contender, belief)))
        .filter_map(|(contender, belief)| Some((contender, contender.first?, belief)))
        .collect();
    grants.sort_by_key(|(contender, first, belief)| (contender.parent, *first, belief.since));
    for (at, (contender, _, later)) in grants.iter().enumerate() {
        let before = grants.get(..at).unwrap_or_default().iter().rev();
        let line = before.take_while(|(earlier, ..)| earlier.parent == contender.parent);
        let wrong = line.filter(|(earlier, _, belief)| {
            let is_compared = earlier.replaces.is_none() && earlier.excludes(contender);
            (is_compared || earlier.id == contender.id) && belief.fence >= later.fence
        });
        let Some((_, _, earlier)) = wrong.max_by_key(|(_, _, belief)| belief.fence) else {
            continue;
        };
        let sentence = format!(
            "{} after participant {} had it with fence {}",
            granted(case, later),
            earlier.who,
            earlier.fence
        );
        let violation = Violation::new(id, later.since.at, sentence);
        found.push(violation.involving([earlier.since.at]).by([later.who, earlier.who]));
    }
}

/// M6: first come, first served, by the `czxid`s: nobody owns, and is granted, while one that came
/// earlier and cannot own beside it is still in line.
pub fn check_order(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for belief in case.people.beliefs() {
        let Some(contender) = belief.contender else { continue };
        let overtaken = contender.overtook.and_then(|id| case.truth.contender(id));
        let Some(overtaken) = overtaken else { continue };
        let sentence = format!(
            "{} before {}, which had come earlier and was still in line",
            granted(case, belief),
            overtaken.path
        );
        let entries = [overtaken.created.at, contender.created.at];
        let other = case.people.asker(overtaken).map(|person| person.id);
        let violation = Violation::new(id, belief.since.at, sentence).involving(entries);
        found.push(violation.by([belief.who]).by(other));
    }
}

/// The beginning of a sentence.
pub fn granted(case: &Case<'_>, belief: &Belief<'_>) -> String {
    let Belief { who, fence, .. } = belief;
    format!("participant {who} was granted {} with fence {fence}", case.promise.noun)
}

/// A 64-bit number as the API writes it: beyond 2^53 as a string.
pub fn fence_of(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
