//! A node's facts as replies tell them.

use crate::jute::Writer;

/// A node's facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: i64,
}

impl Stat {
    /// Appends the record.
    pub fn encode(&self, writer: &mut Writer) {
        writer.long(self.czxid);
        writer.long(self.mzxid);
        writer.long(self.ctime_ms);
        writer.long(self.mtime_ms);
        writer.int(self.version);
        writer.int(self.cversion);
        writer.int(self.aversion);
        writer.long(self.ephemeral_owner);
        writer.int(self.data_length);
        writer.int(self.num_children);
        writer.long(self.pzxid);
    }
}
