//! What those who look on are told of an election.

use std::collections::BTreeMap;

use serde_json::Value;

use wok_judge::grants::fence_of;
use wok_judge::history::{CallId, Outcome, ParticipantId, Told, What};
use wok_judge::{Case, Violation};

/// What an observer knows.
#[derive(Debug, Default)]
struct View {
    /// The highest term it has heard of.
    highest: Option<Heard>,
    /// The term it was told last without asking again.
    told: Option<Heard>,
}

/// A term, and the entry at which it was heard of.
type Heard = (u64, usize);

/// E4: what an observer is told, by `leader-changed` and by the answers of `leader` and `observe`,
/// is a part of the true sequence of terms: each was one, none is told twice as news, and no view is
/// older than what was known when it was asked for.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut views: BTreeMap<ParticipantId, View> = BTreeMap::new();
    let mut asked: BTreeMap<CallId, (&str, Option<Heard>)> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let (who, fence, floor) = match &entry.what {
            What::Invoked { participant, call, operation, .. }
                if operation == "leader" || operation == "observe" =>
            {
                let view = views.entry(*participant).or_default();
                asked.insert(*call, (operation, view.highest));
                continue;
            }
            What::Returned { participant, call, outcome: Outcome::Ok { value, .. } } => {
                let Some((operation, floor)) = asked.remove(call) else { continue };
                let Some(fence) = value.get("fence").and_then(fence_of) else { continue };
                if operation == "observe" {
                    views.entry(*participant).or_default().told = Some((fence, at));
                }
                (*participant, fence, floor.filter(|(known, _)| fence < *known))
            }
            What::Told { participant, notice: Told::Emitted { event, detail } }
                if event == "leader-changed" =>
            {
                let fence = detail.get("fence").cloned().map(Value::String);
                let Some(fence) = fence.as_ref().and_then(fence_of) else { continue };
                let told = &mut views.entry(*participant).or_default().told;
                let before = told.replace((fence, at));
                (*participant, fence, before.filter(|(before, _)| fence <= *before))
            }
            _ => continue,
        };
        if let Some((before, since)) = floor {
            let sentence = format!("participant {who} was told of term {fence} after {before}");
            found.push(Violation::new(id, at, sentence).involving([since]).by([who]));
        } else if !was_term(case, who, fence, at) {
            let sentence = format!("participant {who} was told of term {fence}, which never was");
            found.push(Violation::new(id, at, sentence).by([who]));
        }
        let highest = &mut views.entry(who).or_default().highest;
        *highest = (*highest).max(Some((fence, at)));
    }
}

/// Whether a candidate of that `czxid` had become first below the participant's mount by then.
fn was_term(case: &Case<'_>, who: ParticipantId, fence: u64, at: usize) -> bool {
    let mount = case.people.person(who).map_or("/", |person| person.mount);
    let mut led = i64::try_from(fence).into_iter().flat_map(|czxid| case.truth.created_by(czxid));
    led.any(|it| it.parent == mount && it.first.is_some_and(|first| first.at < at))
}
