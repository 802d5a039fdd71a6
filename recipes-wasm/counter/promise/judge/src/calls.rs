//! What was asked of a counter, and what was answered.

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::history::{CallId, Entry, HostId, Outcome, ParticipantId, What};

/// A call of one of the operations.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// Whose.
    pub(crate) who: ParticipantId,
    /// Where that is.
    pub(crate) host: HostId,
    /// Its session.
    pub(crate) session: i64,
    /// The counter.
    pub(crate) mount: &'a str,
    /// What was asked for.
    pub(crate) asked: Asked,
    /// The entry of the call, and its time.
    pub(crate) invoked: (usize, u64),
    /// The entry of the answer and its time, if there was one.
    pub(crate) returned: Option<(usize, u64)>,
    /// What was answered.
    pub(crate) answer: Answer<'a>,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The value.
    Get,
    /// That much more.
    Add(i64),
    /// The second value in the place of the first.
    CompareAndSet(i64, i64),
}

impl Asked {
    /// As the interface calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Asked::Get => "get",
            Asked::Add(_) => "add",
            Asked::CompareAndSet(..) => "compare-and-set",
        }
    }
}

/// What a call was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer<'a> {
    /// A value: the one that was read, or the sum.
    Value(i64),
    /// The comparison was equal, and the new value is written.
    Set,
    /// The comparison was not: this was the value.
    Differs(i64),
    /// The operation was refused, and has changed nothing.
    Refused(&'a Value),
    /// Nobody can tell whether it has changed anything.
    Unknown,
    /// Nothing that the operation could answer.
    Nonsense(&'a Value),
}

/// All calls of a history, in the order in which they were made.
pub(crate) fn of(history: &[Entry]) -> Vec<Call<'_>> {
    let mut participants = BTreeMap::new();
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut open: BTreeMap<CallId, usize> = BTreeMap::new();
    for (at, entry) in history.iter().enumerate() {
        match &entry.what {
            What::Joined { participant, host, session, mount, .. } => {
                participants.insert(*participant, (*host, *session, mount.as_str()));
            }
            What::Invoked { participant, call, operation, arguments } => {
                let asked = asked(operation, arguments);
                let place = participants.get(participant).copied();
                let Some((asked, (host, session, mount))) = asked.zip(place) else { continue };
                open.insert(*call, calls.len());
                let (invoked, answer) = ((at, entry.at_us), Answer::Unknown);
                let who = *participant;
                let returned = None;
                calls.push(Call { who, host, session, mount, asked, invoked, returned, answer });
            }
            What::Returned { call, outcome, .. } => {
                let call = open.remove(call).and_then(|place| calls.get_mut(place));
                if let Some(call) = call {
                    call.returned = Some((at, entry.at_us));
                    call.answer = answer(call.asked, outcome);
                }
            }
            _ => {}
        }
    }
    calls
}

fn asked(operation: &str, arguments: &Value) -> Option<Asked> {
    let argument = |name: &str| number(arguments.get(name)?);
    Some(match operation {
        "get" => Asked::Get,
        "add" => Asked::Add(argument("by")?),
        "compare-and-set" => Asked::CompareAndSet(argument("expected")?, argument("value")?),
        _ => return None,
    })
}

fn answer(asked: Asked, outcome: &Outcome) -> Answer<'_> {
    let value = match outcome {
        Outcome::Ok { value, .. } => value,
        Outcome::Err { value, .. } if is_open(value) => return Answer::Unknown,
        Outcome::Err { value, .. } => return Answer::Refused(value),
        Outcome::Cancelled | Outcome::Ended => return Answer::Unknown,
        // Another call was under way, and this one was not begun.
        Outcome::Busy => return Answer::Refused(&Value::Null),
    };
    let answer = match asked {
        Asked::Get | Asked::Add(_) => number(value).map(Answer::Value),
        Asked::CompareAndSet(..) if value == "set" => Some(Answer::Set),
        Asked::CompareAndSet(..) => value.get("differs").and_then(number).map(Answer::Differs),
    };
    answer.unwrap_or(Answer::Nonsense(value))
}

/// Whether an error leaves it open what happened.
fn is_open(error: &Value) -> bool {
    error == "outcome-unknown" || error == "cancelled"
}

/// A number, which is a text where it is too long for many readers of JSON.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}
