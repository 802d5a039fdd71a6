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
    /// What a txn deleted that created an ephemeral znode as well.
    deleted_with: BTreeMap<i64, Vec<&'a str>>,
    lines: BTreeMap<&'a str, Line<'a>>,
    sessions: BTreeMap<i64, Session>,
    /// What the names of contenders that own beside each other have before the counter.
    shared: &'static [&'static str],
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
    /// Whether it owns beside others that do.
    pub is_shared: bool,
    /// Where it stands in its line: the counter, unrolled from the circle.
    place: i64,
    /// The one whose place it took in the txn that created it, which deleted that one.
    pub replaces: Option<usize>,
    /// The one that took its place in that way.
    pub replaced_by: Option<usize>,
    /// The number of the first that stood in its place: it came when that one did.
    pub came: usize,
    /// When it became its turn, as the first of its line, or as one that is shared and has none ahead
    /// that is not: from then on it owns what the line is for.
    pub first: Option<Moment>,
    /// An owner that it cannot own beside and that was still there when it became its turn.
    pub beside: Option<usize>,
    /// One that had come before it, was in its way and was still there when it became its turn.
    pub overtook: Option<usize>,
    /// Its name but for the counter, if that says whose it is.
    own_stem: Option<&'a str>,
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
    /// Whether both were made for one request. A host that has lost the reply looks for the contender, and
    /// sends the request again if it finds none: somebody else may have deleted the first one by then.
    pub fn is_of_one_request_with(&self, other: &Contender<'_>) -> bool {
        self.own_stem.is_some() && (self.parent, self.own_stem) == (other.parent, other.own_stem)
    }

    /// Whether it is there after that entry.
    pub fn lives_at(&self, at: usize) -> bool {
        self.created.at <= at && self.deleted.is_none_or(|deletion| deletion.when.at > at)
    }

    /// When it went, if it did.
    pub fn deleted_at(&self) -> Option<Moment> {
        self.deleted.map(|deletion| deletion.when)
    }

    /// Whether the two cannot own at once.
    pub fn excludes(&self, other: &Contender<'_>) -> bool {
        self.id != other.id && !(self.is_shared && other.is_shared)
    }
}

