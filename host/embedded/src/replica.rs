//! What every server of an ensemble has a copy of, and how txns change it.

mod apply;
mod change;

use std::collections::BTreeMap;

pub use change::{Applied, Change, ChangeKind, Outcome};

use crate::tree::Tree;

/// A copy of the state. The same txns make the same copy, on every server and on replay.
#[derive(Debug, Default)]
pub struct Replica {
    tree: Tree,
    /// The timeouts of all sessions, in milliseconds, by session.
    sessions: BTreeMap<i64, i32>,
    last_zxid: i64,
}

impl Replica {
    /// An empty copy.
    pub fn new() -> Self {
        Replica::default()
    }

    /// A copy from a snapshot that was taken, or begun, at a zxid. The log's txns from there on
    /// are then applied, also those that the snapshot already shows.
    pub fn restored(mut tree: Tree, sessions: BTreeMap<i64, i32>, last_zxid: i64) -> Self {
        // A snapshot has the counts of when their nodes were written, and other nodes of other times.
        tree.load_quotas();
        Replica { tree, sessions, last_zxid }
    }

    /// The nodes.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The timeouts of all sessions, in milliseconds, by session.
    pub fn sessions(&self) -> &BTreeMap<i64, i32> {
        &self.sessions
    }

    /// Counts on from a zxid, the start of a leader's epoch, that no txn has.
    pub fn begin(&mut self, zxid: i64) {
        self.last_zxid = self.last_zxid.max(zxid);
    }

    /// The newest txn applied, or where the copy began.
    pub fn last_zxid(&self) -> i64 {
        self.last_zxid
    }
}
