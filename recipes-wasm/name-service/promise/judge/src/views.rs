//! Whether what people see of a name is what it was, and never goes back.

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{ParticipantId, Told, What};
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

/// N1 of names: one that is listed had an instance at some moment of the call, and one that is not had
/// none at some moment.
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
            if states.any(|state| state.instances.is_empty() != is_listed) {
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

/// What a participant knows of a name.
#[derive(Debug, Default)]
struct Known {
    /// The highest revision that it has heard of, and where.
    highest: (u64, usize),
    /// The one that it was told last without asking again.
    told: (u64, usize),
}

enum Heard {
    Answer { revision: u64, begins: bool },
    News(u64),
}

/// N2: each revision that somebody is told was one by then, and none is older than one that the same
/// participant knew. What is told as news is later than what was told before.
pub(super) fn check_order(
    case: &Case<'_>,
    of: Of<'_, '_, '_>,
    service: &Service<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut known: BTreeMap<ParticipantId, Known> = BTreeMap::new();
    for (at, who, heard) in heard(case, of) {
        let known = known.entry(who).or_default();
        let (revision, floor, is_strict) = match heard {
            Heard::Answer { revision, .. } => (revision, known.highest, false),
            Heard::News(revision) => (revision, known.told, true),
        };
        // Without a directory there is no revision to compare.
        if revision == 0 {
            continue;
        }
        if revision < floor.0 || (is_strict && revision == floor.0) {
            let sentence = format!("participant {who} was told of {revision} after {}", floor.0);
            found.push(Violation::new(id, at, sentence).involving([floor.1]).by([who]));
        } else if service.at_revision(revision, at).is_none() {
            let sentence =
                format!("participant {who} was told of the revision {revision}, which never was");
            found.push(Violation::new(id, at, sentence).by([who]));
        }
        if revision > known.highest.0 {
            known.highest = (revision, at);
        }
        if is_strict || matches!(heard, Heard::Answer { begins: true, .. }) {
            known.told = (revision, at);
        }
    }
}

/// What participants are told of a name's revisions, in order.
fn heard(case: &Case<'_>, (name, calls): Of<'_, '_, '_>) -> Vec<(usize, ParticipantId, Heard)> {
    let mut all = Vec::new();
    for made in calls.iter().filter(|made| made.name() == Some(name)) {
        let Some((at, value)) = made.value() else { continue };
        let revision = match made.call.operation {
            "resolve" => value.get("revision").and_then(fence_of),
            "observe" | "wait" => fence_of(value),
            _ => None,
        };
        let begins = made.call.operation == "observe";
        if let Some(revision) = revision {
            all.push((at, made.call.who, Heard::Answer { revision, begins }));
        }
    }
    let mount = calls.first().map(|made| made.person.mount);
    for (at, who, revision) in news(case, name) {
        if case.people.person(who).map(|person| person.mount) == mount {
            all.push((at, who, Heard::News(revision)));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    all
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
