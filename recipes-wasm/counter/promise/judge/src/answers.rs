//! Whether answers agree with what the counter was.

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::Violation;
use wok_judge::faults::Faults;
use wok_judge::history::{Entry, FaultKind, ParticipantId, What};

use crate::calls::{Answer, Asked, Call};
use crate::values::Values;

/// A2: a comparison that differed did so from a value that the counter had during the call.
pub(crate) fn check_comparisons(
    calls: &[&Call<'_>],
    values: &Values,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in calls {
        let (Asked::CompareAndSet(expected, _), Answer::Differs(value)) = (call.asked, call.answer)
        else {
            continue;
        };
        let Some((answered, _)) = call.returned else { continue };
        let was = values.between(call.invoked.0, answered).any(|was| was == value);
        if was && value != expected {
            continue;
        }
        let sentence = format!(
            "participant {} was answered that {value} is not the expected {expected}, which was \
             not so during the call",
            call.who
        );
        let violation = Violation::new(id, answered, sentence);
        found.push(violation.involving([call.invoked.0]).by([call.who]));
    }
}

/// A3: what a reader is shown was the counter's value during the call. While servers are cut off from
/// each other, or just were, the leader that `sync` asks may be one that has lost the others: then
/// it was the value at some moment since the last answer that this participant has had.
pub(crate) fn check_reads(
    calls: &[&Call<'_>],
    values: &Values,
    history: &[Entry],
    longest_timeout_us: u64,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let doubts = doubts(history, longest_timeout_us);
    let mut known: BTreeMap<ParticipantId, usize> = BTreeMap::new();
    for call in calls {
        let Some((answered, us)) = call.returned else { continue };
        if let (Asked::Get, Answer::Value(value)) = (call.asked, call.answer) {
            let (invoked, since) = call.invoked;
            let is_in_doubt = doubts.iter().any(|(from, until)| *from <= us && since <= *until);
            let from = match is_in_doubt {
                true => known.get(&call.who).copied().unwrap_or(0).min(invoked),
                false => invoked,
            };
            if !values.between(from, answered).any(|was| was == value) {
                let sentence = format!(
                    "participant {} was shown {value}, which the counter was not from entry {from} on",
                    call.who
                );
                let violation = Violation::new(id, answered, sentence);
                found.push(violation.involving([from, invoked]).by([call.who]));
            }
        }
        // What this call was answered is no older than its beginning where a transaction says so,
        // and a session never goes back behind its own.
        if matches!(call.answer, Answer::Set | Answer::Differs(_))
            || matches!((call.asked, call.answer), (Asked::Add(_), Answer::Value(_)))
        {
            known.insert(call.who, call.invoked.0);
        }
    }
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

/// A4: a call that is refused asked for a sum that did not fit at some moment of the call, or a
/// fault was in its way.
pub(crate) fn check_refusals(
    calls: &[&Call<'_>],
    values: &Values,
    faults: &Faults,
    longest_timeout_us: u64,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in calls {
        let (Answer::Refused(error), Some((answered, us))) = (call.answer, call.returned) else {
            continue;
        };
        let is_excused = if error.is_null() {
            // Another call was under way.
            true
        } else if is_overflow(error) {
            let overflows = |value: i64| match call.asked {
                Asked::Add(by) => value.checked_add(by).is_none(),
                Asked::Get | Asked::CompareAndSet(..) => false,
            };
            values.between(call.invoked.0, answered).any(overflows)
        } else {
            !faults.spared(call.host, call.invoked.1, us, longest_timeout_us)
        };
        if is_excused {
            continue;
        }
        let sentence = format!(
            "the `{}` of participant {} was answered {error}, and nothing was in its way",
            call.asked.name(),
            call.who
        );
        let violation = Violation::new(id, answered, sentence);
        found.push(violation.involving([call.invoked.0]).by([call.who]));
    }
}

fn is_overflow(error: &Value) -> bool {
    error.get("invalid").is_some()
}
