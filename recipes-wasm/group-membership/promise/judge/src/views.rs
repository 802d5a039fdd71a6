//! Whether what people see of a group is what it was, and never goes back.

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{ParticipantId, Told, What};
use wok_judge::{Case, Violation};

use crate::Made;
use crate::group::{Group, State};

/// G1 of views: what `members` answers is the group, as it was at that revision and at some moment of
/// the call.
pub(super) fn check_answers(
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.call.operation == "members") {
        let Some((at, value)) = made.value() else { continue };
        let invoked = made.call.invoked.at;
        if group.during(invoked, at).any(|state| is_view_of(value, state)) {
            continue;
        }
        let who = made.call.who;
        let sentence = format!(
            "the `members` of participant {who} was answered {value}, which the group was not at \
             any moment of the call"
        );
        found.push(Violation::new(id, at, sentence).involving([invoked]).by([who]));
    }
}

fn is_view_of(value: &Value, state: &State<'_>) -> bool {
    let revision = value.get("revision").and_then(fence_of);
    let Some(members) = value.get("members").and_then(Value::as_array) else { return false };
    let is_member = |(shown, (name, there)): (&Value, (&&str, &crate::group::Member<'_>))| {
        let text = |key: &str| shown.get(key).and_then(Value::as_str);
        text("name") == Some(name)
            && text("data").map(str::as_bytes) == Some(there.data)
            && shown.get("fence").and_then(fence_of) == Some(there.fence)
    };
    (revision == Some(state.revision) || !state.is_known)
        && members.len() == state.members.len()
        && members.iter().zip(&state.members).all(is_member)
}

/// What a participant knows.
#[derive(Debug, Default)]
struct Known {
    /// The highest revision that it has heard of, and where.
    highest: (u64, usize),
    /// The one that it was told last without asking again.
    told: (u64, usize),
}

/// G1 of revisions: each that somebody is told was one by then, and none is older than one that the
/// same participant knew when it asked. What is told as news is later than what was told before.
pub(super) fn check_order(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut known: BTreeMap<ParticipantId, Known> = BTreeMap::new();
    for (at, who, heard) in heard(case, calls) {
        let known = known.entry(who).or_default();
        let (revision, floor, is_strict) = match heard {
            Heard::Invoked => continue,
            Heard::Answer { revision, .. } => (revision, known.highest, false),
            Heard::News(revision) => (revision, known.told, true),
        };
        // Without a directory there is no revision to compare.
        if revision == 0 {
            continue;
        }
        let goes_back = revision < floor.0 || (is_strict && revision == floor.0);
        if goes_back {
            let sentence = format!("participant {who} was told of {revision} after {}", floor.0);
            found.push(Violation::new(id, at, sentence).involving([floor.1]).by([who]));
        } else if group.at_revision(revision, at).is_none() {
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

enum Heard {
    Invoked,
    Answer { revision: u64, begins: bool },
    News(u64),
}

/// What participants of this group are told of revisions, in order.
fn heard(case: &Case<'_>, calls: &[Made<'_, '_>]) -> Vec<(usize, ParticipantId, Heard)> {
    let mut all = Vec::new();
    for made in calls {
        all.push((made.call.invoked.at, made.call.who, Heard::Invoked));
        let Some((at, value)) = made.value() else { continue };
        let revision = match made.call.operation {
            "members" => value.get("revision").and_then(fence_of),
            "observe" | "wait" | "update" => fence_of(value),
            _ => None,
        };
        let begins = made.call.operation == "observe";
        if let Some(revision) = revision {
            all.push((at, made.call.who, Heard::Answer { revision, begins }));
        }
    }
    let mount = calls.first().map(|made| made.person.mount);
    for (at, who, revision) in news(case) {
        if case.people.person(who).map(|person| person.mount) == mount {
            all.push((at, who, Heard::News(revision)));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    all
}

/// The revisions that are told as news; 0 for a group that has no directory any more.
pub(super) fn news(case: &Case<'_>) -> impl Iterator<Item = (usize, ParticipantId, u64)> {
    case.history.iter().enumerate().filter_map(|(at, entry)| match &entry.what {
        What::Told { participant, notice: Told::Emitted { event, detail } }
            if event == "members-changed" =>
        {
            let revision = detail.get("revision").map_or(Some(0), |told| told.parse().ok())?;
            Some((at, *participant, revision))
        }
        _ => None,
    })
}
