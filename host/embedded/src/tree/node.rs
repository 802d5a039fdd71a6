//! One znode.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;

use super::Owner;
use crate::jute::{Malformed, Reader, Writer};
use crate::protocol::{Acls, Stat};

/// A node's facts as they are stored: what a [`Stat`] shows is computed from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub struct NodeStat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    /// How many children have ever been created; the next sequence number.
    pub cversion: i32,
    pub aversion: i32,
    /// An [`Owner`], as stored.
    pub ephemeral_owner: i64,
    pub pzxid: i64,
}

impl NodeStat {
    /// Appends the record as snapshots have it.
    pub fn encode(&self, writer: &mut Writer) {
        writer.long(self.czxid);
        writer.long(self.mzxid);
        writer.long(self.ctime_ms);
        writer.long(self.mtime_ms);
        writer.int(self.version);
        writer.int(self.cversion);
        writer.int(self.aversion);
        writer.long(self.ephemeral_owner);
        writer.long(self.pzxid);
    }

    /// Reads the record.
    ///
    /// # Errors
    /// If the input ends.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(NodeStat {
            czxid: reader.long()?,
            mzxid: reader.long()?,
            ctime_ms: reader.long()?,
            mtime_ms: reader.long()?,
            version: reader.int()?,
            cversion: reader.int()?,
            aversion: reader.int()?,
            ephemeral_owner: reader.long()?,
            pzxid: reader.long()?,
        })
    }
}

/// A node. Its path is the key under which the tree has it.
#[derive(Debug, Clone)]
pub struct Node {
    data: Option<Bytes>,
    acl: Acls,
    stat: NodeStat,
    /// Names in order, so that every replica lists them alike.
    children: BTreeSet<Box<str>>,
}

impl Node {
    pub(super) fn new(data: Option<Bytes>, acl: Acls, stat: NodeStat) -> Self {
        Node { data, acl, stat, children: BTreeSet::new() }
    }

    /// Its data; null is kept apart from empty.
    pub fn data(&self) -> Option<&Bytes> {
        self.data.as_ref()
    }

    /// Its access list.
    pub fn acl(&self) -> &Acls {
        &self.acl
    }

    /// Its facts as stored.
    pub fn stored(&self) -> &NodeStat {
        &self.stat
    }

    /// How it may end.
    pub fn owner(&self) -> Owner {
        Owner::from_raw(self.stat.ephemeral_owner)
    }

    /// The names of its children, in order.
    pub fn children(&self) -> impl ExactSizeIterator<Item = &str> {
        self.children.iter().map(AsRef::as_ref)
    }

    /// Its facts as clients see them.
    pub fn stat(&self) -> Stat {
        let stat = &self.stat;
        let num_children = count(self.children.len());
        Stat {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            ctime_ms: stat.ctime_ms,
            mtime_ms: stat.mtime_ms,
            version: stat.version,
            // Every child was created once, and those that are gone were also deleted once.
            cversion: stat.cversion.wrapping_mul(2).wrapping_sub(num_children),
            aversion: stat.aversion,
            ephemeral_owner: self.owner().shown(),
            data_length: count(self.data_length()),
            num_children,
            pzxid: stat.pzxid,
        }
    }

    /// How many bytes of data it has.
    pub fn data_length(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len)
    }

    /// Takes the children of the node that was in its place.
    pub(super) fn with_children_of(mut self, old: Option<Node>) -> Node {
        self.children = old.map(|old| old.children).unwrap_or_default();
        self
    }

    /// The name after another in the order of its children.
    pub(super) fn child_after(&self, name: &str) -> Option<&str> {
        let after = (Bound::Excluded(name), Bound::Unbounded);
        self.children.range::<str, _>(after).next().map(AsRef::as_ref)
    }

    /// The txn that created it is applied again over a newer tree. A snapshot taken meanwhile may
    /// have the node without its access list: lists are written before nodes by Apache ZooKeeper.
    pub(super) fn created_again(&mut self, acl: Acls, zxid: i64) {
        if self.stat.czxid == zxid && self.stat.aversion == 0 {
            self.acl = acl;
        }
    }

    pub(super) fn add_child(&mut self, name: &str) -> bool {
        self.children.insert(Box::from(name))
    }

    /// A txn applied again over a newer tree must not turn the count back. As with Apache ZooKeeper
    /// nothing but the greater number counts, so that the count stays at 2147483647 once it is there,
    /// and `pzxid` with it.
    pub(super) fn child_created(&mut self, cversion: i32, zxid: i64) {
        if cversion > self.stat.cversion {
            self.stat.cversion = cversion;
            self.stat.pzxid = zxid;
        }
    }

    pub(super) fn child_deleted(&mut self, name: &str, zxid: i64) {
        self.children.remove(name);
        self.stat.pzxid = self.stat.pzxid.max(zxid);
    }

    pub(super) fn set_data(&mut self, data: Option<Bytes>, version: i32, zxid: i64, time_ms: i64) {
        self.data = data;
        self.stat.version = version;
        self.stat.mzxid = zxid;
        self.stat.mtime_ms = time_ms;
    }

    /// Sets data that is counted, and not anybody's change.
    pub(super) fn replace_data(&mut self, data: Bytes) {
        self.data = Some(data);
    }

    pub(super) fn set_acl(&mut self, acl: Acls, version: i32) {
        self.acl = acl;
        self.stat.aversion = version;
    }
}

/// Neither data nor the number of children reaches 2^31: see the limit of a frame.
fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
