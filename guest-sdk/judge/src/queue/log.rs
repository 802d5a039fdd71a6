//! A queue by the ensemble's own log: what was put in, who took it, and how it went.

use std::collections::BTreeMap;

use crate::counter::Counter;
use crate::history::{CallId, Change, ParticipantId, What};
use crate::people::Call;
use crate::truth::split;
use crate::{Case, Moment};

use super::Kind;

/// Everything that was ever in a queue.
#[derive(Debug)]
pub struct Log<'a> {
    /// What kind of queue it is.
    pub kind: &'a Kind,
    /// The items, in the order in which they were put in.
    pub items: Vec<Item<'a>>,
    /// The newest item of each path.
    by_path: BTreeMap<&'a str, usize>,
}

/// An item.
#[derive(Debug)]
pub struct Item<'a> {
    /// The path of its znode, in the whole tree.
    pub path: &'a str,
    /// The directory of its queue.
    pub queue: &'a str,
    /// The zxid of the txn that put it in.
    pub czxid: i64,
    /// Its priority, as its name says it; 0 if the items of its kind have none.
    pub priority: i64,
    /// What was put in.
    pub data: &'a [u8],
    /// When it was put in.
    pub put: Moment,
    /// Which call put it in, if that can be known.
    pub by: Option<CallId>,
    /// How often it was taken, by the version of its znode.
    pub version: i32,
    /// Who claimed it, in order.
    pub claims: Vec<Claim<'a>>,
    /// How it went, if it did.
    pub gone: Option<Gone>,
}

/// A claim of an item: a znode in `claims` that was created while the item was there, in the txn that
/// counted the attempt.
#[derive(Debug)]
pub struct Claim<'a> {
    /// The path of the znode, in the whole tree.
    pub path: &'a str,
    /// The zxid of the txn, which is the claim's fence.
    pub czxid: i64,
    /// Whose it is.
    pub session: i64,
    /// When it came.
    pub since: Moment,
    /// When it went, if it did.
    pub until: Option<Moment>,
    /// The version of the item since then.
    pub version: i32,
    /// Which call took it, if that can be known.
    pub by: Option<CallId>,
}

/// How an item went.
#[derive(Debug, Clone, Copy)]
pub struct Gone {
    /// When it went.
    pub when: Moment,
    /// By which txn.
    pub how: How,
    /// Which call did it, if that can be known.
    pub by: Option<CallId>,
    /// Whose session the txn was.
    pub session: i64,
}

/// What the txn that deleted an item did besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It deleted the claim.
    WithClaim,
    /// It created a dead letter with the same data.
    Buried,
    /// Neither.
    Alone,
}

