//! Whether answers agree with what the configuration was.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use wok_judge::Violation;
use wok_judge::history::{Entry, FaultKind, ParticipantId, What};
use wok_judge::refusals::{is_shown_name, length_of};

use crate::Case;
use crate::calls::{Answer, Asked, Call, Expected, spells};
use crate::states::{State, Value};

/// A snapshot looks so often; each look that fails was spoiled by a change.
const LOOKS: usize = 16;

/// The most bytes of a key, and of a value.
const LONGEST_KEY: usize = 128;
const LARGEST_VALUE: usize = 64 * 1024;

/// What ZooKeeper takes for any version.
const ANY_VERSION: i32 = -1;

/// Whether a call asks for what the interface says is refused, whatever the configuration is.
fn is_wrong(asked: Asked<'_>) -> bool {
    let is_key = |key: &str| is_shown_name(key, LONGEST_KEY);
    match asked {
        Asked::Get(key) => !is_key(key),
        Asked::Set { key, data, expected } => {
            !is_key(key)
                || length_of(data).is_some_and(|length| length > LARGEST_VALUE)
                || expected == Expected::Version(ANY_VERSION)
        }
        // What is absent cannot be removed.
        Asked::Remove { key, expected } => {
            !is_key(key) || matches!(expected, Expected::Absent | Expected::Version(ANY_VERSION))
        }
        Asked::Snapshot | Asked::Observe | Asked::Wait(_) => false,
    }
}

/// What is wrong with a key by an error's name.
fn is_about_the_key(error: &Json) -> bool {
    error == "bad-version" || error == "no-node" || error == "node-exists"
}

/// K1: a change is refused only if the key was not as expected at some moment of the call. K4: a call is
/// refused for another reason only where its arguments are wrong, or a fault was in its way. One whose
/// arguments are wrong is refused.
pub(crate) fn check_refusals(
    case: &Case<'_, '_>,
    k1: &'static str,
    k4: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in &case.calls {
        let Some(answered) = call.returned else { continue };
        let error = match &call.answer {
            Answer::Refused(error) => error,
            Answer::Unknown => continue,
            _ => {
                if is_wrong(call.asked) {
                    found.push(not_refused(call, k4, answered.at));
                }
                continue;
            }
        };
        let mut states = case.states.between(call.invoked.at, answered.at);
        let (id, is_right) = match call.asked {
            // Another call was under way.
            _ if error.is_null() => (k4, true),
            asked if is_wrong(asked) => {
                let is_said = error.get("invalid").is_some();
                (k4, is_said || !case.is_spared(call.host, call.invoked.us, answered.us))
            }
            Asked::Set { key, expected, .. } if is_about_the_key(error) => {
                (k1, states.any(|state| says(error, state.keys.get(key), expected)))
            }
            Asked::Remove { key, expected } if is_about_the_key(error) => {
                (k1, states.any(|state| says(error, state.keys.get(key), expected)))
            }
            Asked::Snapshot if error.get("other").is_some() && states.count() > LOOKS => (k4, true),
            _ => (k4, !case.is_spared(call.host, call.invoked.us, answered.us)),
        };
        if is_right {
            continue;
        }
        let sentence = format!(
            "the `{}` of participant {} was answered {error}, and nothing was in its way",
            call.asked.name(),
            call.who
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([call.who]));
    }
}

fn not_refused(call: &Call<'_>, id: &'static str, at: usize) -> Violation {
    let sentence = format!(
        "the `{}` of participant {} asks for what is to be refused, and was not refused",
        call.asked.name(),
        call.who
    );
    Violation::new(id, at, sentence).involving([call.invoked.at]).by([call.who])
}

/// Whether the error says what is wrong with a key that has this value.
fn says(error: &Json, value: Option<&Value<'_>>, expected: Expected) -> bool {
    let (name, version) = (error.as_str(), value.map(|value| value.version));
    match (name, expected) {
        (Some("node-exists"), Expected::Absent) => version.is_some(),
        (Some("no-node"), Expected::Version(_) | Expected::Any) => version.is_none(),
        (Some("bad-version"), Expected::Version(expected)) => {
            version.is_some_and(|version| version != expected)
        }
        _ => false,
    }
}

