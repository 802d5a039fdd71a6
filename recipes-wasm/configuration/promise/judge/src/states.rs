//! All that a configuration ever was, by the ensemble's own log.

use std::collections::BTreeMap;

use wok_judge::Moment;
use wok_judge::history::{Change, Data, Entry, What};

/// The value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) data: &'a Data,
    pub(crate) version: i32,
}

/// What a transaction did to one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyChange<'a> {
    pub(crate) key: &'a str,
    pub(crate) before: Option<Value<'a>>,
    pub(crate) after: Option<Value<'a>>,
}

/// A configuration from one transaction on.
#[derive(Debug, Clone, Default)]
pub(crate) struct State<'a> {
    /// The transaction, and who asked for it; none for the beginning.
    pub(crate) made: Option<(Moment, i64, i64)>,
    /// The newest transaction that wrote the root; 0 where there is no root.
    pub(crate) revision: i64,
    /// All keys that have a value.
    pub(crate) keys: BTreeMap<&'a str, Value<'a>>,
    /// What this transaction changed of them.
    pub(crate) changes: Vec<KeyChange<'a>>,
    /// Whether this transaction wrote the root.
    pub(crate) wrote_root: bool,
    /// What the root says: the key that was changed last.
    pub(crate) root: Option<&'a Data>,
}

/// All states, in order.
#[derive(Debug)]
pub(crate) struct States<'a> {
    all: Vec<State<'a>>,
}

impl<'a> States<'a> {
    /// Those of the configuration at `mount`.
    pub(crate) fn of(history: &'a [Entry], mount: &str) -> Self {
        let mut all = vec![State::default()];
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { zxid, session, changes } = &entry.what else { continue };
            let last = all.last().cloned().unwrap_or_default();
            let mut next = State { changes: Vec::new(), wrote_root: false, ..last };
            for change in changes {
                next.take(change, *zxid, mount);
            }
            if next.wrote_root || !next.changes.is_empty() {
                next.made = Some((Moment::of(at, entry), *zxid, *session));
                all.push(next);
            }
        }
        States { all }
    }

    /// All of them; the first is that before anything was done.
    pub(crate) fn all(&self) -> &[State<'a>] {
        &self.all
    }

    /// The states at some moment between two entries.
    pub(crate) fn between(&self, from: usize, until: usize) -> impl Iterator<Item = &State<'a>> {
        let at = |state: &State<'_>| state.made.map_or(0, |(moment, ..)| moment.at);
        let begin = self.all.iter().rposition(|state| state.made.is_none() || at(state) < from);
        let states = self.all.iter().skip(begin.unwrap_or(0));
        states.take_while(move |state| state.made.is_none() || at(state) <= until)
    }

    /// The one that a transaction made.
    pub(crate) fn by_zxid(&self, zxid: i64) -> Option<&State<'a>> {
        self.all.iter().find(|state| state.made.is_some_and(|(_, made, _)| made == zxid))
    }
}

impl<'a> State<'a> {
    fn take(&mut self, change: &'a Change, zxid: i64, mount: &str) {
        let (path, after, is_ephemeral) = match change {
            Change::Created { path, ephemeral_owner, data } => {
                (path, Some(Value { data, version: 0 }), *ephemeral_owner != 0)
            }
            Change::DataSet { path, version, data } => {
                (path, Some(Value { data, version: *version }), false)
            }
            Change::Deleted { path } => (path, None, false),
            Change::SessionCreated { .. } | Change::SessionClosed { .. } => return,
        };
        if path == mount {
            (self.wrote_root, self.revision) = (true, after.map_or(0, |_| zxid));
            self.root = after.map(|root| root.data);
            return;
        }
        let Some(key) = path.strip_prefix(mount).and_then(|name| name.strip_prefix('/')) else {
            return;
        };
        if is_ephemeral || key.contains('/') || key.starts_with('.') {
            return;
        }
        let before = match after {
            Some(value) => self.keys.insert(key, value),
            None => self.keys.remove(key),
        };
        self.changes.push(KeyChange { key, before, after });
    }
}
