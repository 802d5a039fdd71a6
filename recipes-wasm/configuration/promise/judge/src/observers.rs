//! What observers are told.

use serde_json::Value as Json;
use wok_judge::history::{ParticipantId, Told, What};
use wok_judge::people::Person;
use wok_judge::{Moment, Violation};

use crate::Case;
use crate::calls::{Answer, Asked, Call, revision};
use crate::states::State;

/// How long an observer may take to hear of a change, beyond one session timeout without faults.
const HEARS_US: u64 = 2_000_000;

/// How long a wait may go on after a later revision where nothing disturbs it.
const UNDISTURBED_US: u64 = 1_000_000;

/// What an observer was told.
struct Heard<'a> {
    when: Moment,
    /// None: there is no configuration any more.
    revision: Option<i64>,
    /// The key that the event names.
    key: Option<&'a str>,
    is_event: bool,
}

/// K2: what an observer is told is a part of the true sequence of revisions, and its end.
pub(crate) fn check(case: &Case<'_, '_>, id: &'static str, found: &mut Vec<Violation>) {
    for person in case.people.persons() {
        let heard = heard(case, person.id);
        let Some(first) = heard.first().filter(|first| !first.is_event) else { continue };
        check_sequence(case, person.id, &heard, id, found);
        check_end(case, person, first, &heard, id, found);
    }
}