/// K1: a snapshot is the configuration at its revision. K3: what a reader is shown was so at some moment
/// of the call. While servers are cut off from each other, or just were, the leader that `sync` asks may
/// be one that has lost the others: then it was so at some moment since the last answer that says so.
pub(crate) fn check_reads(
    case: &Case<'_, '_>,
    k1: &'static str,
    k3: &'static str,
    found: &mut Vec<Violation>,
) {
    let doubts = doubts(case.history, case.longest_timeout_us);
    let mut known: BTreeMap<ParticipantId, usize> = BTreeMap::new();
    for call in &case.calls {
        let Some(answered) = call.returned else { continue };
        let is_in_doubt =
            doubts.iter().any(|(from, until)| *from <= answered.us && call.invoked.us <= *until);
        let from = match is_in_doubt {
            true => known.get(&call.who).copied().unwrap_or(0).min(call.invoked.at),
            false => call.invoked.at,
        };
        let mut states = case.states.between(from, answered.at);
        let (id, shown) = match (call.asked, &call.answer) {
            (Asked::Get(key), Answer::Value(shown)) => {
                if states.any(|state| is_value(*shown, state.keys.get(key))) {
                    continue;
                }
                (k3, format!("{key} as {shown:?}"))
            }
            (Asked::Snapshot, Answer::Settings(revision, entries)) => {
                if states.any(|state| is_settings(*revision, entries, state)) {
                    continue;
                }
                let ever = case.states.all().iter();
                let was_once = ever.into_iter().any(|it| is_settings(*revision, entries, it));
                (if was_once { k3 } else { k1 }, format!("revision {revision} as {entries:?}"))
            }
            (
                Asked::Get(_) | Asked::Snapshot | Asked::Observe | Asked::Wait(_),
                Answer::Nonsense(shown),
            ) => (k3, shown.to_string()),
            // What this call was answered is no older than its beginning, as a transaction says, and
            // a session never goes back behind its own.
            (_, Answer::Changed { .. }) => {
                known.insert(call.who, call.invoked.at);
                continue;
            }
            _ => continue,
        };
        found.push(wrong(call, id, answered.at, from, &shown));
    }
}

fn wrong(call: &Call<'_>, id: &'static str, at: usize, from: usize, shown: &str) -> Violation {
    let sentence = format!(
        "the `{}` of participant {} was answered {shown}, which was not so from entry {from} on",
        call.asked.name(),
        call.who
    );
    Violation::new(id, at, sentence).involving([from, call.invoked.at]).by([call.who])
}

fn is_value(shown: Option<(&Json, i32)>, value: Option<&Value<'_>>) -> bool {
    match (shown, value) {
        (None, None) => true,
        (Some((data, version)), Some(value)) => {
            version == value.version && spells(data, value.data)
        }
        _ => false,
    }
}

fn is_settings(revision: i64, entries: &[(&str, &Json, i32)], state: &State<'_>) -> bool {
    revision == state.revision
        && entries.len() == state.keys.len()
        && entries.iter().zip(&state.keys).all(|((key, data, version), (other, value))| {
            key == other && is_value(Some((data, *version)), Some(value))
        })
}

/// The times in which a leader may have been answering that was none any more.
fn doubts(history: &[Entry], longest_timeout_us: u64) -> Vec<(u64, u64)> {
    let mut doubts: Vec<(u64, u64)> = Vec::new();
    let mut open: Vec<u64> = Vec::new();
    for entry in history {
        let over = entry.at_us.saturating_add(longest_timeout_us);
        match &entry.what {
            What::Fault { fault: FaultKind::LeaderChange, .. } => doubts.push((entry.at_us, over)),
            What::Fault { fault, .. } if fault.is_between_servers() => open.push(entry.at_us),
            What::Healed { fault, .. } if fault.is_between_servers() => {
                doubts.extend(open.pop().map(|from| (from, over)));
            }
            What::Calm => doubts.extend(open.drain(..).map(|from| (from, over))),
            _ => {}
        }
    }
    doubts.extend(open.into_iter().map(|from| (from, u64::MAX)));
    doubts
}
