//! Whether a member has a place, and nobody else does.

use std::collections::BTreeMap;

use wok_judge::departures::Presence;
use wok_judge::grants::fence_of;
use wok_judge::history::{Entry, ParticipantId, What};
use wok_judge::{Case, Moment, Violation};

use crate::Made;
use crate::group::{Group, Member, State};

/// The members of that name and session that were created between two entries, and when. Another
/// participant of the host may have had the name before.
fn created<'x, 'a>(
    group: &'x Group<'a>,
    (name, session): (&'x str, i64),
    (from, until): (usize, usize),
) -> impl Iterator<Item = (Moment, Member<'a>)> + 'x {
    let within = group.states.iter().filter(move |it| from < it.from.at && it.from.at < until);
    within.filter_map(move |state| {
        let member = state.members.get(name)?;
        (member.session == session && member.fence == state.revision)
            .then_some((state.from, *member))
    })
}

/// When a member went, if it did.
fn gone(group: &Group<'_>, name: &str, fence: u64, since: usize) -> Option<Moment> {
    let mut later = group.states.iter().filter(|state| state.from.at > since);
    let is_there = |members: &BTreeMap<&str, Member<'_>>| {
        members.get(name).is_some_and(|member| member.fence == fence)
    };
    later.find(|state| !is_there(&state.members)).map(|state| state.from)
}

/// The places that participants were told to have.
pub(super) fn told(calls: &[Made<'_, '_>]) -> impl Iterator<Item = Presence> {
    let those = calls.iter().filter(|made| made.call.operation == "join");
    those.filter_map(|made| Presence::of(made.person, made.value()?.1))
}

/// G4 of joining: who is told that it joined has a znode by that name, which was created for it
/// during the call; who is not has none.
pub(super) fn check_joins(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.call.operation == "join") {
        let Some((name, (answered, _))) = made.text("name").zip(made.call.answered) else {
            continue;
        };
        let (who, session, invoked) = (made.call.who, made.person.session, made.call.invoked.at);
        let mut own = created(group, (name, session), (invoked, answered.at));
        if let Some((at, value)) = made.value() {
            let fence = value.get("fence").and_then(fence_of);
            let path = value.get("path").and_then(|path| path.as_str());
            let is_own = own.any(|(_, own)| Some(own.fence) == fence)
                && path.and_then(|path| path.strip_prefix('/')) == Some(name);
            if !is_own {
                let sentence = format!(
                    "participant {who} joined as {name} by {value}, and no such znode was created \
                     for it"
                );
                found.push(Violation::new(id, at, sentence).involving([invoked]).by([who]));
            }
            continue;
        }
        // It may be that of another participant of the same host, which asks for the name as well.
        let is_anothers = calls.iter().any(|other| {
            other.call.who != who
                && other.call.operation == "join"
                && other.person.session == session
                && other.text("name") == Some(name)
                && other.call.invoked.at < answered.at
                && other.call.answered.is_none_or(|(over, _)| over.at > invoked)
        });
        if is_anothers {
            continue;
        }
        for (since, own) in own {
            let deleted = gone(group, name, own.fence, since.at);
            let Some(at) = case.outstays(made.person, session, deleted, answered) else { continue };
            let sentence =
                format!("{name} is still there, and the `join` of participant {who} has failed");
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([since.at, answered.at]).by([who]));
        }
    }
}

/// G4 of leaving: who was told that it left has no znode any more.
pub(super) fn check_leaves(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut joined: BTreeMap<ParticipantId, (&str, u64)> = BTreeMap::new();
    for made in calls {
        let Some((at, value)) = made.value() else { continue };
        let who = made.call.who;
        match made.call.operation {
            "join" => {
                let fence = value.get("fence").and_then(fence_of);
                if let Some(place) = made.text("name").zip(fence) {
                    joined.insert(who, place);
                }
            }
            "leave" => {
                let Some((name, fence)) = joined.remove(&who) else { continue };
                let deleted = gone(group, name, fence, made.call.invoked.at);
                let is_there = deleted.is_none_or(|deleted| deleted.at > at);
                // A caller that withdraws is answered at once; the host deletes the znode after that.
                let at = match is_withdrawn(case, made) {
                    true => made.call.answered.and_then(|(answered, _)| {
                        case.outstays(made.person, made.person.session, deleted, answered)
                    }),
                    false => is_there.then_some(at),
                };
                if let Some(at) = at {
                    let sentence = format!("participant {who} left, and {name} is still there");
                    let violation = Violation::new(id, at, sentence);
                    found.push(violation.involving([made.call.invoked.at]).by([who]));
                }
            }
            _ => {}
        }
    }
}

/// Whether the caller withdrew the call.
fn is_withdrawn(case: &Case<'_>, made: &Made<'_, '_>) -> bool {
    let is_it = |entry: &Entry| matches!(&entry.what, What::Withdrawn { call, .. } if *call == made.call.id);
    let until = made.call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
    let meanwhile = case.history.iter().take(until).skip(made.call.invoked.at);
    meanwhile.into_iter().any(is_it)
}

/// G5: at the revision that an update is answered, the member says what it was given to say. That
/// revision was made during the call; or it is older, and the member has said the same since then: an
/// update that was withdrawn may have arrived, and the next one of the same text finds it there.
pub(super) fn check_updates(
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.call.operation == "update") {
        let Some(((at, value), data)) = made.value().zip(made.text("data")) else { continue };
        let (who, session, invoked) = (made.call.who, made.person.session, made.call.invoked.at);
        let state = fence_of(value).and_then(|revision| group.at_revision(revision, at));
        let says =
            |member: &Member<'_>| member.session == session && member.data == data.as_bytes();
        let since = |it: &State<'_>| {
            group
                .during(it.from.at, invoked.max(it.from.at) + 1)
                .all(|it| it.members.values().any(says))
        };
        let is_right = state.is_some_and(since);
        if is_right {
            continue;
        }
        let sentence = format!(
            "the `update` of participant {who} was answered {value}, and it did not say {data:?} then"
        );
        found.push(Violation::new(id, at, sentence).involving([invoked]).by([who]));
    }
}
