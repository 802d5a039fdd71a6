//! What a server knows of one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::Statistics;
use crate::protocol::{ConnectRequest, Id, OpCode, Read};
use crate::time::Now;

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
    pub(super) statistics: Statistics,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing has come in.
    New,
    /// The leader is being asked for the session. What the client sends meanwhile waits.
    Opening { client: ConnectRequest, stash: Vec<Bytes> },
    /// It serves.
    Open,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) xid: i32,
    pub(super) op: OpCode,
    pub(super) received: Now,
    pub(super) wait: Wait,
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
        self.pending.len()
    }

    pub(super) fn add_ids(&mut self, new: Vec<Id>) {
        let mut ids = self.ids.to_vec();
        for id in new {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        self.ids = ids.into();
    }
}
