//! Watches. They belong to a connection and end with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::path;
use crate::protocol::{AddWatchMode, EventType, WatchKind};
use crate::version::ServerVersion;

/// Both tables of a server.
#[derive(Debug)]
pub struct Watches {
    /// By getData, exists and addWatch.
    pub data: WatchTable,
    /// By getChildren and addWatch.
    pub child: WatchTable,
}

/// How long watches on a path last, as bits: several may stand side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modes(u8);

const STANDARD: Modes = Modes(1);
const PERSISTENT: Modes = Modes(2);
const RECURSIVE: Modes = Modes(4);
const ALL: Modes = Modes(7);

impl Modes {
    fn has(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    fn without(self, other: Modes) -> Modes {
        Modes(self.0 & !other.0)
    }
}

impl Watches {
    pub(super) fn new(version: ServerVersion) -> Self {
        Watches { data: WatchTable::new(version), child: WatchTable::new(version) }
    }

    pub(super) fn watch_data(&mut self, path: &str, connection: u64) {
        self.data.add(path, connection, STANDARD);
    }

    pub(super) fn watch_children(&mut self, path: &str, connection: u64) {
        self.child.add(path, connection, STANDARD);
    }

    pub(super) fn add(&mut self, path: &str, connection: u64, mode: AddWatchMode) {
        match mode {
            AddWatchMode::Persistent => {
                self.data.add(path, connection, PERSISTENT);
                self.child.add(path, connection, PERSISTENT);
            }
            // No list of children is ever told to it, but it counts as a watch on children.
            AddWatchMode::Recursive => {
                self.data.add(path, connection, RECURSIVE);
                self.child.add(path, connection, RECURSIVE);
            }
        }
    }

    /// Removes watches. False if there were none.
    pub(super) fn remove(&mut self, path: &str, connection: u64, kind: WatchKind) -> bool {
        let (data, child, modes) = self.meant(kind);
        let of_data = data && self.data.remove(path, connection, modes);
        let of_child = child && self.child.remove(path, connection, modes);
        of_data || of_child
    }

    pub(super) fn contains(&self, path: &str, connection: u64, kind: WatchKind) -> bool {
        let (data, child, modes) = self.meant(kind);
        (data && self.data.contains(path, connection, modes))
            || (child && self.child.contains(path, connection, modes))
    }

    /// Which tables and modes a kind means. 3.8 does not tell modes apart.
    fn meant(&self, kind: WatchKind) -> (bool, bool, Modes) {
        let standard = match self.data.version {
            ServerVersion::V3_8 => ALL,
            ServerVersion::V3_9 => STANDARD,
        };
        match kind {
            WatchKind::Children => (false, true, standard),
            WatchKind::Data => (true, false, standard),
            WatchKind::Any => (true, true, ALL),
            WatchKind::Persistent => (true, true, PERSISTENT),
            WatchKind::Recursive => (true, true, RECURSIVE),
        }
    }

    pub(super) fn remove_connection(&mut self, connection: u64) {
        self.data.remove_connection(connection);
        self.child.remove_connection(connection);
    }

    /// How many watches there are.
    pub fn count(&self) -> usize {
        self.data.count() + self.child.count()
    }
}

/// One table of watches: by path, and by connection.
#[derive(Debug)]
pub struct WatchTable {
    version: ServerVersion,
    by_path: BTreeMap<String, BTreeMap<u64, Modes>>,
    by_connection: BTreeMap<u64, BTreeSet<String>>,
    /// While it is zero, ancestors need not be looked at.
    recursive: usize,
}

impl WatchTable {
    fn new(version: ServerVersion) -> Self {
        WatchTable {
            version,
            by_path: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            recursive: 0,
        }
    }

    fn add(&mut self, path: &str, connection: u64, mode: Modes) {
        let watchers = self.by_path.entry(path.to_owned()).or_default();
        let modes = watchers.entry(connection).or_default();
        let before = *modes;
        *modes = match self.version {
            ServerVersion::V3_8 => mode,
            ServerVersion::V3_9 => before.with(mode),
        };
        let after = *modes;
        self.by_connection.entry(connection).or_default().insert(path.to_owned());
        self.count_recursive(before, after);
    }

    fn count_recursive(&mut self, before: Modes, after: Modes) {
        match (before.has(RECURSIVE), after.has(RECURSIVE)) {
            (false, true) => self.recursive += 1,
            (true, false) => self.recursive = self.recursive.saturating_sub(1),
            _ => {}
        }
    }

    /// 3.8 does not look whose watch it is.
    fn contains(&self, path: &str, connection: u64, modes: Modes) -> bool {
        let Some(watchers) = self.by_path.get(path) else { return false };
        match self.version {
            ServerVersion::V3_8 => true,
            ServerVersion::V3_9 => watchers.get(&connection).is_some_and(|found| found.has(modes)),
        }
    }