/// All that a participant was told, from its first observation on.
fn heard<'a>(case: &Case<'_, 'a>, who: ParticipantId) -> Vec<Heard<'a>> {
    let events = case.history.iter().enumerate().filter_map(|(at, entry)| match &entry.what {
        What::Told { participant, notice: Told::Emitted { event, detail } }
            if *participant == who && event == "changed" =>
        {
            let told = detail.get("revision").cloned().map(Json::String);
            let revision = told.as_ref().and_then(revision);
            let key = detail.get("key").map(String::as_str);
            Some(Heard { when: Moment::of(at, entry), revision, key, is_event: true })
        }
        _ => None,
    });
    let mut heard: Vec<_> = events.collect();
    let answers = case.calls_of(who).filter_map(|call| match (&call.answer, call.returned) {
        (Answer::Observed(revision), Some(when)) if matches!(call.asked, Asked::Observe) => {
            let mut during = heard.iter().filter(|event| event.when > call.invoked);
            let overtaken_by = during.find(|event| event.revision > Some(*revision));
            // An event of a later revision shows that the answer was ready by then. The answer may reach
            // its caller after the event, because events and answers have ways of their own.
            let when = overtaken_by.map_or(when, |event| when.min(event.when));
            Some(Heard { when, revision: Some(*revision), key: None, is_event: false })
        }
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    heard.extend(answers);
    heard.sort_by_key(|heard| (heard.when, heard.is_event));
    heard
}

/// Each revision was one, is higher than the one before, has the key that it is told with, and is told with
/// its key where it is one change.
fn check_sequence(
    case: &Case<'_, '_>,
    who: ParticipantId,
    heard: &[Heard<'_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut last = 0;
    // What the observer has found last; none where it has found nothing.
    let mut known = None;
    for told in heard {
        let before = std::mem::replace(&mut known, told.revision.filter(|found| *found > 0));
        let Some(revision) = told.revision else { continue };
        let states = case.states.between(0, told.when.at);
        let writes: Vec<_> = states.filter(|state| state.wrote_root).collect();
        let was = revision == 0 || writes.iter().any(|state| state.revision == revision);
        let wrong = if !was {
            "never was"
        } else if revision < last || (told.is_event && revision == last) {
            "is no news"
        } else if told.key.is_some_and(|key| {
            let mut since =
                writes.iter().filter(|state| last < state.revision && state.revision <= revision);
            let only = since.next().filter(|_| since.next().is_none());
            only.is_none_or(|state| state.changes.iter().all(|change| change.key != key))
        }) {
            "is not the only change since, or not of the key that it is told with"
        } else if told.is_event
            && told.key.is_none()
            && before.is_some_and(|before| is_one_change(&writes, before, revision))
        {
            "is one change since, and is told without its key"
        } else {
            last = revision;
            continue;
        };
        let sentence = format!("participant {who} was told of revision {revision}, which {wrong}");
        found.push(Violation::new(id, told.when.at, sentence).by([who]));
        last = last.max(revision);
    }
}

/// Whether the root was written once from one revision to the other, with the name of the one key that this
/// changed.
fn is_one_change(writes: &[&State<'_>], before: i64, revision: i64) -> bool {
    writes.windows(2).any(|pair| match pair {
        [old, new] if old.revision == before && new.revision == revision => {
            let names = |key: &str| new.root.is_some_and(|root| root.bytes() == key.as_bytes());
            matches!(new.changes.as_slice(), [change] if names(change.key))
        }
        _ => false,
    })
}

/// Of every change an observer has heard in time, or of a later one, if it is still there by then.
fn check_end(
    case: &Case<'_, '_>,
    person: &Person<'_>,
    first: &Heard<'_>,
    heard: &[Heard<'_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let patience = case.longest_timeout_us.saturating_add(HEARS_US);
    for state in case.states.all().iter().filter(|state| !state.changes.is_empty()) {
        let Some((made, zxid, _)) = state.made else { continue };
        let from = made.us.max(first.when.us);
        let Some(due) = case.faults.due(person.host, from, patience) else { continue };
        let at = case.history.partition_point(|entry| entry.at_us <= due);
        let is_over = person.end.is_some_and(|end| end.when().us <= due);
        if at >= case.history.len() || is_over || has_left(case, person.id, due) {
            continue;
        }
        let knows = |told: &Heard<'_>| {
            told.when.at < at && told.revision.is_some_and(|revision| revision >= zxid)
        };
        if heard.iter().any(knows) {
            continue;
        }
        let sentence = format!(
            "participant {} observes, and was not told of revision {zxid} in time",
            person.id
        );
        found.push(Violation::new(id, at, sentence).involving([made.at]).by([person.id]));
    }
}

/// K2: who waits for a later revision is answered one, and is answered when there is one.
pub(crate) fn check_waits(case: &Case<'_, '_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in &case.calls {
        let Asked::Wait(after) = call.asked else { continue };
        let wrong = match (&call.answer, call.returned) {
            (Answer::Observed(revision), Some(answered)) => {
                let mut states = case.states.between(0, answered.at);
                let was = states.any(|state| state.wrote_root && state.revision == *revision);
                (!was || *revision <= after).then(|| (answered.at, format!("answered {revision}")))
            }
            _ => None,
        };
        let late = || goes_on(case, call, after).map(|at| (at, "not answered".to_owned()));
        let Some((at, what)) = wrong.or_else(late) else { continue };
        let who = call.who;
        let sentence =
            format!("participant {who} waits for a revision after {after}: it is {what}");
        found.push(Violation::new(id, at, sentence).involving([call.invoked.at]).by([who]));
    }
}

/// Where a wait goes on though there has been a later revision for long enough, whatever ends the wait
/// afterwards.
fn goes_on(case: &Case<'_, '_>, call: &Call<'_>, after: i64) -> Option<usize> {
    let later = case.states.all().iter().find(|state| state.revision > after)?;
    let (made, ..) = later.made?;
    let from = made.us.max(call.invoked.us);
    let soon = from.saturating_add(UNDISTURBED_US);
    let due = match case.is_spared(call.host, from, soon) {
        true => soon,
        false => {
            let patience = case.longest_timeout_us.saturating_add(HEARS_US);
            case.faults.due(call.host, from, patience)?
        }
    };
    let person = case.people.person(call.who);
    let ended = person.and_then(|person| person.end);
    let is_over = call.returned.is_some_and(|returned| returned.us <= due)
        || ended.is_some_and(|end| end.when().us <= due)
        || has_left(case, call.who, due);
    let at = case.history.partition_point(|entry| entry.at_us <= due);
    (!is_over && at < case.history.len()).then_some(at)
}

/// Whether the participant was asked to leave by then, or its session was lost.
fn has_left(case: &Case<'_, '_>, who: ParticipantId, by_us: u64) -> bool {
    let until = case.history.iter().take_while(|entry| entry.at_us <= by_us);
    let leaves = |what: &What| match what {
        What::Leaving { participant } => *participant == who,
        What::SessionLost { session, .. } => {
            case.people.person(who).is_some_and(|person| person.session == *session)
        }
        _ => false,
    };
    until.into_iter().any(|entry| leaves(&entry.what))
}