impl Item<'_> {
    /// Whether it was there from one entry to the other, both included.
    pub fn is_there(&self, from: usize, until: usize) -> bool {
        self.put.at <= from && self.gone.is_none_or(|gone| gone.when.at > until)
    }

    /// The claim that it had just before that entry.
    pub fn claim_before(&self, at: usize) -> Option<&Claim<'_>> {
        let before = |claim: &&Claim<'_>| {
            claim.since.at < at && claim.until.is_none_or(|until| until.at >= at)
        };
        self.claims.iter().find(before)
    }

    /// Whether it was there for anybody to take from one entry to the other, both included.
    pub fn is_free(&self, from: usize, until: usize) -> bool {
        self.spans()
            .iter()
            .any(|(since, end)| since.at <= from && end.is_none_or(|end| end.at > until))
    }

    /// Whether anybody could have taken it at a moment between two entries.
    pub fn was_free(&self, from: usize, until: usize) -> bool {
        self.spans()
            .iter()
            .any(|(since, end)| since.at < until && end.is_none_or(|end| end.at > from))
    }

    /// Whether it was there at a moment between two entries, and had been taken so often by then.
    pub fn had_attempts(&self, attempts: u64, from: usize, until: usize) -> bool {
        let gone = self.gone.map(|gone| gone.when);
        let counted = self.claims.iter().map(|claim| (claim.since, claim.version));
        let since: Vec<(Moment, i32)> = [(self.put, 0)].into_iter().chain(counted).collect();
        let until_then = since.iter().skip(1).map(|(next, _)| Some(*next)).chain([gone]);
        since.iter().zip(until_then).any(|((since, version), end)| {
            u64::try_from(*version) == Ok(attempts)
                && since.at < until
                && end.is_none_or(|end| end.at > from)
        })
    }

    /// The times in which it was there, and somebody had claimed it.
    pub fn taken(&self) -> impl Iterator<Item = (Moment, Option<Moment>)> {
        let gone = self.gone.map(|gone| gone.when);
        self.claims
            .iter()
            .map(move |claim| (claim.since, claim.until.into_iter().chain(gone).min()))
    }

    /// The times in which it was there and nobody had taken it.
    pub fn spans(&self) -> Vec<(Moment, Option<Moment>)> {
        let mut spans = Vec::new();
        let mut since = Some(self.put);
        for claim in &self.claims {
            spans.extend(since.map(|since| (since, Some(claim.since))));
            since = claim.until;
        }
        let gone = self.gone.map(|gone| gone.when);
        if let Some(since) = since.filter(|since| gone.is_none_or(|gone| since.at < gone.at)) {
            spans.push((since, gone));
        }
        spans
    }
}

/// A host call under way.
struct Asking<'a> {
    who: ParticipantId,
    number: u64,
    session: i64,
    paths: &'a [String],
    at: usize,
}

impl<'a> Log<'a> {
    /// Of a history, of queues of that kind.
    pub fn of(case: &Case<'a>, kind: &'a Kind) -> Self {
        let mut log = Log { kind, items: Vec::new(), by_path: BTreeMap::new() };
        let mut asking: Vec<Asking<'a>> = Vec::new();
        for (at, entry) in case.history.iter().enumerate() {
            match &entry.what {
                What::HostCall { participant, number, paths, .. } => {
                    let Some(person) = case.people.person(*participant) else { continue };
                    let (who, number, session) = (*participant, *number, person.session);
                    asking.push(Asking { who, number, session, paths, at });
                }
                // What is withdrawn may be done all the same, and later.
                What::HostCallAnswered { number, answer, .. } if answer != "cancelled" => {
                    asking.retain(|it| it.number != *number);
                }
                What::Txn { zxid, session, changes } => {
                    let txn = Txn {
                        case,
                        now: Moment::of(at, entry),
                        zxid: *zxid,
                        session: *session,
                        changes,
                    };
                    log.commit(&txn, changes, &asking);
                }
                _ => {}
            }
        }
        log
    }

