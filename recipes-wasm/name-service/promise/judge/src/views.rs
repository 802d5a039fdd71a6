//! Whether what people see of a name is what it was, and never goes back.

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{ParticipantId, Told, What};
use wok_judge::revisions::{self, Heard, How};
use wok_judge::{Case, Violation};

use crate::Made;
use crate::service::{Instance, Service, State};

/// The calls of a mount, and the name that they are looked at for.
pub(super) type Of<'x, 'c, 'a> = (&'x str, &'x [Made<'c, 'a>]);

/// N1 of instances: what `resolve` answers is the name's, as it was at that revision and at some moment
/// of the call.
pub(super) fn check_answers(
    (name, calls): Of<'_, '_, '_>,
    service: &Service<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.is("resolve", name)) {
        let Some((at, value)) = made.value() else { continue };
        let invoked = made.call.invoked.at;
        if service.during(invoked, at).any(|state| is_view_of(value, state)) {
            continue;
        }
        let who = made.call.who;
        let sentence = format!(
            "participant {who} resolved {name} to {value}, which was so at no moment of the call"
        );
        found.push(Violation::new(id, at, sentence).involving([invoked]).by([who]));
    }
}

fn is_view_of(value: &Value, state: &State<'_>) -> bool {
    let revision = value.get("revision").and_then(fence_of);
    let Some(shown) = value.get("instances").and_then(Value::as_array) else { return false };
    let mut there: Vec<_> = state.instances.iter().collect();
    there.sort_by_key(|(_, instance)| instance.fence);
    let is_one = |(shown, (id, instance)): (&Value, (&&str, &Instance<'_>))| {
        shown.get("id").and_then(Value::as_str) == Some(id)
            && shown.get("fence").and_then(fence_of) == Some(instance.fence)
            && spelled(shown).is_some_and(|data| data.as_bytes() == instance.data)
    };
    revision == Some(state.revision)
        && shown.len() == there.len()
        && shown.iter().zip(there).all(is_one)
}

/// What an instance of that address and metadata holds.
pub(super) fn spelled(shown: &Value) -> Option<String> {
    let mut data = format!("{}\n", shown.get("address")?.as_str()?);
    for pair in shown.get("metadata")?.as_array()? {
        let [key, value] = pair.as_array()?.as_slice() else { return None };
        data.push_str(&format!("{}={}\n", key.as_str()?, value.as_str()?));
    }
    Some(data)
}

/// N1 of names: one that is listed had an instance at some moment of the call, or another child, and one
/// that is not had none at some moment.
pub(super) fn check_lists(
    calls: &[Made<'_, '_>],
    services: &BTreeMap<&str, Service<'_>>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.call.operation == "list") {
        let Some((at, value)) = made.value() else { continue };
        let Some(listed) = value.as_array() else { continue };
        for (name, service) in services {
            let is_listed = listed.iter().any(|listed| listed.as_str() == Some(name));
            let mut states = service.during(made.call.invoked.at, at);
            if states.any(|state| state.is_listed() == is_listed) {
                continue;
            }
            let who = made.call.who;
            let sentence = match is_listed {
                true => {
                    format!("participant {who} was told that {name} has instances: it had none")
                }
                false => format!("participant {who} was told that {name} has no instances"),
            };
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([made.call.invoked.at]).by([who]));
        }
    }
}

/// N2: each revision that somebody is told was one by then, and none is older than one that the same
/// participant knew when it asked. What is told as news is later than what was told before.
pub(super) fn check_order(
    case: &Case<'_>,
    of: Of<'_, '_, '_>,
    service: &Service<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let was = |revision, at| service.at_revision(revision, at).is_some();
    revisions::check(heard(case, of), was, id, found);
}

/// What participants are told of a name's revisions.
fn heard(case: &Case<'_>, (name, calls): Of<'_, '_, '_>) -> Vec<Heard> {
    let answers = calls.iter().filter(|made| made.name() == Some(name)).filter_map(|made| {
        let (at, value) = made.value()?;
        let revision = match made.call.operation {
            "resolve" => value.get("revision").and_then(fence_of)?,
            "observe" | "wait" => fence_of(value)?,
            _ => return None,
        };
        let begins = made.call.operation == "observe";
        let how = How::Answer { invoked: made.call.invoked.at, begins };
        Some(Heard { at, who: made.call.who, revision, how })
    });
    let mount = calls.first().map(|made| made.person.mount);
    let is_here = |who| case.people.person(who).map(|person| person.mount) == mount;
    let news = news(case, name).filter(|(_, who, _)| is_here(*who));
    let news = news.map(|(at, who, revision)| Heard { at, who, revision, how: How::News });
    answers.chain(news).collect()
}

/// The revisions of a name that are told as news; 0 for one that has no directory any more.
pub(super) fn news<'x>(
    case: &'x Case<'_>,
    name: &'x str,
) -> impl Iterator<Item = (usize, ParticipantId, u64)> + 'x {
    case.history.iter().enumerate().filter_map(move |(at, entry)| match &entry.what {
        What::Told { participant, notice: Told::Emitted { event, detail } }
            if event == "changed" && detail.get("name").is_some_and(|of| of == name) =>
        {
            let revision = detail.get("revision").map_or(Some(0), |told| told.parse().ok())?;
            Some((at, *participant, revision))
        }
        _ => None,
    })
}
