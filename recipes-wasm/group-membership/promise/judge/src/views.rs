//! Whether what people see of a group is what it was, and never goes back.

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{ParticipantId, Told, What};
use wok_judge::revisions::{self, Heard, How};
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

/// G1 of revisions: each that somebody is told was one by then, and none is older than one that the
/// same participant knew when it asked. What is told as news is later than what was told before.
pub(super) fn check_order(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let was = |revision, at| group.at_revision(revision, at).is_some();
    revisions::check(heard(case, calls), was, id, found);
}

/// What participants of this group are told of revisions.
fn heard(case: &Case<'_>, calls: &[Made<'_, '_>]) -> Vec<Heard> {
    let answers = calls.iter().filter_map(|made| {
        let (at, value) = made.value()?;
        let revision = match made.call.operation {
            "members" => value.get("revision").and_then(fence_of)?,
            "observe" | "wait" | "update" => fence_of(value)?,
            _ => return None,
        };
        let begins = made.call.operation == "observe";
        let how = How::Answer { invoked: made.call.invoked.at, begins };
        Some(Heard { at, who: made.call.who, revision, how })
    });
    let mount = calls.first().map(|made| made.person.mount);
    let is_here = |who| case.people.person(who).map(|person| person.mount) == mount;
    let news = news(case).filter(|(_, who, _)| is_here(*who));
    let news = news.map(|(at, who, revision)| Heard { at, who, revision, how: How::News });
    answers.chain(news).collect()
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
