//! Txns: what the leader decided, as every replica applies it and the log keeps it. Their
//! encoding is Apache ZooKeeper's own, so that either server can read the other's log.

mod codec;
mod header;

use bytes::Bytes;

pub use header::TxnHeader;

use crate::protocol::{Acl, ErrorCode, OpCode};

/// A decided change. Parents' versions are in it, so that applying it twice is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Txn {
    /// By create and create2.
    Create(CreateTxn),
    /// A container.
    CreateContainer(CreateContainerTxn),
    /// A node with a time to live.
    CreateTtl(CreateTtlTxn),
    /// By delete and by the sweep of containers.
    Delete(DeleteTxn),
    /// Data.
    SetData(SetDataTxn),
    /// An access list.
    SetAcl(SetAclTxn),
    /// A check that held.
    CheckVersion(CheckVersionTxn),
    /// A session.
    CreateSession {
        /// Its timeout.
        timeout_ms: i32,
    },
    /// A session's end.
    CloseSession(CloseSessionTxn),
    /// A request that failed; it takes a zxid all the same.
    Error(ErrorCode),
    /// Several at one zxid.
    Multi(Vec<SubTxn>),
}

/// A txn within a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubTxn {
    /// Its kind.
    pub op: OpCode,
    /// What it does.
    pub txn: Txn,
}

/// See [`Txn::Create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTxn {
    /// With its sequence number, if it has one.
    pub path: String,
    /// Null is kept apart from empty.
    pub data: Option<Bytes>,
    /// Resolved.
    pub acl: Vec<Acl>,
    /// Whether it ends with the header's session.
    pub is_ephemeral: bool,
    /// The count of children created below the parent, after this one.
    pub parent_cversion: i32,
}

/// See [`Txn::CreateContainer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateContainerTxn {
    /// The path.
    pub path: String,
    /// Null is kept apart from empty.
    pub data: Option<Bytes>,
    /// Resolved.
    pub acl: Vec<Acl>,
    /// As in [`CreateTxn`].
    pub parent_cversion: i32,
}

/// See [`Txn::CreateTtl`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTtlTxn {
    /// With its sequence number, if it has one.
    pub path: String,
    /// Null is kept apart from empty.
    pub data: Option<Bytes>,
    /// Resolved.
    pub acl: Vec<Acl>,
    /// As in [`CreateTxn`].
    pub parent_cversion: i32,
    /// Its time to live.
    pub ttl_ms: i64,
}

/// See [`Txn::Delete`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteTxn {
    /// Which.
    pub path: String,
}

/// See [`Txn::SetData`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetDataTxn {
    /// Which.
    pub path: String,
    /// Null is kept apart from empty.
    pub data: Option<Bytes>,
    /// The version it then has.
    pub version: i32,
}

/// See [`Txn::SetAcl`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAclTxn {
    /// Which.
    pub path: String,
    /// Resolved.
    pub acl: Vec<Acl>,
    /// The access list's version it then has.
    pub version: i32,
}

/// See [`Txn::CheckVersion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckVersionTxn {
    /// Which.
    pub path: String,
    /// One more than the version that was checked.
    pub version: i32,
}

/// See [`Txn::CloseSession`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloseSessionTxn {
    /// The ephemerals that go with it. `None` in logs from before 3.6: then all it owns go.
    pub paths: Option<Vec<String>>,
}
