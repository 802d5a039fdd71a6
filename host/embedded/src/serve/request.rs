//! Requests as they come in, and whose turn it is.

use std::sync::Arc;

use super::connection::{Pending, Wait};
use super::statistics::LastAnswer;
use super::{Delivery, Member, Upcall};
use crate::access;
use crate::prepare::{Origin, Request};
use crate::protocol::{Command, ErrorCode, Frame, OpCode, Read, Reply, Write};
use crate::time::Now;

impl Member {
    pub(super) fn request(&mut self, connection: u64, frame: &[u8], received: Now, now: Now) {
        let Ok(Frame { xid, op, command }) = Frame::decode(frame) else {
            return self.close(connection);
        };
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        peer.statistics.received += 1;
        self.statistics.received += 1;
        let op = OpCode::from_code(op).unwrap_or(OpCode::Error);
        let mut bytes = frame.len();
        let wait = match command {
            Command::Auth { scheme, credential } => {
                return self.authenticate(connection, xid, &scheme, &credential);
            }
            Command::Sasl => {
                let mut reply = Reply::ok(xid, 0);
                reply.body.slice(None);
                return self.deliver(connection, reply.finish());
            }
            Command::Unknown => {
                self.deliver(connection, Reply::error(xid, -1, ErrorCode::Unimplemented));
                return self.close(connection);
            }
            Command::Ping => Wait::Ping,
            Command::Read(read) => Wait::Read { read, ids: Arc::clone(&peer.ids) },
            Command::Sync { path } => {
                self.upcalls.push(Upcall::Sync { connection });
                Wait::Sync { path, is_synced: false }
            }
            Command::Write(write) => {
                let ids = Arc::clone(&peer.ids);
                bytes += access::auth_bytes(&write, &ids);
                self.submit(connection, xid, ids, write);
                Wait::Commit
            }
        };
        if let Some(peer) = self.connections.get_mut(&connection) {
            peer.push(Pending { xid, op, received, bytes, wait });
        }
        self.advance(connection, now);
    }

    fn submit(&mut self, connection: u64, xid: i32, ids: Arc<[crate::protocol::Id]>, write: Write) {
        let Some(session_id) = self.session_of(connection) else { return };
        let origin = Some(Origin { server: self.options.server_id, connection });
        self.upcalls.push(Upcall::Write(Request { origin, session_id, xid, ids, write }));
    }

    /// Out of turn, as in Apache ZooKeeper: names are for the requests that come in later.
    fn authenticate(&mut self, connection: u64, xid: i32, scheme: &str, credential: &[u8]) {
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        let super_digest = self.options.super_digest.as_deref();
        let ids = access::authenticate(scheme, credential, &peer.host, super_digest);
        if ids.is_some_and(|ids| peer.add_ids(ids)) {
            self.deliver(connection, Reply::ok(xid, 0).finish());
        } else {
            self.deliver(connection, Reply::error(xid, 0, ErrorCode::AuthFailed));
            self.close(connection);
        }
    }

    /// The leader's word on [`Upcall::Sync`]: all it had prepared by then has been committed
    /// here.
    pub fn synced(&mut self, connection: u64, now: Now) {
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        let waiting = peer.pending.iter_mut().find_map(|pending| match &mut pending.wait {
            Wait::Sync { is_synced, .. } if !*is_synced => Some(is_synced),
            _ => None,
        });
        if let Some(is_synced) = waiting {
            *is_synced = true;
        }
        self.advance(connection, now);
    }

    /// The session's client has gone to another server: this connection ends when what it asked
    /// before has been answered. Only a server that leads knows.
    pub fn moved(&mut self, connection: u64, now: Now) {
        if let Some(peer) = self.connections.get_mut(&connection) {
            let (xid, op, wait) = (0, OpCode::Error, Wait::End);
            peer.push(Pending { xid, op, received: now, bytes: 0, wait });
        }
        self.advance(connection, now);
    }

    /// Answers whatever can be answered, in order.
    pub(super) fn advance(&mut self, connection: u64, now: Now) {
        loop {
            let Some(peer) = self.connections.get_mut(&connection) else { return };
            let is_due = |pending: &mut Pending| {
                !matches!(pending.wait, Wait::Commit | Wait::Sync { is_synced: false, .. })
            };
            let Some(pending) = peer.pop_if(is_due) else { return };
            if matches!(pending.wait, Wait::End) {
                return self.close(connection);
            }
            let zxid = self.replica.last_zxid();
            let frame = match &pending.wait {
                Wait::Read { read: Read::Malformed, .. } => {
                    Reply::error(pending.xid, zxid, ErrorCode::Marshalling)
                }
                Wait::Read { read, ids } => self.read(connection, pending.xid, read, ids),
                Wait::Sync { path, .. } => {
                    let mut reply = Reply::ok(pending.xid, zxid);
                    reply.body.string(path);
                    reply.finish()
                }
                Wait::Ping | Wait::Commit | Wait::End => Reply::ok(pending.xid, zxid).finish(),
            };
            self.note(connection, &pending, zxid, now);
            self.deliver(connection, frame);
        }
    }

    pub(super) fn note(&mut self, connection: u64, pending: &Pending, zxid: i64, now: Now) {
        let latency_ms = now.elapsed_ms.saturating_sub(pending.received.elapsed_ms);
        let Pending { op, xid, .. } = *pending;
        let answer = LastAnswer { op, xid, zxid, at: now, latency_ms };
        if let Some(peer) = self.connections.get_mut(&connection) {
            peer.statistics.note(answer.clone());
        }
        self.statistics.note(answer);
    }

    pub(super) fn deliver(&mut self, connection: u64, frame: bytes::Bytes) {
        self.statistics.sent += 1;
        if let Some(peer) = self.connections.get_mut(&connection) {
            peer.statistics.sent += 1;
        }
        self.deliveries.push(Delivery::Reply { connection, frame });
    }
}