    fn remove(&mut self, path: &str, connection: u64, modes: Modes) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let Some(found) = watchers.get_mut(&connection).filter(|found| found.has(modes)) else {
            return false;
        };
        let before = *found;
        *found = before.without(modes);
        let after = *found;
        self.count_recursive(before, after);
        if after == Modes::default() {
            self.forget(path, connection);
        }
        true
    }

    fn forget(&mut self, path: &str, connection: u64) {
        if let Some(watchers) = self.by_path.get_mut(path) {
            watchers.remove(&connection);
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
        }
        if let Some(paths) = self.by_connection.get_mut(&connection) {
            paths.remove(path);
            if paths.is_empty() {
                self.by_connection.remove(&connection);
            }
        }
    }

    fn remove_connection(&mut self, connection: u64) {
        for path in self.by_connection.remove(&connection).unwrap_or_default() {
            self.remove(&path, connection, ALL);
        }
    }

    /// Whom an event concerns. Each is told once, however many of its watches it touches; those
    /// that last for one event are spent.
    pub(super) fn trigger(&mut self, path: &str, event: EventType) -> BTreeSet<u64> {
        let mut told = BTreeSet::new();
        let mut spent = Vec::new();
        if let Some(watchers) = self.by_path.get(path) {
            for (connection, modes) in watchers {
                if modes.has(STANDARD) {
                    spent.push(*connection);
                }
                let is_recursive = modes.has(RECURSIVE) && event != EventType::NodeChildrenChanged;
                if modes.has(STANDARD.with(PERSISTENT)) || is_recursive {
                    told.insert(*connection);
                }
            }
        }
        if self.recursive > 0 && event != EventType::NodeChildrenChanged {
            for watchers in path::ancestry(path).skip(1).filter_map(|p| self.by_path.get(p)) {
                let recursive = watchers.iter().filter(|(_, modes)| modes.has(RECURSIVE));
                told.extend(recursive.map(|(connection, _)| *connection));
            }
        }
        for connection in spent {
            self.remove(path, connection, STANDARD);
        }
        told
    }

    /// The watched paths of each connection.
    pub fn by_connection(&self) -> impl ExactSizeIterator<Item = (u64, &BTreeSet<String>)> {
        self.by_connection.iter().map(|(connection, paths)| (*connection, paths))
    }

    /// The connections that watch each path.
    pub fn by_path(&self) -> impl ExactSizeIterator<Item = (&str, impl Iterator<Item = u64>)> {
        self.by_path.iter().map(|(path, watchers)| (path.as_str(), watchers.keys().copied()))
    }

    /// How many watches there are.
    pub fn count(&self) -> usize {
        self.by_path.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(table: &mut WatchTable, path: &str, event: EventType) -> Vec<u64> {
        table.trigger(path, event).into_iter().collect()
    }

    #[test]
    fn a_recursive_watch_sees_everything_below_but_no_lists_of_children() {
        let mut watches = Watches::new(ServerVersion::V3_9);
        watches.add("/a", 1, AddWatchMode::Recursive);
        assert_eq!(told(&mut watches.data, "/a/b/c", EventType::NodeCreated), [1]);
        assert_eq!(told(&mut watches.data, "/a", EventType::NodeDataChanged), [1]);
        assert_eq!(told(&mut watches.child, "/a", EventType::NodeChildrenChanged), []);
        assert_eq!(told(&mut watches.data, "/ab", EventType::NodeCreated), []);
    }

    #[test]
    fn a_standard_watch_replaces_a_persistent_one_in_3_8_only() {
        for (version, second) in [(ServerVersion::V3_8, vec![]), (ServerVersion::V3_9, vec![1])] {
            let mut watches = Watches::new(version);
            watches.add("/a", 1, AddWatchMode::Persistent);
            watches.watch_data("/a", 1);
            assert_eq!(told(&mut watches.data, "/a", EventType::NodeDataChanged), [1]);
            assert_eq!(told(&mut watches.data, "/a", EventType::NodeDataChanged), second);
        }
    }

    #[test]
    fn a_watch_is_taken_for_anyones_in_3_8_only() {
        for (version, is_found) in [(ServerVersion::V3_8, true), (ServerVersion::V3_9, false)] {
            let mut watches = Watches::new(version);
            watches.watch_data("/a", 1);
            assert_eq!(watches.contains("/a", 2, WatchKind::Data), is_found);
            assert!(!watches.remove("/a", 2, WatchKind::Data));
        }
    }

    #[test]
    fn a_connections_watches_go_with_it() {
        let mut watches = Watches::new(ServerVersion::V3_9);
        watches.add("/a", 1, AddWatchMode::Recursive);
        watches.add("/a", 1, AddWatchMode::Persistent);
        watches.watch_children("/b", 1);
        watches.watch_children("/b", 2);
        watches.remove_connection(1);
        assert_eq!((watches.count(), watches.data.recursive), (1, 0));
    }
}
