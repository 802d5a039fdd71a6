//! What really happened, by the ensemble's own log: sessions, contenders, and whose turn it was.

use std::collections::{BTreeMap, BTreeSet};

use crate::Moment;
use crate::counter::Counter;
use crate::history::{Change, Entry, FaultKind, HostId, What};

/// The ensemble's log, taken down in one pass.
#[derive(Debug, Default)]
pub struct Truth<'a> {
    contenders: Vec<Contender<'a>>,
    by_path: BTreeMap<&'a str, Vec<usize>>,
    by_czxid: BTreeMap<i64, Vec<usize>>,
    lines: BTreeMap<&'a str, Line<'a>>,
    sessions: BTreeMap<i64, Session>,
}

/// An ephemeral znode whose name ends in a counter: somebody in a line.
#[derive(Debug)]
pub struct Contender<'a> {
    /// Its number among all, in the order of their creation.
    pub id: usize,
    /// Its path.
    pub path: &'a str,
    /// The path of its line.
    pub parent: &'a str,
    /// The zxid that created it.
    pub czxid: i64,
    /// The session it belongs to.
    pub owner: i64,
    /// When it was created.
    pub created: Moment,
    /// How it went, if it did.
    pub deleted: Option<Deletion>,
    /// When its data was set.
    pub written: Vec<Moment>,
    /// When it became the first of its line: from then on it owns what the line is for.
    pub first: Option<Moment>,
    /// An owner that was still there when it became first.
    pub beside: Option<usize>,
    /// One that had come before it and was still there when it became first.
    pub overtook: Option<usize>,
    /// One of the same name but for the counter that was still there when it was created.
    pub twin: Option<usize>,
}

/// How a contender went.
#[derive(Debug, Clone, Copy)]
pub struct Deletion {
    /// When.
    pub when: Moment,
    /// Its session ran out, as its host could foresee; nobody deleted it or struck the session.
    pub was_foreseeable: bool,
}

impl Contender<'_> {
    /// Whether it is there after that entry.
    pub fn lives_at(&self, at: usize) -> bool {
        self.created.at <= at && self.deleted.is_none_or(|deletion| deletion.when.at > at)
    }

    /// When it went, if it did.
    pub fn deleted_at(&self) -> Option<Moment> {
        self.deleted.map(|deletion| deletion.when)
    }
}

/// The contenders of one parent.
#[derive(Debug, Default)]
struct Line<'a> {
    /// Those alive, by their place: the counter, unrolled from the circle.
    alive: BTreeMap<(i64, usize), Counter>,
    places: BTreeMap<usize, i64>,
    by_stem: BTreeMap<&'a str, usize>,
    /// Whoever became first, and at which entry; an entry without one if the line became empty.
    firsts: Vec<(usize, Option<usize>)>,
}

/// A session of a host.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Whose it is; none if it was never seen to begin.
    pub host: Option<HostId>,
    /// Negotiated; 0 if it was never seen to begin.
    pub timeout_us: u64,
    /// The host gave it up.
    pub lost: Option<Moment>,
    /// The ensemble is made to expire it, of which no clock can warn its host.
    struck: Option<Moment>,
}

impl Session {
    /// Whether the ensemble had been made to expire it by then.
    pub fn was_struck_by(&self, moment: Moment) -> bool {
        self.struck.is_some_and(|struck| struck <= moment)
    }
}

impl<'a> Truth<'a> {
    /// Of a history.
    pub fn of(history: &'a [Entry]) -> Self {
        let mut truth = Truth::default();
        for (at, entry) in history.iter().enumerate() {
            let now = Moment::of(at, entry);
            match &entry.what {
                What::Txn { zxid, changes, .. } => truth.commit(now, *zxid, changes),
                What::SessionOpened { host, session, timeout_ms } => {
                    let session = truth.sessions.entry(*session).or_default();
                    session.host = Some(*host);
                    session.timeout_us = timeout_ms.saturating_mul(1000);
                }
                What::SessionLost { session, .. } => {
                    truth.sessions.entry(*session).or_default().lost.get_or_insert(now);
                }
                What::Fault { fault: FaultKind::Expiry, host, .. } => {
                    let struck = |session: &&mut Session| host.is_none() || session.host == *host;
                    for session in truth.sessions.values_mut().filter(struck) {
                        session.struck.get_or_insert(now);
                    }
                }
                _ => {}
            }
        }
        truth
    }

    /// All of them, in the order of their creation.
    pub fn contenders(&self) -> &[Contender<'a>] {
        &self.contenders
    }

