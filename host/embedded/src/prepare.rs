//! The leader's part: every request for a change becomes a txn, or an error that takes its place.

mod create;
mod outstanding;
mod quota;
mod sweep;
mod write;

use std::sync::Arc;

use outstanding::Outstanding;

use crate::access;
use crate::protocol::{ErrorCode, Id, OpCode, Write};
use crate::replica::Replica;
use crate::session::SessionTracker;
use crate::time::Now;
use crate::txn::{SubTxn, Txn, TxnHeader};

/// Where a request came in: which server, which of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The server.
    pub server: u64,
    /// Its connection.
    pub connection: u64,
}

/// A request for a change, on its way to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `None` for the leader's own.
    pub origin: Option<Origin>,
    /// The session that asks, or that is to be created.
    pub session_id: i64,
    /// The session's number of the request.
    pub xid: i32,
    /// Who asks.
    pub ids: Arc<[Id]>,
    /// What is asked.
    pub write: Write,
}

/// A txn on its way from the leader to every replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Who is to be answered once it is applied.
    pub origin: Option<Origin>,
    /// Goes to the log with the txn.
    pub header: TxnHeader,
    /// What every replica applies.
    pub txn: Txn,
}

/// What a leader is told when it takes over.
#[derive(Debug, Clone)]
pub struct LeaderOptions {
    /// The length of a tick: see [`SessionTracker`].
    pub tick_ms: u64,
    /// Whether nodes may have a time to live.
    pub extended_types: bool,
    /// How long an empty container that never had children is kept. Apache ZooKeeper's default:
    /// for ever.
    pub never_used_container_ms: Option<u64>,
    /// Whether what exceeds a hard quota is refused.
    pub enforce_quota: bool,
}

/// Decides, in order, what happens.
///
/// Several requests may be prepared before the first of them is applied: what those will change
/// is kept until [`Leader::committed`] says that the replica shows it.
#[derive(Debug)]
pub struct Leader {
    options: LeaderOptions,
    last_zxid: i64,
    sessions: SessionTracker,
    outstanding: Outstanding,
    /// When an exceeded quota was told of.
    quota_told_ms: Option<u64>,
}

impl Leader {
    /// A leader that takes over from a replica, at the zxid from which it counts: the replica's
    /// own, or the start of a new epoch. Every session gets a whole timeout, and belongs to
    /// `owner` until its client is heard from.
    pub fn new(options: LeaderOptions, replica: &Replica, zxid: i64, owner: u64, now: Now) -> Self {
        let mut sessions = SessionTracker::new(options.tick_ms);
        for (session_id, timeout_ms) in replica.sessions() {
            sessions.track(*session_id, *timeout_ms, owner, now);
        }
        let last_zxid = zxid.max(replica.last_zxid());
        let outstanding = Outstanding::default();
        Leader { options, last_zxid, sessions, outstanding, quota_told_ms: None }
    }

    /// The sessions and when they expire.
    pub fn sessions(&self) -> &SessionTracker {
        &self.sessions
    }

    /// The newest txn prepared.
    pub fn last_zxid(&self) -> i64 {
        self.last_zxid
    }

    /// Notes a session's sign of life. False if what it asks is to be dropped.
    pub fn touch(&mut self, session_id: i64, now: Now) -> bool {
        self.sessions.touch(session_id, now)
    }

    /// Gives a session to the server its client has come to. False if the session is gone.
    pub fn attach(&mut self, session_id: i64, timeout_ms: i32, server: u64, now: Now) -> bool {
        self.sessions.attach(session_id, timeout_ms, server, now)
    }

    /// Turns a request into a txn. A request that fails becomes an error txn, at a zxid like any.
    pub fn prepare(&mut self, replica: &Replica, request: Request, now: Now) -> Proposal {
        self.last_zxid += 1;
        let zxid = self.last_zxid;
        let Request { origin, session_id, xid, ids, write } = request;
        let op = write.op();
        let asked =
            Asked { zxid, session_id, server: origin.map(|origin| origin.server), ids, now };
        let result = match write {
            write if access::auth_bytes(&write, &asked.ids) > access::AUTH_LIMIT => {
                Err(ErrorCode::InvalidAcl)
            }
            Write::Multi(writes) => Ok(self.prepare_multi(replica, &asked, writes)),
            Write::CreateSession { timeout_ms } => {
                let owner = asked.server.unwrap_or_default();
                self.sessions.track(session_id, timeout_ms, owner, now);
                Ok(Txn::CreateSession { timeout_ms })
            }
            Write::CloseSession => Ok(self.prepare_close(replica, &asked)),
            write => self.prepare_single(replica, &asked, write),
        };
        let (op, txn) = match result {
            Ok(txn) => (op, txn),
            Err(error) => (OpCode::Error, Txn::Error(error)),
        };
        let header = TxnHeader { session_id, xid, zxid, time_ms: now.wall_ms, op };
        Proposal { origin, header, txn }
    }

    /// Forgets what the replica now shows.
    pub fn committed(&mut self, header: &TxnHeader) {
        self.outstanding.committed(header.zxid);
        if header.op == OpCode::CloseSession {
            self.sessions.remove(header.session_id);
        }
    }

    /// Takes out the sessions whose time is over, for the caller to close them. Until
    /// [`Leader::refuse`], what comes of such a session is heard as before.
    pub fn pick_expired(&mut self, now: Now) -> Vec<i64> {
        self.sessions.expired(now)
    }

    /// Refuses everything further of a session that is to be closed.
    pub fn refuse(&mut self, session_id: i64) {
        self.sessions.set_closing(session_id);
    }

    /// Closes the sessions whose time is over.
    pub fn expire(&mut self, replica: &Replica, now: Now) -> Vec<Proposal> {
        let expired = self.pick_expired(now);
        let close =
            |session_id| self.prepare(replica, Request::own(session_id, Write::CloseSession), now);
        expired.into_iter().map(close).collect()
    }

    fn prepare_multi(&mut self, replica: &Replica, asked: &Asked, writes: Vec<Write>) -> Txn {
        self.outstanding.begin_multi();
        let mut error = None;
        let mut txns = Vec::with_capacity(writes.len());
        for write in writes {
            let op = write.op();
            let result = match error {
                Some(_) => Err(ErrorCode::RuntimeInconsistency),
                None => self.prepare_single(replica, asked, write),
            };
            txns.push(match result {
                Ok(txn) => SubTxn { op, txn },
                Err(code) => {
                    error.get_or_insert(code);
                    SubTxn { op: OpCode::Error, txn: Txn::Error(code) }
                }
            });
        }
        self.outstanding.end_multi(error.is_some());
        Txn::Multi(txns)
    }
}

impl Request {
    /// A request of the leader itself.
    pub fn own(session_id: i64, write: Write) -> Self {
        Request { origin: None, session_id, xid: 0, ids: Arc::from([]), write }
    }
}

/// The circumstances of a request.
struct Asked {
    zxid: i64,
    session_id: i64,
    server: Option<u64>,
    ids: Arc<[Id]>,
    now: Now,
}

#[cfg(test)]
mod tests;
