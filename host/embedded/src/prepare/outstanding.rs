//! What txns will change that are prepared but not yet applied.

use std::collections::{BTreeMap, VecDeque};

use crate::path;
use crate::protocol::{Acls, ErrorCode};
use crate::replica::Replica;
use crate::tree::{Node, NodeStat};

/// A node as it will be.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) stat: NodeStat,
    pub(super) child_count: usize,
    pub(super) data_length: usize,
    pub(super) acl: Acls,
}

impl Record {
    fn of(node: &Node) -> Record {
        Record {
            stat: *node.stored(),
            child_count: node.children().len(),
            data_length: node.data_length(),
            acl: node.acl().clone(),
        }
    }
}

/// `None`: it will be gone.
#[derive(Debug, Clone)]
struct Entry {
    zxid: i64,
    record: Option<Record>,
}

/// The newest state to come of every node that has one.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    entries: BTreeMap<String, Entry>,
    /// By which txn an entry was last changed, oldest first.
    order: VecDeque<(i64, String)>,
    undo: Option<Undo>,
}

#[derive(Debug, Default)]
struct Undo {
    order_length: usize,
    entries: Vec<(String, Option<Entry>)>,
}

fn key(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

impl Outstanding {
    /// A node as it will be once everything prepared so far is applied.
    pub(super) fn get(&self, replica: &Replica, path: &str) -> Result<Record, ErrorCode> {
        let record = match self.entries.get(key(path)) {
            Some(entry) => entry.record.clone(),
            None => replica.tree().get(path).map(Record::of),
        };
        record.ok_or(ErrorCode::NoNode)
    }

    pub(super) fn set(&mut self, zxid: i64, path: &str, record: Option<Record>) {
        let path = key(path).to_owned();
        let before = self.entries.insert(path.clone(), Entry { zxid, record });
        if let Some(undo) = &mut self.undo {
            undo.entries.push((path.clone(), before));
        }
        self.order.push_back((zxid, path));
    }

    /// A child less, at this txn.
    pub(super) fn child_deleted(&mut self, replica: &Replica, zxid: i64, path: &str) {
        let parent_path = path::split(path).map_or("/", |(parent, _)| parent);
        if let Ok(mut parent) = self.get(replica, parent_path) {
            parent.child_count = parent.child_count.saturating_sub(1);
            parent.stat.pzxid = zxid;
            self.set(zxid, parent_path, Some(parent));
        }
        self.set(zxid, path, None);
    }

    /// The nodes that are about to be created or deleted, with their `ephemeralOwner`.
    pub(super) fn owners(&self) -> impl Iterator<Item = (&str, Option<i64>)> {
        self.entries.iter().map(|(path, entry)| {
            (path.as_str(), entry.record.as_ref().map(|record| record.stat.ephemeral_owner))
        })
    }

    pub(super) fn begin_multi(&mut self) {
        self.undo = Some(Undo { order_length: self.order.len(), entries: Vec::new() });
    }

    pub(super) fn end_multi(&mut self, is_undone: bool) {
        let Some(undo) = self.undo.take().filter(|_| is_undone) else { return };
        self.order.truncate(undo.order_length);
        for (path, before) in undo.entries.into_iter().rev() {
            match before {
                Some(entry) => self.entries.insert(path, entry),
                None => self.entries.remove(&path),
            };
        }
    }

    /// Forgets what the replica shows once it has applied this txn.
    pub(super) fn committed(&mut self, zxid: i64) {
        while let Some((_, path)) = self.order.pop_front_if(|(changed, _)| *changed <= zxid) {
            if self.entries.get(&path).is_some_and(|entry| entry.zxid <= zxid) {
                self.entries.remove(&path);
            }
        }
    }
}
