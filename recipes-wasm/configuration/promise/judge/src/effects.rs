//! Which call made which change.

use std::collections::BTreeMap;

use wok_judge::Violation;

use crate::Case;
use crate::calls::{Answer, Asked, Call, spells};
use crate::states::State;

/// K1: every change of a key was asked for by a call that found the key as expected, and made it once;
/// every call that was acknowledged made the change whose revision it was answered.
pub(crate) fn check(case: &Case<'_, '_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut made: BTreeMap<i64, &Call<'_>> = BTreeMap::new();
    for call in &case.calls {
        let (revision, version) = match (call.asked, &call.answer) {
            (_, Answer::Changed { revision, version }) => (*revision, *version),
            (_, Answer::Nonsense(_)) => (0, None),
            _ => continue,
        };
        let state = case.states.by_zxid(revision);
        let is_made = state.is_some_and(|state| makes(call, state) && tells(version, state));
        let other = made.insert(revision, call);
        if is_made && other.is_none() {
            continue;
        }
        let Some(answered) = call.returned else { continue };
        let sentence = format!(
            "the `{}` of participant {} was acknowledged with revision {revision}, which is no such \
             change",
            call.asked.name(),
            call.who
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([call.who]));
    }
    check_unacknowledged(case, &made, id, found);
}

/// The changes that nobody was told of: each is one of a call that got no answer.
fn check_unacknowledged(
    case: &Case<'_, '_>,
    made: &BTreeMap<i64, &Call<'_>>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let unanswered: Vec<&Call<'_>> = (case.calls.iter().copied())
        .filter(|call| matches!(call.answer, Answer::Unknown))
        .collect();
    let states: Vec<&State<'_>> = (case.states.all().iter())
        .filter(|state| !state.changes.is_empty())
        .filter(|state| state.made.is_some_and(|(_, zxid, _)| !made.contains_key(&zxid)))
        .collect();
    let edges: Vec<Vec<usize>> = states
        .iter()
        .map(|state| {
            let makes = |call: &usize| unanswered.get(*call).is_some_and(|call| makes(call, state));
            (0..unanswered.len()).filter(makes).collect()
        })
        .collect();
    let mut partners = vec![None; unanswered.len()];
    for (place, state) in states.iter().enumerate() {
        if pair(place, &edges, &mut partners, &mut vec![false; unanswered.len()]) {
            continue;
        }
        let Some((moment, zxid, _)) = state.made else { continue };
        let keys: Vec<&str> = state.changes.iter().map(|change| change.key).collect();
        let sentence = format!(
            "transaction {zxid} changed {}, which nobody had asked for as it was, or not so often",
            keys.join(", ")
        );
        found.push(Violation::new(id, moment.at, sentence));
    }
}

/// Whether the call may have made the change.
fn makes(call: &Call<'_>, state: &State<'_>) -> bool {
    let (Some((moment, _, session)), [change]) = (state.made, &*state.changes) else {
        return false;
    };
    // What nobody was told of may still happen when the caller has gone.
    let until = match call.answer {
        Answer::Unknown => None,
        _ => call.returned,
    };
    let is_in_time = call.invoked.at < moment.at && until.is_none_or(|until| moment.at < until.at);
    let before = change.before.map(|value| value.version);
    let is_its_own = match call.asked {
        Asked::Set { key, data, expected } => {
            key == change.key
                && expected.is(before)
                && change.after.is_some_and(|after| spells(data, after.data))
        }
        Asked::Remove { key, expected } => {
            key == change.key && change.after.is_none() && before.is_some() && expected.is(before)
        }
        Asked::Get(_) | Asked::Snapshot | Asked::Observe | Asked::Wait(_) => false,
    };
    call.session == session && is_in_time && is_its_own
}

/// Whether a version that was answered is that of the new value.
fn tells(version: Option<i32>, state: &State<'_>) -> bool {
    let after = state.changes.first().and_then(|change| change.after);
    version.is_none_or(|version| after.is_some_and(|after| after.version == version))
}

/// Finds a call for a change, and another one for the change that has to make way. As deep as there
/// are calls that may have made one change.
fn pair(
    change: usize,
    edges: &[Vec<usize>],
    partners: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    let candidates = edges.get(change).map(Vec::as_slice).unwrap_or_default();
    for candidate in candidates {
        if tried.get_mut(*candidate).is_none_or(|tried| std::mem::replace(tried, true)) {
            continue;
        }
        let holder = partners.get(*candidate).copied().flatten();
        if holder.is_none_or(|holder| pair(holder, edges, partners, tried)) {
            if let Some(partner) = partners.get_mut(*candidate) {
                *partner = Some(change);
            }
            return true;
        }
    }
    false
}
