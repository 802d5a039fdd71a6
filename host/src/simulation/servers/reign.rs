//! A leader's time in office, and what passes between it and those that follow it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wok_embedded::prepare::{Leader, Proposal};
use wok_embedded::serve::Upcall;

/// A leader's time in office. A leader that is cut off does not know that another one has begun.
#[derive(Debug)]
pub(super) struct Reign {
    pub(super) epoch: i64,
    pub(super) leader: Leader,
    /// What it has to do, in the order in which it decided it.
    pub(super) prepared: VecDeque<Step>,
    /// Those that follow it, as far as it knows, and when it heard them last, in milliseconds.
    pub(super) learners: BTreeMap<usize, u64>,
    /// How often it has pinged them: twice a tick.
    pub(super) beats: u64,
}

/// Something that a leader has to do.
#[derive(Debug)]
pub(super) enum Step {
    /// To commit a txn, once it is on a majority of disks.
    Commit(Arc<Proposal>),
    /// To answer a `sync`, once what was proposed before is committed. If that is nothing, no majority
    /// takes part; and a client of the leader's own waits only for what its session has written.
    Synced { server: usize, connection: u64 },
}

/// What a leader tells one that follows it.
#[derive(Debug)]
pub(super) enum Word {
    /// A ping. While the way is cut it waits there as all else does, and is answered afterwards.
    Ping,
    /// The next txn of the log is committed.
    Commit,
    /// The answer to a `sync`.
    Synced { connection: u64 },
    /// Whether a session lives.
    Attached { session: i64, is_alive: bool },
    /// The leader has closed the connection between them.
    End,
}

/// What one that follows tells its leader.
#[derive(Debug)]
pub(super) enum Call {
    /// What its clients want of the leader.
    Upcall(Upcall),
    /// The answer to a ping: the sessions whose clients it has heard since the ping before.
    Touches(BTreeSet<i64>),
}
