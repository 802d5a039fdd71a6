//! What a server knows of one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::Statistics;
use crate::protocol::{ConnectRequest, Id, OpCode, Read};
use crate::time::Now;

/// How many names a client may have, and how long they may be together, in bytes. Every request that
/// waits may have a list of its own.
const MAX_IDS: usize = 128;
const MAX_IDS_BYTES: usize = 16 << 10;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) phase: Phase,
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) session_id: Option<i64>,
    pub(super) timeout_ms: i32,
    pub(super) established: Now,
    /// Who the client is known to be. Requests carry the list as it was when they came in.
    pub(super) ids: Arc<[Id]>,
    /// Requests in order, the oldest first. Those behind a write wait for it.
    pub(super) pending: VecDeque<Pending>,
    pending_bytes: usize,
    pending_reads: usize,
    pub(super) statistics: Statistics,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing has come in.
    New,
    /// The leader is being asked for the session. What the client sends meanwhile waits.
    Opening { client: ConnectRequest, stash: Vec<(Bytes, Now)> },
    /// It serves.
    Open,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) xid: i32,
    pub(super) op: OpCode,
    /// When it came in.
    pub(super) received: Now,
    /// See [`Connection::outstanding_bytes`].
    pub(super) bytes: usize,
    pub(super) wait: Wait,
}

impl Pending {
    fn is_read(&self) -> bool {
        matches!(self.wait, Wait::Read { .. })
    }
}

#[derive(Debug)]
pub(super) enum Wait {
    /// For its own txn.
    Commit,
    /// For the leader's word.
    Sync { path: String, is_synced: bool },
    /// For its turn only.
    Read { read: Read, ids: Arc<[Id]> },
    /// For its turn only.
    Ping,
    /// For its turn to be answered by the end of the connection.
    End,
}

impl Connection {
    pub(super) fn new(address: SocketAddr, now: Now) -> Self {
        let host = address.ip().to_string();
        Connection {
            phase: Phase::New,
            address,
            session_id: None,
            timeout_ms: 0,
            established: now,
            ids: Arc::from([Id::new("ip", &host)]),
            host,
            pending: VecDeque::new(),
            pending_bytes: 0,
            pending_reads: 0,
            statistics: Statistics::default(),
        }
    }

    /// The client's end.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The session, once the handshake has named it.
    pub fn session_id(&self) -> Option<i64> {
        self.session_id
    }

    /// The session's timeout.
    pub fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// When it connected.
    pub fn established(&self) -> Now {
        self.established
    }

    /// What it has done.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// How many requests wait for their answer.
    pub fn outstanding(&self) -> usize {
        self.pending.len() + self.stash().len()
    }

    /// How many bytes came in with them, and what their `auth` stand for.
    pub fn outstanding_bytes(&self) -> usize {
        self.pending_bytes + self.stash().iter().map(|(frame, _)| frame.len()).sum::<usize>()
    }

    /// How many of them may be reads. Their answers are made one right after the other, as soon as
    /// the write that they wait for is committed.
    pub fn outstanding_reads(&self) -> usize {
        self.pending_reads + self.stash().len()
    }

    fn stash(&self) -> &[(Bytes, Now)] {
        match &self.phase {
            Phase::Opening { stash, .. } => stash,
            Phase::New | Phase::Open => &[],
        }
    }

    pub(super) fn push(&mut self, pending: Pending) {
        self.pending_bytes += pending.bytes;
        self.pending_reads += usize::from(pending.is_read());
        self.pending.push_back(pending);
    }

    /// The oldest, if it is like that.
    pub(super) fn pop_if(&mut self, is_it: impl FnOnce(&mut Pending) -> bool) -> Option<Pending> {
        let pending = self.pending.pop_front_if(is_it)?;
        self.pending_bytes -= pending.bytes;
        self.pending_reads -= usize::from(pending.is_read());
        Some(pending)
    }

    /// False if there are too many.
    #[must_use]
    pub(super) fn add_ids(&mut self, new: Vec<Id>) -> bool {
        let mut ids = self.ids.to_vec();
        for id in new {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let bytes: usize = ids.iter().map(|id| id.id.len()).sum();
        let is_little = ids.len() <= MAX_IDS && bytes <= MAX_IDS_BYTES;
        if is_little {
            self.ids = ids.into();
        }
        is_little
    }
}
