//! What applying a txn led to.

use crate::protocol::{ErrorCode, OpCode, Stat};
use crate::tree::Audience;

/// What a txn did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The txn.
    pub zxid: i64,
    /// For the client that asked for the txn.
    pub outcome: Outcome,
    /// For the clients that watch, in order.
    pub changes: Vec<Change>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A node is there.
    Created {
        /// Which kind of create.
        op: OpCode,
        /// With its sequence number.
        path: String,
        /// Its facts.
        stat: Stat,
    },
    /// Data or an access list is set.
    Set(OpCode, Stat),
    /// It is done, and there is nothing to tell.
    Done(OpCode),
    /// It was refused.
    Failed(ErrorCode),
    /// Of a multi, one for each operation.
    Multi(Vec<Outcome>),
}

/// A change to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which node.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// The lists that say who may learn of it.
    pub audience: Audience,
}

/// What happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was set.
    DataChanged,
}
