//! What was asked of a configuration, and what was answered.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use wok_judge::Moment;
use wok_judge::history::{CallId, Data, Entry, HostId, Outcome, ParticipantId, What};

/// A call of one of the operations.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) who: ParticipantId,
    pub(crate) host: HostId,
    pub(crate) session: i64,
    pub(crate) mount: &'a str,
    pub(crate) asked: Asked<'a>,
    pub(crate) invoked: Moment,
    /// When it was answered, if it was.
    pub(crate) returned: Option<Moment>,
    pub(crate) answer: Answer<'a>,
}

/// What a key must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Any,
    Absent,
    Version(i32),
}

impl Expected {
    /// Whether a key that has that version, or no value, is as expected by a change.
    pub(crate) fn is(self, version: Option<i32>) -> bool {
        match self {
            Expected::Any => true,
            Expected::Absent => version.is_none(),
            Expected::Version(expected) => version == Some(expected),
        }
    }
}

/// What a call asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    Get(&'a str),
    Set {
        key: &'a str,
        data: &'a Json,
        expected: Expected,
    },
    Remove {
        key: &'a str,
        expected: Expected,
    },
    Snapshot,
    Observe,
    /// For a revision after that one.
    Wait(i64),
}

impl Asked<'_> {
    /// As the interface calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Asked::Get(_) => "get",
            Asked::Set { .. } => "set",
            Asked::Remove { .. } => "remove",
            Asked::Snapshot => "snapshot",
            Asked::Observe => "observe",
            Asked::Wait(_) => "wait",
        }
    }
}

/// What a call was answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer<'a> {
    /// The value of a key; none if it has none.
    Value(Option<(&'a Json, i32)>),
    /// That transaction made a change. The version is none where the recipe told none.
    Changed { revision: i64, version: Option<i32> },
    /// All keys at a revision.
    Settings(i64, Vec<(&'a str, &'a Json, i32)>),
    /// The revision that an observer begins with, or that was waited for.
    Observed(i64),
    /// The operation was refused, and has changed nothing.
    Refused(&'a Json),
    /// Nobody can tell whether it has changed anything.
    Unknown,
    /// Nothing that the operation could answer.
    Nonsense(&'a Json),
}

/// Whether what is spelled in JSON is that data. What is no text is spelled in base64, and that is not
/// read here: of such a value only that it is no text is compared.
pub(crate) fn spells(json: &Json, data: &Data) -> bool {
    match json.as_str() {
        Some(text) => text.as_bytes() == data.bytes(),
        None => std::str::from_utf8(data.bytes()).is_err(),
    }
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
                let place = participants.get(participant).copied();
                let Some((asked, (host, session, mount))) = asked(operation, arguments).zip(place)
                else {
                    continue;
                };
                open.insert(*call, calls.len());
                let (who, invoked, answer) = (*participant, Moment::of(at, entry), Answer::Unknown);
                let returned = None;
                calls.push(Call { who, host, session, mount, asked, invoked, returned, answer });
            }
            What::Returned { call, outcome, .. } => {
                let call = open.remove(call).and_then(|place| calls.get_mut(place));
                if let Some(call) = call {
                    call.returned = Some(Moment::of(at, entry));
                    call.answer = answer(call.asked, outcome);
                }
            }
            _ => {}
        }
    }
    calls
}

fn asked<'a>(operation: &str, arguments: &'a Json) -> Option<Asked<'a>> {
    let key = || arguments.get("key")?.as_str();
    Some(match operation {
        "get" => Asked::Get(key()?),
        "set" => Asked::Set {
            key: key()?,
            data: arguments.get("data")?,
            expected: expected(arguments.get("expected")?)?,
        },
        "remove" => Asked::Remove { key: key()?, expected: expected(arguments.get("expected")?)? },
        "snapshot" => Asked::Snapshot,
        "observe" => Asked::Observe,
        "wait" => Asked::Wait(revision(arguments.get("after")?)?),
        _ => return None,
    })
}

fn expected(json: &Json) -> Option<Expected> {
    match json.as_str() {
        Some("any") => Some(Expected::Any),
        Some("absent") => Some(Expected::Absent),
        _ => json.get("version").and_then(version).map(Expected::Version),
    }
}

fn answer<'a>(asked: Asked<'_>, outcome: &'a Outcome) -> Answer<'a> {
    let value = match outcome {
        Outcome::Ok { value, .. } => value,
        Outcome::Err { value, .. } if value == "outcome-unknown" || value == "cancelled" => {
            return Answer::Unknown;
        }
        Outcome::Err { value, .. } => return Answer::Refused(value),
        Outcome::Cancelled | Outcome::Ended => return Answer::Unknown,
        // Another call was under way, and this one was not begun.
        Outcome::Busy => return Answer::Refused(&Json::Null),
    };
    let read = match asked {
        Asked::Get(_) if value.is_null() => Some(Answer::Value(None)),
        Asked::Get(_) => value_of(value).map(|value| Answer::Value(Some(value))),
        Asked::Set { .. } => value.get("revision").and_then(revision).map(|revision| {
            Answer::Changed { revision, version: value.get("version").and_then(version) }
        }),
        Asked::Remove { .. } => {
            revision(value).map(|revision| Answer::Changed { revision, version: None })
        }
        Asked::Snapshot => settings(value),
        Asked::Observe | Asked::Wait(_) => revision(value).map(Answer::Observed),
    };
    read.unwrap_or(Answer::Nonsense(value))
}

fn settings(value: &Json) -> Option<Answer<'_>> {
    let entries = value.get("entries")?.as_array()?.iter().map(|entry| {
        let (data, version) = value_of(entry)?;
        Some((entry.get("key")?.as_str()?, data, version))
    });
    Some(Answer::Settings(revision(value.get("revision")?)?, entries.collect::<Option<_>>()?))
}

fn value_of(value: &Json) -> Option<(&Json, i32)> {
    Some((value.get("data")?, version(value.get("version")?)?))
}

fn version(value: &Json) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

/// A revision, which is a text where it is too long for many readers of JSON.
pub(crate) fn revision(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}
