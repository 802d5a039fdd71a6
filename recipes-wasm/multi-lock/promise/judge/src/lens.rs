//! A history as it looks to one of the locks: as if there were no other.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::Case;
use wok_judge::history::{Change, Entry, Outcome, ParticipantId, Told, What};
use wok_judge::people::Person;
use wok_judge::truth::split;

use crate::granted;

/// What participants were told that they hold, in the order in which they were told.
#[derive(Debug, Default)]
pub(super) struct Grants<'a> {
    all: Vec<Grant<'a>>,
}

/// Locks that a participant was told to hold, as one claim.
#[derive(Debug)]
pub(super) struct Grant<'a> {
    /// Whose.
    pub(super) who: ParticipantId,
    /// The entry that tells it.
    pub(super) at: usize,
    /// The znodes, the one that stands for all of them first.
    pub(super) paths: Vec<&'a str>,
    /// The fence of the first.
    fence: u64,
}

impl<'a> Grant<'a> {
    /// The names of its locks, in their order.
    pub(super) fn names(&self, person: &Person<'_>) -> Vec<&'a str> {
        let names = self.paths.iter().filter_map(|path| name_of(person, split(path)?.0));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names
    }

    /// The znode of the lock in that directory, if this is a grant of that lock.
    fn part(&self, directory: &str) -> Option<&'a str> {
        let is_there = |path: &&&str| split(path).is_some_and(|(parent, _)| parent == directory);
        self.paths.iter().find(is_there).copied()
    }
}

impl<'a> Grants<'a> {
    /// Of a history: a claim's paths are those that its component named when it claimed.
    pub(super) fn of(history: &'a [Entry]) -> Self {
        let mut grants = Grants::default();
        let mut claims: BTreeMap<ParticipantId, Vec<&'a [String]>> = BTreeMap::new();
        for (at, entry) in history.iter().enumerate() {
            match &entry.what {
                What::HostCall { participant, name, paths, .. } if name.starts_with("claim") => {
                    claims.entry(*participant).or_default().push(paths);
                }
                What::Told { participant: who, notice: Told::Held { path, fence } } => {
                    let mut own = claims.get(who).into_iter().flatten().rev();
                    let claimed = own.find(|paths| paths.first() == Some(path));
                    let paths = match claimed {
                        Some(paths) => paths.iter().map(String::as_str).collect(),
                        None => vec![path.as_str()],
                    };
                    grants.all.push(Grant { who: *who, at, paths, fence: *fence });
                }
                _ => {}
            }
        }
        grants
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Grant<'a>> {
        self.all.iter()
    }

    /// What a participant was told last before that entry, with the entry.
    fn last(&self, who: ParticipantId, at: usize) -> Option<&Grant<'a>> {
        self.all.iter().rev().find(|grant| grant.who == who && grant.at <= at)
    }

    /// What a participant was told with that fence, before or after.
    fn with_fence(&self, who: ParticipantId, fence: u64) -> Option<&Grant<'a>> {
        self.all.iter().rev().find(|grant| grant.who == who && grant.fence == fence)
    }
}

/// The history as it looks to the lock in that directory. Its entries are as many, so that an entry has
/// one number in both. Who was told to hold several locks is told of this one, by its own znode and fence;
/// who holds others only is told nothing, and what was done to other locks was not done.
pub(super) fn view(case: &Case<'_>, grants: &Grants<'_>, directory: &str) -> Vec<Entry> {
    let seen = |(at, entry): (usize, &Entry)| {
        let what = seen(case, grants, directory, at, &entry.what);
        Entry { at_us: entry.at_us, what }
    };
    case.history.iter().enumerate().map(seen).collect()
}

fn seen(case: &Case<'_>, grants: &Grants<'_>, directory: &str, at: usize, what: &What) -> What {
    match what {
        What::Txn { zxid, session, changes } => {
            let changes = changes.iter().filter(|change| concerns(change, directory)).cloned();
            What::Txn { zxid: *zxid, session: *session, changes: changes.collect() }
        }
        What::Told { participant: who, notice: Told::Held { path, fence } } => {
            let part = grants.last(*who, at).and_then(|grant| grant.part(directory));
            let fence = match part {
                Some(part) if part != path => czxid(case, part, at),
                _ => Some(*fence),
            };
            let held =
                part.zip(fence).map(|(path, fence)| Told::Held { path: path.to_owned(), fence });
            told(*who, held)
        }
        What::Told { participant: who, notice: Told::Released { path } } => {
            let grant = grants.last(*who, at).filter(|grant| grant.paths.contains(&path.as_str()));
            let part = grant.and_then(|grant| grant.part(directory));
            told(*who, part.map(|path| Told::Released { path: path.to_owned() }))
        }
        What::Wrote { participant: who, fence, accepted } => {
            let part = grants.with_fence(*who, *fence).and_then(|grant| grant.part(directory));
            match part.and_then(|part| czxid(case, part, at)) {
                Some(fence) => What::Wrote { participant: *who, fence, accepted: *accepted },
                None => told(*who, None),
            }
        }
        What::Invoked { participant: who, call, operation, arguments }
            if operation == "release" =>
        {
            let is_of_it = grants.last(*who, at).is_some_and(|it| it.part(directory).is_some());
            let operation = if is_of_it { "release" } else { "release-others" }.to_owned();
            What::Invoked {
                participant: *who,
                call: *call,
                operation,
                arguments: arguments.clone(),
            }
        }
        What::Returned { participant: who, call, outcome: Outcome::Ok { value, holds } } => {
            let name = case.people.person(*who).and_then(|person| name_of(person, directory));
            let value = name.map_or(Value::Null, |name| record_of(value, name));
            let outcome = Outcome::Ok { value, holds: *holds };
            What::Returned { participant: *who, call: *call, outcome }
        }
        other => other.clone(),
    }
}

/// Whether a change is one of a session, or of the lock in that directory.
fn concerns(change: &Change, directory: &str) -> bool {
    match change {
        Change::Created { path, .. } | Change::Deleted { path } | Change::DataSet { path, .. } => {
            split(path).is_some_and(|(parent, _)| parent == directory)
        }
        Change::SessionCreated { .. } | Change::SessionClosed { .. } => true,
    }
}

/// What a participant is told; where that is nothing, something that no judge asks for.
fn told(participant: ParticipantId, notice: Option<Told>) -> What {
    match notice {
        Some(notice) => What::Told { participant, notice },
        None => What::Woken { participant, tags: Vec::new() },
    }
}

fn czxid(case: &Case<'_>, path: &str, at: usize) -> Option<u64> {
    case.truth.find(path, at).map(|contender| contender.czxid.unsigned_abs())
}

/// The name of the lock in that directory, for a participant.
pub(super) fn name_of<'a>(person: &Person<'_>, directory: &'a str) -> Option<&'a str> {
    split(directory).filter(|(parent, _)| *parent == person.mount).map(|(_, name)| name)
}

/// What an answer says of the lock of that name, as a lock of its own would answer.
fn record_of(value: &Value, name: &str) -> Value {
    let is_it = |record: &&Value| record.get("name").and_then(Value::as_str) == Some(name);
    let record = granted(value).and_then(|records| records.iter().find(is_it));
    let part = |key| record.and_then(|record| record.get(key)).cloned().unwrap_or_default();
    match record {
        Some(_) => json!({ "path": part("path"), "fence": part("fence") }),
        None => Value::Null,
    }
}
