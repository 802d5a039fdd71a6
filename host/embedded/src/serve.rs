//! One server's part: connections, reads, watches, and answers in order.

mod answer;
mod connection;
mod events;
mod handshake;
mod reads;
mod request;
mod statistics;
mod watches;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;

pub use connection::Connection;
pub use statistics::Statistics;
pub use watches::{WatchTable, Watches};

use crate::prepare::{Proposal, Request};
use crate::protocol::OpCode;
use crate::replica::Replica;
use crate::session::{Passwords, SessionIds};
use crate::time::Now;
use crate::version::ServerVersion;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct MemberOptions {
    /// The server's number within its ensemble.
    pub server_id: u64,
    /// The shortest session timeout it grants.
    pub min_session_timeout_ms: i32,
    /// The longest.
    pub max_session_timeout_ms: i32,
    /// Which ZooKeeper it is like.
    pub version: ServerVersion,
    /// `super:` and the digest of `super:<password>`: who proves this name may do everything.
    pub super_digest: Option<String>,
    /// How session passwords are made: the same on every server of an ensemble.
    pub passwords: Passwords,
    /// Where the ids of new sessions come from.
    pub session_ids: SessionIds,
}

/// Something for a connection, in the order in which it must get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The answer to a request or to the handshake.
    Reply {
        /// To whom.
        connection: u64,
        /// A whole frame.
        frame: Bytes,
    },
    /// An event nobody asked for at that moment.
    Event {
        /// To whom.
        connection: u64,
        /// A whole frame.
        frame: Bytes,
    },
    /// The end: what was delivered before still goes out. The server has forgotten it.
    Close {
        /// Which.
        connection: u64,
    },
}

/// Something for the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upcall {
    /// To be prepared. Every server's [`Member::commit`] is given the proposal, in order.
    Write(Request),
    /// To be answered by [`Member::synced`] after all that the leader has prepared so far.
    Sync {
        /// The connection that asked.
        connection: u64,
    },
    /// A session that comes to this server; to be answered by [`Member::attached`].
    Attach {
        /// The connection it comes by.
        connection: u64,
        /// Which.
        session_id: i64,
        /// Its new timeout.
        timeout_ms: i32,
    },
}

/// A server of an ensemble, as its clients meet it. The leader may be elsewhere and this
/// server's replica behind: reads are answered from it all the same.
///
/// Requests of a connection are answered in order: a read waits for the writes before it.
#[derive(Debug)]
pub struct Member {
    options: MemberOptions,
    replica: Replica,
    connections: BTreeMap<u64, Connection>,
    by_session: BTreeMap<i64, u64>,
    watches: Watches,
    statistics: Statistics,
    deliveries: Vec<Delivery>,
    upcalls: Vec<Upcall>,
}

impl Member {
    /// A server with a copy of the state and no connections.
    pub fn new(options: MemberOptions, replica: Replica) -> Self {
        let watches = Watches::new(options.version);
        Member {
            options,
            replica,
            connections: BTreeMap::new(),
            by_session: BTreeMap::new(),
            watches,
            statistics: Statistics::default(),
            deliveries: Vec::new(),
            upcalls: Vec::new(),
        }
    }

    /// Its copy of the state.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// How it is set up.
    pub fn options(&self) -> &MemberOptions {
        &self.options
    }

    /// Its connections, by their numbers.
    pub fn connections(&self) -> impl ExactSizeIterator<Item = (u64, &Connection)> {
        self.connections.iter().map(|(id, connection)| (*id, connection))
    }

    /// One of them.
    pub fn connection(&self, connection: u64) -> Option<&Connection> {
        self.connections.get(&connection)
    }

    /// Its watches.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// What it has done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Starts its statistics anew.
    pub fn reset_statistics(&mut self) {
        self.statistics = Statistics::default();
    }

    /// Starts its connections' statistics anew.
    pub fn reset_connection_statistics(&mut self) {
        for connection in self.connections.values_mut() {
            connection.statistics = Statistics::default();
        }
    }

    /// The session of a connection, once the handshake has named it.
    pub fn session_of(&self, connection: u64) -> Option<i64> {
        self.connections.get(&connection)?.session_id
    }

    /// What is to be sent, since last asked, in order.
    pub fn take_deliveries(&mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.deliveries)
    }

    /// What is for the leader, since last asked, in order.
    pub fn take_upcalls(&mut self) -> Vec<Upcall> {
        std::mem::take(&mut self.upcalls)
    }

    /// A client has connected, by a number that no other connection ever had.
    pub fn open(&mut self, connection: u64, address: SocketAddr, now: Now) {
        self.connections.insert(connection, Connection::new(address, now));
    }

    /// A connection is gone: its watches go with it. Its session waits for the client to return.
    pub fn disconnected(&mut self, connection: u64) {
        self.forget(connection);
    }

    /// This server serves nobody any more: it has lost its leader, or the lead.
    pub fn close_all(&mut self) {
        let connections: Vec<u64> = self.connections.keys().copied().collect();
        connections.into_iter().for_each(|connection| self.close(connection));
    }

    /// A frame has come in, without its length.
    pub fn receive(&mut self, connection: u64, frame: &[u8], now: Now) {
        self.receive_late(connection, frame, now, now);
    }

    /// A frame is to be served that has come in before, and has waited for its turn: to its client
    /// that is part of the time that the answer takes.
    pub fn receive_late(&mut self, connection: u64, frame: &[u8], arrived: Now, now: Now) {
        use connection::Phase;
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        match &mut peer.phase {
            Phase::New => self.shake_hands(connection, frame),
            Phase::Opening { stash, .. } => stash.push((Bytes::copy_from_slice(frame), arrived)),
            Phase::Open => self.request(connection, frame, arrived, now),
        }
    }

    /// This server leads from a zxid on, and tells it to its clients before there is a txn.
    pub fn lead_from(&mut self, zxid: i64) {
        self.replica.begin(zxid);
    }

    /// The leader's next txn: applies it, tells watchers, then answers the client that asked.
    pub fn commit(&mut self, proposal: &Proposal, now: Now) {
        let Proposal { origin, header, txn } = proposal;
        let applied = self.replica.apply(header, txn);
        self.tell(applied.zxid, &applied.changes);
        let own = origin.filter(|origin| origin.server == self.options.server_id);
        if let Some(origin) = own {
            self.answer_write(origin.connection, header, &applied.outcome, now);
        }
        if header.op == OpCode::CloseSession
            && let Some(connection) = self.by_session.get(&header.session_id).copied()
        {
            self.close(connection);
        }
    }

    fn close(&mut self, connection: u64) {
        if self.forget(connection) {
            self.deliveries.push(Delivery::Close { connection });
        }
    }

    /// Whether it was there.
    fn forget(&mut self, connection: u64) -> bool {
        let Some(peer) = self.connections.remove(&connection) else { return false };
        self.watches.remove_connection(connection);
        if let Some(session_id) = peer.session_id
            && self.by_session.get(&session_id) == Some(&connection)
        {
            self.by_session.remove(&session_id);
        }
        true
    }
}

#[cfg(test)]
mod tests;