    /// The one of that number.
    pub fn contender(&self, id: usize) -> Option<&Contender<'a>> {
        self.contenders.get(id)
    }

    /// The contender of that path as of that entry: alive, or the last to have been.
    pub fn find(&self, path: &str, at: usize) -> Option<&Contender<'a>> {
        let ids = self.by_path.get(path)?;
        ids.iter().rev().filter_map(|id| self.contender(*id)).find(|it| it.created.at <= at)
    }

    /// The contenders that one txn created.
    pub fn created_by(&self, czxid: i64) -> impl Iterator<Item = &Contender<'a>> {
        self.by_czxid.get(&czxid).into_iter().flatten().filter_map(|id| self.contender(*id))
    }

    /// Who is first in the line of `parent` after that entry.
    pub fn first_in(&self, parent: &str, at: usize) -> Option<&Contender<'a>> {
        let firsts = &self.lines.get(parent)?.firsts;
        let since = firsts.partition_point(|(from, _)| *from <= at).checked_sub(1)?;
        self.contender(firsts.get(since)?.1?)
    }

    /// Those who became first in the line of `parent` at that entry or later, in that order.
    pub fn firsts_from(&self, parent: &str, at: usize) -> impl Iterator<Item = &Contender<'a>> {
        let firsts = self.lines.get(parent).map_or(&[][..], |line| line.firsts.as_slice());
        let from = firsts.partition_point(|(from, _)| *from < at);
        firsts.iter().skip(from).filter_map(|(_, id)| self.contender((*id)?))
    }

    /// A session that was heard of.
    pub fn session(&self, id: i64) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// The session's timeout; of one that was never seen to begin, the longest there is.
    pub fn timeout_us(&self, session: i64) -> u64 {
        let timeout = self.session(session).map_or(0, |session| session.timeout_us);
        if timeout > 0 { timeout } else { self.longest_timeout_us() }
    }

    /// The longest of all sessions' timeouts.
    pub fn longest_timeout_us(&self) -> u64 {
        self.sessions.values().map(|session| session.timeout_us).max().unwrap_or_default()
    }

    fn commit(&mut self, now: Moment, zxid: i64, changes: &'a [Change]) {
        let ended = changes.iter().filter_map(|change| match change {
            Change::SessionClosed { session } => Some(*session),
            _ => None,
        });
        let is_struck =
            |id: &i64| self.sessions.get(id).is_some_and(|session| session.struck.is_some());
        let ran_out: BTreeSet<i64> = ended.filter(|id| !is_struck(id)).collect();
        let mut touched = BTreeSet::new();
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, .. } if *ephemeral_owner != 0 => {
                    touched.extend(self.create(now, zxid, path, *ephemeral_owner));
                }
                Change::Deleted { path } => touched.extend(self.delete(now, path, &ran_out)),
                Change::DataSet { path, .. } => {
                    let id = self.by_path.get(path.as_str()).and_then(|ids| ids.last());
                    let written = id.and_then(|id| self.contenders.get_mut(*id));
                    written.into_iter().for_each(|it| it.written.push(now));
                }
                _ => {}
            }
        }
        // A txn is one step: what stood between its changes was never the case.
        for parent in touched {
            self.settle(parent, now);
        }
    }

    fn create(
        &mut self,
        created: Moment,
        czxid: i64,
        path: &'a str,
        owner: i64,
    ) -> Option<&'a str> {
        let (parent, name) = split(path)?;
        let (stem, counter) = Counter::split(name)?;
        let id = self.contenders.len();
        let line = self.lines.entry(parent).or_default();
        let origin = line.alive.first_key_value();
        let place = origin
            .map_or(0, |((place, _), first)| place.saturating_add(counter.steps_after(*first)));
        line.alive.insert((place, id), counter);
        line.places.insert(id, place);
        let twin = line.by_stem.insert(stem, id).filter(|twin| line.places.contains_key(twin));
        self.by_path.entry(path).or_default().push(id);
        self.by_czxid.entry(czxid).or_default().push(id);
        self.contenders.push(Contender {
            id,
            path,
            parent,
            czxid,
            owner,
            created,
            deleted: None,
            written: Vec::new(),
            first: None,
            beside: None,
            overtook: None,
            twin,
        });
        Some(parent)
    }

    fn delete(&mut self, when: Moment, path: &str, ran_out: &BTreeSet<i64>) -> Option<&'a str> {
        let id = *self.by_path.get(path)?.last()?;
        let contender = self.contenders.get_mut(id).filter(|it| it.deleted.is_none())?;
        let was_foreseeable = ran_out.contains(&contender.owner);
        contender.deleted = Some(Deletion { when, was_foreseeable });
        let line = self.lines.get_mut(contender.parent)?;
        let place = line.places.remove(&id)?;
        line.alive.remove(&(place, id));
        Some(contender.parent)
    }

    /// Notes who is first now.
    fn settle(&mut self, parent: &'a str, now: Moment) {
        let Some(line) = self.lines.get_mut(parent) else {
            return;
        };
        let first = line.alive.first_key_value().map(|((_, id), _)| *id);
        let before = line.firsts.last().and_then(|(_, first)| *first);
        if first == before {
            return;
        }
        line.firsts.push((now.at, first));
        // Numbers are in the order of creation, which is that of the `czxid`s.
        let oldest = line.places.first_key_value().map(|(id, _)| *id);
        let beside = before.filter(|before| line.places.contains_key(before));
        let contender = first.and_then(|first| self.contenders.get_mut(first));
        if let Some(contender) = contender.filter(|contender| contender.first.is_none()) {
            contender.first = Some(now);
            contender.beside = beside;
            contender.overtook = oldest.filter(|oldest| *oldest < contender.id);
        }
    }
}

/// A znode's parent and its name.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}
