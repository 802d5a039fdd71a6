//! ZooKeeper's operations as values, so that a client, a simulated ensemble and a pipeline of
//! several requests are all spoken to in the same way.

use super::failure::{Failure, Refusal};
use super::watch::Watch;

/// A znode's metadata, as the server tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Transaction that created the znode.
    pub czxid: i64,
    /// Transaction that last changed its data.
    pub mzxid: i64,
    /// Transaction that last added or removed a child.
    pub pzxid: i64,
    /// Creation time, in milliseconds since 1970, by the server's clock.
    pub ctime_ms: i64,
    /// Time of the last data change, likewise.
    pub mtime_ms: i64,
    /// Number of data changes.
    pub version: i32,
    /// Number of changes to the children.
    pub cversion: i32,
    /// Number of ACL changes.
    pub aversion: i32,
    /// Session of an ephemeral znode, 0 for others.
    pub ephemeral_owner: i64,
    /// Bytes of data.
    pub data_length: i32,
    /// Number of children.
    pub num_children: i32,
}

/// How a znode is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// It stays until it is deleted.
    Persistent,
    /// As persistent, with the parent's counter appended.
    PersistentSequential,
    /// It goes with its session.
    Ephemeral,
    /// As ephemeral, with the parent's counter appended.
    EphemeralSequential,
    /// The server deletes it some time after its last child is gone.
    Container,
}

impl CreateMode {
    /// Whether the znode goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }
}

/// Who may do what with a znode that this host creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acl {
    /// Anyone may do anything.
    #[default]
    Open,
    /// Only the identities of the creating session may do anything.
    Creator,
}

/// A change to the tree, alone or as a part of a `multi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Create a znode.
    Create {
        /// Where; for a sequential mode the counter is appended.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// How.
        mode: CreateMode,
    },
    /// Delete a znode without children.
    Delete {
        /// Which.
        path: String,
        /// The version it must have.
        version: Option<i32>,
    },
    /// Replace a znode's data.
    SetData {
        /// Which.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// The version it must have.
        version: Option<i32>,
    },
    /// Change nothing; fail the whole `multi` unless the znode exists, at that version.
    Check {
        /// Which.
        path: String,
        /// The version it must have.
        version: Option<i32>,
    },
}

impl Write {
    /// Whether it creates that very znode.
    pub(super) fn creates(&self, path: &str) -> bool {
        matches!(self, Write::Create { path: it, mode: CreateMode::Ephemeral, .. } if it == path)
    }

    /// Whether it deletes that znode.
    pub(super) fn deletes(&self, path: &str) -> bool {
        matches!(self, Write::Delete { path: it, .. } if it == path)
    }
}

/// Whether a read leaves a one-shot watch behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// It does not.
    No,
    /// It does; where the read fails it does not.
    Yes,
}

/// What a watch is for: a client re-arms a path once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WatchKind {
    /// That a znode comes, goes or changes.
    Existence,
    /// That its data changes, or it goes.
    Data,
    /// That its children come and go, or it does.
    Children,
}

/// One request to the ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A single write. `Write::Check` stands in a `multi` only.
    Write(Write),
    /// All of the writes or none.
    Multi(Vec<Write>),
    /// A znode's metadata, if it exists.
    Exists(String, Watching),
    /// A znode's data and metadata.
    GetData(String, Watching),
    /// The names of a znode's children, and its metadata.
    GetChildren(String, Watching),
    /// Wait until the server has caught up with the leader.
    Sync(String),
}

impl Request {
    /// A transaction that changes nothing: that the root is there. A request that is refused would
    /// have some servers write a line into their logs each time.
    pub(super) fn no_change() -> Self {
        Request::Multi(vec![Write::Check { path: "/".to_owned(), version: None }])
    }
}

/// What one write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The path, with the counter if sequential, and the metadata of the znode created.
    Created(String, Stat),
    /// The znode was deleted.
    Deleted,
    /// The new metadata.
    DataSet(Stat),
    /// The check passed.
    Checked,
}

/// What the ensemble answered.
#[derive(Debug)]
pub enum Reply {
    /// To a single write.
    Written(Written),
    /// To a multi, a result for each part.
    Multi(Vec<Written>),
    /// To exists.
    Exists(Option<Stat>, Option<Watch>),
    /// To get-data.
    Data(Vec<u8>, Stat, Option<Watch>),
    /// To get-children.
    Children(Vec<String>, Stat, Option<Watch>),
    /// To sync.
    Synced,
}

/// Each answers what the request asked for that it is named after. Another reply is the fault of an
/// [`Ensemble`](super::ensemble::Ensemble), and refused.
impl Reply {
    /// To a single write.
    pub fn written(self) -> Result<Written, Failure> {
        match self {
            Reply::Written(written) => Ok(written),
            other => Err(other.unexpected()),
        }
    }

    /// To a single create: the path, and the metadata of the znode.
    pub fn created(self) -> Result<(String, Stat), Failure> {
        match self {
            Reply::Written(Written::Created(path, stat)) => Ok((path, stat)),
            other => Err(other.unexpected()),
        }
    }

    /// To a single set-data: the new metadata.
    pub fn data_set(self) -> Result<Stat, Failure> {
        match self {
            Reply::Written(Written::DataSet(stat)) => Ok(stat),
            other => Err(other.unexpected()),
        }
    }

    /// To a multi.
    pub fn multi(self) -> Result<Vec<Written>, Failure> {
        match self {
            Reply::Multi(written) => Ok(written),
            other => Err(other.unexpected()),
        }
    }

    /// To exists.
    pub fn exists(self) -> Result<(Option<Stat>, Option<Watch>), Failure> {
        match self {
            Reply::Exists(stat, watch) => Ok((stat, watch)),
            other => Err(other.unexpected()),
        }
    }

    /// To get-data.
    pub fn data(self) -> Result<(Vec<u8>, Stat, Option<Watch>), Failure> {
        match self {
            Reply::Data(data, stat, watch) => Ok((data, stat, watch)),
            other => Err(other.unexpected()),
        }
    }

    /// To get-children.
    pub fn children(self) -> Result<(Vec<String>, Stat, Option<Watch>), Failure> {
        match self {
            Reply::Children(names, stat, watch) => Ok((names, stat, watch)),
            other => Err(other.unexpected()),
        }
    }

    fn unexpected(&self) -> Failure {
        Refusal::Other(format!("the ensemble answered another request: {self:?}")).into()
    }
}
