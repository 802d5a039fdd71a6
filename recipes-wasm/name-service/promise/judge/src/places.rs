//! Whether who registers has an instance, and nobody else does.

use std::collections::BTreeMap;

use wok_judge::departures::Presence;
use wok_judge::grants::fence_of;
use wok_judge::history::{Entry, ParticipantId, What};
use wok_judge::{Case, Moment, Violation};

use crate::Made;
use crate::service::{Instance, Service};
use crate::views::spelled;

/// The instances of that session that were created between two entries, with their ids and moments.
fn created<'x, 'a>(
    service: &'x Service<'a>,
    session: i64,
    (from, until): (usize, usize),
) -> impl Iterator<Item = (Moment, &'a str, Instance<'a>)> + 'x {
    let within = service.states.iter().filter(move |it| from < it.from.at && it.from.at < until);
    within.flat_map(move |state| {
        let is_new = move |instance: &Instance<'_>| {
            instance.session == session && instance.fence == state.revision
        };
        let all = state.instances.iter();
        all.filter(move |(_, it)| is_new(it)).map(|(id, it)| (state.from, *id, *it))
    })
}

/// When an instance went, if it did.
fn gone(service: &Service<'_>, id: &str, since: usize) -> Option<Moment> {
    let mut later = service.states.iter().filter(|state| state.from.at > since);
    later.find(|state| !state.instances.contains_key(id)).map(|state| state.from)
}

/// The instances that participants were told to have.
pub(super) fn told(calls: &[Made<'_, '_>]) -> impl Iterator<Item = Presence> {
    let those = calls.iter().filter(|made| made.call.operation == "register");
    those.filter_map(|made| Presence::of(made.person, made.value()?.1))
}

/// N4: who is told that it registered has an instance that was created for it during the call, and who
/// is not has none. Who deregistered has none any more.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    services: &BTreeMap<&str, Service<'_>>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut registered: BTreeMap<ParticipantId, (&str, &str)> = BTreeMap::new();
    for made in calls {
        let who = made.call.who;
        match made.call.operation {
            "register" => {
                let Some((name, service)) =
                    made.name().and_then(|name| Some((name, services.get(name)?)))
                else {
                    continue;
                };
                if let Some(path) = made.value().and_then(|(_, value)| value.get("path")?.as_str())
                {
                    registered.insert(who, (name, path));
                    found.extend(not_registered(made, name, service, id));
                } else {
                    found.extend(left_over(case, made, calls, service, id));
                }
            }
            "deregister" => {
                let Some((at, _)) = made.value() else { continue };
                let Some((name, path)) = registered.remove(&who) else { continue };
                let Some(service) = services.get(name) else { continue };
                let own = path.rsplit('/').next().unwrap_or_default();
                let deleted = gone(service, own, made.call.invoked.at);
                let is_there = deleted.is_none_or(|deleted| deleted.at > at);
                // A caller that withdraws is answered at once; the host deletes the znode after that.
                let at = match is_withdrawn(case, made) {
                    true => made.call.answered.and_then(|(answered, _)| {
                        case.outstays(made.person, made.person.session, deleted, answered)
                    }),
                    false => is_there.then_some(at),
                };
                if let Some(at) = at {
                    let sentence = format!("participant {who} deregistered, and {path} is there");
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

fn not_registered(
    made: &Made<'_, '_>,
    name: &str,
    service: &Service<'_>,
    id: &'static str,
) -> Option<Violation> {
    let (at, value) = made.value()?;
    let (who, invoked) = (made.call.who, made.call.invoked.at);
    let data = spelled(made.arguments);
    let is_it = |(_, own, instance): (Moment, &str, Instance<'_>)| {
        value.get("path").and_then(|path| path.as_str()) == Some(&format!("/{name}/{own}"))
            && value.get("fence").and_then(fence_of) == Some(instance.fence)
            && data.as_ref().is_some_and(|data| data.as_bytes() == instance.data)
    };
    if created(service, made.person.session, (invoked, at)).any(is_it) {
        return None;
    }
    let sentence = format!(
        "participant {who} was told to have registered as {value}, and no such instance was made"
    );
    Some(Violation::new(id, at, sentence).involving([invoked]).by([who]))
}

fn left_over(
    case: &Case<'_>,
    made: &Made<'_, '_>,
    calls: &[Made<'_, '_>],
    service: &Service<'_>,
    id: &'static str,
) -> Option<Violation> {
    let (answered, _) = made.call.answered?;
    let (who, session, invoked) = (made.call.who, made.person.session, made.call.invoked.at);
    // It may be that of another participant of the same host, which registers at the same time.
    let is_anothers = calls.iter().any(|other| {
        other.call.who != who
            && other.call.operation == "register"
            && other.person.session == session
            && other.name() == made.name()
            && other.call.invoked.at < answered.at
            && other.call.answered.is_none_or(|(over, _)| over.at > invoked)
    });
    if is_anothers {
        return None;
    }
    for (since, own, _) in created(service, session, (invoked, answered.at)) {
        let deleted = gone(service, own, since.at);
        if let Some(at) = case.outstays(made.person, session, deleted, answered) {
            let sentence =
                format!("{own} is still there, and the `register` of participant {who} has failed");
            let violation = Violation::new(id, at, sentence);
            return Some(violation.involving([since.at, answered.at]).by([who]));
        }
    }
    None
}
