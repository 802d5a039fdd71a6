//! What a group was, by the ensemble's own log.

use std::collections::BTreeMap;

use wok_judge::Moment;
use wok_judge::history::{Change, Entry, What};
use wok_judge::truth::split;

/// All that became of one group, in order. In the first state it has no members; its directory may have
/// been there before the history begins.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The states, each until the next one.
    pub(crate) states: Vec<State<'a>>,
}

/// What a group was for a time.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    /// From when on.
    pub(crate) from: Moment,
    /// The txn that made it so; 0 if there is no directory.
    pub(crate) revision: u64,
    /// Whether that is known. It is not of a directory that may have been there before.
    pub(crate) is_known: bool,
    /// The members, by name.
    pub(crate) members: BTreeMap<&'a str, Member<'a>>,
}

/// A member's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// The txn that created it.
    pub(crate) fence: u64,
    /// Its session.
    pub(crate) session: i64,
    /// What it holds.
    pub(crate) data: &'a [u8],
}

impl<'a> Group<'a> {
    /// Of the group at `mount`.
    pub(crate) fn of(history: &'a [Entry], mount: &str) -> Self {
        let from = Moment { at: 0, us: 0 };
        let is_known = is_made_in(history, mount);
        let mut now = State { from, revision: 0, is_known, members: BTreeMap::new() };
        let mut states = vec![now.clone()];
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { zxid, changes, .. } = &entry.what else { continue };
            let zxid = zxid.unsigned_abs();
            let mut is_changed = false;
            for change in changes {
                is_changed |= now.note(change, mount, zxid);
            }
            if is_changed {
                (now.from, now.is_known) = (Moment::of(at, entry), true);
                states.push(now.clone());
            }
        }
        Group { states }
    }

    /// The states that there were between two entries.
    pub(crate) fn during(&self, from: usize, until: usize) -> impl Iterator<Item = &State<'a>> {
        let next = self.states.iter().skip(1).map(|state| state.from.at);
        let ends = next.chain([usize::MAX]);
        let states = self.states.iter().zip(ends);
        states.filter(move |(state, end)| state.from.at < until && *end > from).map(|(it, _)| it)
    }

    /// The changes between two entries.
    pub(crate) fn changes(&self, from: usize, until: usize) -> usize {
        let within = |state: &&State<'_>| (from..until).contains(&state.from.at);
        self.states.iter().skip(1).filter(within).count()
    }

    /// The state of that revision that there was before an entry.
    pub(crate) fn at_revision(&self, revision: u64, before: usize) -> Option<&State<'a>> {
        let first = self.states.get(1).map_or(u64::MAX, |state| state.revision.max(1));
        let is_it = |it: &State<'_>| match it.is_known {
            true => it.revision == revision,
            false => revision < first,
        };
        self.states.iter().find(|it| it.from.at < before && is_it(it))
    }
}

impl<'a> State<'a> {
    /// Notes a change; answers whether it is one of the group.
    fn note(&mut self, change: &'a Change, mount: &str, zxid: u64) -> bool {
        match change {
            Change::Created { path, ephemeral_owner, data } => {
                if let Some(name) = name(path, mount).filter(|_| *ephemeral_owner != 0) {
                    let (session, data) = (*ephemeral_owner, data.bytes());
                    self.members.insert(name, Member { fence: zxid, session, data });
                }
                self.touch(path, mount, zxid)
            }
            Change::Deleted { path } if path == mount => {
                self.members.clear();
                self.revision = 0;
                true
            }
            Change::Deleted { path } => {
                if let Some(name) = name(path, mount) {
                    self.members.remove(name);
                }
                self.touch(path, mount, zxid)
            }
            Change::DataSet { path, data, .. } => {
                if let Some(member) = name(path, mount).and_then(|name| self.members.get_mut(name))
                {
                    member.data = data.bytes();
                }
                self.touch(path, mount, zxid)
            }
            _ => false,
        }
    }

    fn touch(&mut self, path: &str, mount: &str, zxid: u64) -> bool {
        let concerns = path == mount || name(path, mount).is_some();
        if concerns {
            self.revision = zxid;
        }
        concerns
    }
}

/// Whether the first that is heard of the mount is its creation.
fn is_made_in(history: &[Entry], mount: &str) -> bool {
    let changes = history.iter().filter_map(|entry| match &entry.what {
        What::Txn { changes, .. } => Some(changes),
        _ => None,
    });
    let mut of_mount = changes.flatten().filter_map(|change| match change {
        Change::Created { path, .. } if path == mount => Some(true),
        Change::Created { path, .. } | Change::Deleted { path } | Change::DataSet { path, .. } => {
            (path == mount || name(path, mount).is_some()).then_some(false)
        }
        _ => None,
    });
    of_mount.next().unwrap_or(false)
}

/// The name of a child of the mount.
fn name<'a>(path: &'a str, mount: &str) -> Option<&'a str> {
    split(path).filter(|(parent, _)| *parent == mount).map(|(_, name)| name)
}
