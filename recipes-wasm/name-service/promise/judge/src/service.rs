//! What the instances of a name were, by the ensemble's own log.

use std::collections::{BTreeMap, BTreeSet};

use wok_judge::Moment;
use wok_judge::history::{Change, Entry, What};
use wok_judge::truth::split;

/// The states of one name's directory, in order. In the first state there is no directory.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    /// The states, each until the next one.
    pub(crate) states: Vec<State<'a>>,
}

/// What a name's instances were for a time.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    /// From when on.
    pub(crate) from: Moment,
    /// The txn that made it so; 0 if there is no directory.
    pub(crate) revision: u64,
    /// The instances, by their ids.
    pub(crate) instances: BTreeMap<&'a str, Instance<'a>>,
    /// The children that are no instances: what another program has left there.
    others: BTreeSet<&'a str>,
}

/// An instance's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance<'a> {
    /// The txn that created it.
    pub(crate) fence: u64,
    /// Its session.
    pub(crate) session: i64,
    /// What it holds.
    pub(crate) data: &'a [u8],
}

impl<'a> Service<'a> {
    /// Of the name whose directory is at `directory`.
    pub(crate) fn of(history: &'a [Entry], directory: &str) -> Self {
        let from = Moment { at: 0, us: 0 };
        let (instances, others) = (BTreeMap::new(), BTreeSet::new());
        let mut now = State { from, revision: 0, instances, others };
        let mut states = vec![now.clone()];
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { zxid, changes, .. } = &entry.what else { continue };
            let zxid = zxid.unsigned_abs();
            let mut is_changed = false;
            for change in changes {
                is_changed |= now.note(change, directory, zxid);
            }
            if is_changed {
                now.from = Moment::of(at, entry);
                states.push(now.clone());
            }
        }
        Service { states }
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
        self.states.iter().find(|it| it.revision == revision && it.from.at < before)
    }
}

impl<'a> State<'a> {
    /// Whether a list of the names has this one: a list counts children, and does not read them.
    pub(crate) fn is_listed(&self) -> bool {
        !self.instances.is_empty() || !self.others.is_empty()
    }

    /// Notes a change; answers whether it is one of the name's.
    fn note(&mut self, change: &'a Change, directory: &str, zxid: u64) -> bool {
        match change {
            Change::Created { path, ephemeral_owner, data } => {
                match (name(path, directory), *ephemeral_owner) {
                    (Some(name), 0) => drop(self.others.insert(name)),
                    (Some(name), session) => {
                        let data = data.bytes();
                        self.instances.insert(name, Instance { fence: zxid, session, data });
                    }
                    (None, _) => {}
                }
                self.touch(path, directory, zxid)
            }
            Change::Deleted { path } if path == directory => {
                self.instances.clear();
                self.others.clear();
                self.revision = 0;
                true
            }
            Change::Deleted { path } => {
                if let Some(name) = name(path, directory) {
                    self.instances.remove(name);
                    self.others.remove(name);
                }
                self.touch(path, directory, zxid)
            }
            Change::DataSet { path, data, .. } => {
                if let Some(instance) =
                    name(path, directory).and_then(|name| self.instances.get_mut(name))
                {
                    instance.data = data.bytes();
                }
                self.touch(path, directory, zxid)
            }
            _ => false,
        }
    }

    fn touch(&mut self, path: &str, directory: &str, zxid: u64) -> bool {
        let concerns = path == directory || name(path, directory).is_some();
        if concerns {
            self.revision = zxid;
        }
        concerns
    }
}

/// The id of a child of the directory.
fn name<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    split(path).filter(|(parent, _)| *parent == directory).map(|(_, name)| name)
}