/// The contenders of one parent.
#[derive(Debug, Default)]
struct Line<'a> {
    /// Those alive, by their place: the counter, unrolled from the circle.
    alive: BTreeMap<(i64, usize), Counter>,
    places: BTreeMap<usize, i64>,
    by_stem: BTreeMap<&'a str, usize>,
    /// The contenders whose turn it became, in that order.
    turns: Vec<usize>,
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
    /// Of a history in which one contender of a line owns at a time.
    pub fn of(history: &'a [Entry]) -> Self {
        Truth::of_kinds(history, &[])
    }

    /// Of a history in which those contenders own beside each other that have one of these before
    /// their counters: readers.
    pub fn of_kinds(history: &'a [Entry], shared: &'static [&'static str]) -> Self {
        let mut truth = Truth { shared, ..Truth::default() };
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

    /// What the txn deleted, if it created an ephemeral znode as well: a claim of that `czxid` is in
    /// the place of what was claimed of these.
    pub fn deleted_with(&self, czxid: i64) -> &[&'a str] {
        self.deleted_with.get(&czxid).map_or(&[], Vec::as_slice)
    }

    /// The first of those that stand before a contender after that entry and are in its way.
    pub fn in_the_way_of(&self, contender: &Contender<'_>, at: usize) -> Option<&Contender<'a>> {
        let place = |it: &Contender<'_>| (it.place, it.id);
        let in_the_way = |it: &&Contender<'a>| {
            let is_ahead = it.parent == contender.parent && place(it) < place(contender);
            is_ahead && it.lives_at(at) && it.excludes(contender)
        };
        self.contenders.iter().filter(in_the_way).min_by_key(|it| place(it))
    }

    /// Those who stand in a line after that entry, in the order in which they have their turns.
    pub fn line_at(&self, parent: &str, at: usize) -> Vec<&Contender<'a>> {
        let stands = |it: &&Contender<'a>| it.parent == parent && it.lives_at(at);
        let mut line: Vec<_> = self.contenders.iter().filter(stands).collect();
        line.sort_by_key(|it| (it.place, it.id));
        line
    }

    /// Those whose turn it became at that entry or later, in that order, and that cannot own beside the
    /// contender, of the same line.
    pub fn successors(
        &self,
        contender: &Contender<'a>,
        at: usize,
    ) -> impl Iterator<Item = &Contender<'a>> {
        let turns = self.lines.get(contender.parent).map_or(&[][..], |line| line.turns.as_slice());
        let (id, is_shared) = (contender.id, contender.is_shared);
        let turns = turns.iter().filter_map(|id| self.contender(*id));
        turns.filter(move |next| {
            let excludes = next.id != id && !(next.is_shared && is_shared);
            excludes && next.first.is_some_and(|first| first.at >= at)
        })
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
        let (mut creates, mut deleted) = (false, Vec::new());
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, .. } if *ephemeral_owner != 0 => {
                    creates = true;
                    touched.extend(self.create(now, zxid, path, *ephemeral_owner));
                }
                Change::Deleted { path } => {
                    deleted.push(path.as_str());
                    touched.extend(self.delete(now, path, &ran_out));
                }
                Change::DataSet { path, .. } => {
                    let id = self.by_path.get(path.as_str()).and_then(|ids| ids.last());
                    let written = id.and_then(|id| self.contenders.get_mut(*id));
                    written.into_iter().for_each(|it| it.written.push(now));
                }
                _ => {}
            }
        }
        if creates && !deleted.is_empty() {
            self.replace(zxid, now, &deleted);
            self.deleted_with.insert(zxid, deleted);
        }
        // A txn is one step: what stood between its changes was never the case.
        for parent in touched {
            self.settle(parent, now);
        }
    }

    /// Notes which of the contenders that the txn created took the places of those that it deleted.
    fn replace(&mut self, zxid: i64, now: Moment, deleted: &[&str]) {
        let created = self.by_czxid.get(&zxid).cloned().unwrap_or_default();
        let gone: Vec<usize> =
            deleted.iter().filter_map(|path| self.by_path.get(path)?.last().copied()).collect();
        for new in created {
            let Some(it) = self.contenders.get(new) else { continue };
            let is_its_place = |old: &Contender<'_>| {
                (old.parent, old.owner, old.place) == (it.parent, it.owner, it.place)
                    && old.id != new
                    && old.deleted_at() == Some(now)
            };
            let old =
                gone.iter().filter_map(|id| self.contenders.get(*id)).find(|it| is_its_place(it));
            let Some((old, came)) = old.map(|old| (old.id, old.came)) else { continue };
            if let Some(it) = self.contenders.get_mut(new) {
                (it.replaces, it.came) = (Some(old), came);
            }
            if let Some(it) = self.contenders.get_mut(old) {
                it.replaced_by = Some(new);
            }
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
        let is_shared = self.shared.iter().any(|kind| stem.ends_with(kind));
        let id = self.contenders.len();
        let line = self.lines.entry(parent).or_default();
        let origin = line.alive.first_key_value();
        let place = origin
            .map_or(0, |((place, _), first)| place.saturating_add(counter.steps_after(*first)));
        line.alive.insert((place, id), counter);
        line.places.insert(id, place);
        // Names without a UUID are no one's own: all that stand in such a line share them.
        let own_stem = Some(stem).filter(|stem| has_uuid(stem));
        let earlier = line.by_stem.insert(stem, id).filter(|_| own_stem.is_some());
        let twin = earlier.filter(|twin| line.places.contains_key(twin));
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
            is_shared,
            place,
            replaces: None,
            replaced_by: None,
            came: id,
            first: None,
            beside: None,
            overtook: None,
            own_stem,
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

    /// Notes whose turn it is now.
    fn settle(&mut self, parent: &'a str, now: Moment) {
        let Some(line) = self.lines.get_mut(parent) else {
            return;
        };
        let alive = || line.alive.keys().filter_map(|(_, id)| self.contenders.get(*id));
        let alone = alive().take(1).filter(|first| !first.is_shared);
        let together = alive().take_while(|it| it.is_shared);
        let owners = alone.chain(together).filter(|it| it.first.is_none());
        let begun: Vec<(usize, Option<usize>, Option<usize>)> = owners
            .map(|owner| {
                let others = || alive().filter(|other| owner.excludes(other));
                let beside = others().filter(|other| other.first.is_some());
                let beside = beside.max_by_key(|other| other.first).map(|other| other.id);
                let before = others().filter(|other| other.came < owner.came);
                (owner.id, beside, before.min_by_key(|other| other.came).map(|other| other.id))
            })
            .collect();
        for (id, beside, overtook) in begun {
            line.turns.push(id);
            if let Some(owner) = self.contenders.get_mut(id) {
                (owner.first, owner.beside, owner.overtook) = (Some(now), beside, overtook);
            }
        }
    }
}

/// A znode's parent and its name.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}
/// Whether a contender's name says whose it is: by a UUID, with hyphens or without.
fn has_uuid(stem: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let digits = |run: &str| run.chars().filter(char::is_ascii_hexdigit).count();
    stem.split(|c| !is_part(c)).any(|run| digits(run) >= 32)
}
