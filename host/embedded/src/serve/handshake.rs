//! How a connection gets its session.

use std::sync::Arc;

use super::connection::{Connection, Phase};
use super::{Delivery, Member, Upcall};
use crate::prepare::{Origin, Request};
use crate::protocol::{ConnectRequest, ConnectResponse, Write};
use crate::time::Now;

impl Member {
    pub(super) fn shake_hands(&mut self, connection: u64, frame: &[u8]) {
        let Ok(client) = ConnectRequest::decode(frame) else { return self.close(connection) };
        self.statistics.received += 1;
        // A client must never see time go back, so one that has seen more looks elsewhere.
        if client.last_zxid_seen > self.replica.last_zxid() {
            return self.close(connection);
        }
        let timeout_ms = client
            .timeout_ms
            .max(self.options.min_session_timeout_ms)
            .min(self.options.max_session_timeout_ms);
        let wanted = client.session_id;
        if wanted == 0 {
            return self.open_session(connection, client, timeout_ms);
        }
        // The session's old connection goes first, even if the password then turns out wrong.
        if let Some(old) = self.by_session.get(&wanted).copied() {
            self.close(old);
        }
        if !self.options.passwords.matches(wanted, &client.password) {
            return self.refuse(connection, &client);
        }
        if let Some(peer) = self.connections.get_mut(&connection) {
            begin(peer, client, wanted, timeout_ms);
            self.by_session.insert(wanted, connection);
            self.upcalls.push(Upcall::Attach { connection, session_id: wanted, timeout_ms });
        }
    }

    fn open_session(&mut self, connection: u64, client: ConnectRequest, timeout_ms: i32) {
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        let session_id = self.options.session_ids.next_id();
        begin(peer, client, session_id, timeout_ms);
        self.by_session.insert(session_id, connection);
        self.upcalls.push(Upcall::Write(Request {
            origin: Some(Origin { server: self.options.server_id, connection }),
            session_id,
            xid: 0,
            ids: Arc::clone(&peer.ids),
            write: Write::CreateSession { timeout_ms },
        }));
    }

    /// The leader's word on [`Upcall::Attach`].
    pub fn attached(&mut self, connection: u64, is_alive: bool, now: Now) {
        if is_alive {
            return self.welcome(connection, now);
        }
        let client = match self.connections.get(&connection).map(|peer| &peer.phase) {
            Some(Phase::Opening { client, .. }) => client.clone(),
            _ => return,
        };
        self.refuse(connection, &client);
    }

    /// The session is there: the client learns of it, and what it has sent meanwhile is read.
    pub(super) fn welcome(&mut self, connection: u64, now: Now) {
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        let Some(session_id) = peer.session_id else { return };
        let Phase::Opening { client, stash } = std::mem::replace(&mut peer.phase, Phase::Open)
        else {
            return;
        };
        let password = self.options.passwords.of(session_id);
        let timeout_ms = peer.timeout_ms;
        peer.statistics.received += 1;
        peer.statistics.sent += 1;
        self.statistics.sent += 1;
        let frame = ConnectResponse { timeout_ms, session_id, password }.encode(&client);
        self.deliveries.push(Delivery::Reply { connection, frame });
        for (frame, arrived) in stash {
            self.receive_late(connection, &frame, arrived, now);
        }
    }

    fn refuse(&mut self, connection: u64, client: &ConnectRequest) {
        self.statistics.sent += 1;
        let frame = ConnectResponse::refused().encode(client);
        self.deliveries.push(Delivery::Reply { connection, frame });
        self.close(connection);
    }
}

fn begin(peer: &mut Connection, client: ConnectRequest, session_id: i64, timeout_ms: i32) {
    peer.phase = Phase::Opening { client, stash: Vec::new() };
    peer.session_id = Some(session_id);
    peer.timeout_ms = timeout_ms;
}