    /// The item of that path as of that entry, there or the last to have been.
    pub fn find(&self, path: &str, at: usize) -> Option<&Item<'a>> {
        self.items.iter().rev().find(|item| item.path == path && item.put.at <= at)
    }

    /// Whether an item comes before another one, by their places in [`Log::items`].
    pub fn comes_before(&self, one: usize, other: usize) -> bool {
        let rank = |place: usize| self.items.get(place).map(|item| (item.priority, place));
        rank(one) < rank(other)
    }

    fn commit(&mut self, txn: &Txn<'_, 'a>, changes: &'a [Change], asking: &[Asking<'_>]) {
        let now = txn.now;
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, data } => match part_of(path) {
                    // Somebody else may have put a znode there that is no item.
                    Some((queue, "items", name)) if Counter::split(name).is_some() => {
                        let priority = self.kind.priority.map_or(0, |read| read(name));
                        let by = txn.asker(asking, stem(path));
                        self.by_path.insert(path, self.items.len());
                        self.items.push(Item {
                            path,
                            queue,
                            czxid: txn.zxid,
                            priority,
                            data: data.bytes(),
                            put: now,
                            by,
                            version: 0,
                            claims: Vec::new(),
                            gone: None,
                        });
                    }
                    Some((queue, "claims", name)) => {
                        let item = [queue, "/items/", name].concat();
                        let is_counted = changes.iter().any(|it| sets(it, &item));
                        let Some(item) = self.newest(&item).filter(|_| is_counted) else {
                            continue;
                        };
                        item.claims.push(Claim {
                            path,
                            czxid: txn.zxid,
                            session: *ephemeral_owner,
                            since: now,
                            until: None,
                            version: item.version,
                            by: txn.asker(asking, path),
                        });
                    }
                    _ => {}
                },
                Change::DataSet { path, version, .. } => {
                    if let Some(item) = self.newest(path) {
                        item.version = *version;
                    }
                }
                Change::Deleted { path } => match part_of(path) {
                    Some((queue, "items", name)) => {
                        let how = how(changes, queue, name, self.newest(path).map(|it| it.data));
                        let by = txn.asker(asking, path);
                        if let Some(item) = self.newest(path) {
                            let (when, session) = (now, txn.session);
                            item.gone.get_or_insert(Gone { when, how, by, session });
                        }
                    }
                    Some((queue, "claims", name)) => {
                        let item = [queue, "/items/", name].concat();
                        let claims = self.newest(&item).map(|item| &mut item.claims);
                        if let Some(claim) = claims.and_then(|claims| claims.last_mut()) {
                            claim.until.get_or_insert(now);
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn newest(&mut self, path: &str) -> Option<&mut Item<'a>> {
        self.items.get_mut(*self.by_path.get(path)?)
    }
}

/// A txn that is read.
struct Txn<'c, 'a> {
    case: &'c Case<'a>,
    now: Moment,
    zxid: i64,
    session: i64,
    changes: &'c [Change],
}

impl Txn<'_, '_> {
    /// The call whose component asked for this txn and for its change of that path, if only one call can
    /// be that one. The component that asked for a txn asked for every change in the txn.
    fn asker(&self, asking: &[Asking<'_>], path: &str) -> Option<CallId> {
        let has_asked = |it: &&Asking<'_>, path: &str| it.paths.iter().any(|asked| asked == path);
        let mut all = asking.iter().filter(|it| {
            let has_asked_for = |change: &Change| match change {
                Change::Created { path, .. } => has_asked(it, path) || has_asked(it, stem(path)),
                Change::DataSet { path, .. } | Change::Deleted { path } => has_asked(it, path),
                Change::SessionCreated { .. } | Change::SessionClosed { .. } => true,
            };
            it.session == self.session
                && has_asked(it, path)
                && self.changes.iter().all(has_asked_for)
        });
        let asker = all.next().filter(|_| all.next().is_none())?;
        self.case.people.call_at(asker.who, asker.at).map(|call: &Call<'_>| call.id)
    }
}

fn how(changes: &[Change], queue: &str, name: &str, held: Option<&[u8]>) -> How {
    let claim = [queue, "/claims/", name].concat();
    let letter = [queue, "/dead-letters/", name].concat();
    let is_buried = |change: &Change| matches!(change, Change::Created { path, data, .. } if *path == letter && Some(data.bytes()) == held);
    if changes.iter().any(is_buried) {
        return How::Buried;
    }
    match changes.iter().any(|it| matches!(it, Change::Deleted { path } if *path == claim)) {
        true => How::WithClaim,
        false => How::Alone,
    }
}

fn sets(change: &Change, item: &str) -> bool {
    matches!(change, Change::DataSet { path, .. } if path == item)
}

/// The queue's directory, which of its parts a path is in, and the name there.
pub(super) fn part_of(path: &str) -> Option<(&str, &str, &str)> {
    let (directory, name) = split(path)?;
    let (queue, part) = split(directory)?;
    Some((queue, part, name))
}

/// A path without its counter.
fn stem(path: &str) -> &str {
    let name = split(path).map_or(path, |(_, name)| name);
    let stem = Counter::split(name).map_or(name, |(stem, _)| stem);
    path.get(..path.len() - (name.len() - stem.len())).unwrap_or(path)
}
