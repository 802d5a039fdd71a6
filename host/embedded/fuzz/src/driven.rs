//! A server without sockets, clock and disk.

use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;

use bytes::{BufMut as _, Bytes, BytesMut};
use wok_embedded::ServerVersion;
use wok_embedded::files::{LogReader, Replayed, encode_entry, replay};
use wok_embedded::prepare::LeaderOptions;
use wok_embedded::protocol::next_frame;
use wok_embedded::replica::Replica;
use wok_embedded::serve::{Delivery, MemberOptions};
use wok_embedded::session::{Passwords, SessionIds};
use wok_embedded::standalone::Standalone;
use wok_embedded::time::Now;

use super::MEMORY;

/// What a log begins with: `ZKLG`, version 2, database 0.
pub(crate) const LOG_HEADER: [u8; 16] = *b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0";

const CONNECTIONS: usize = 4;

/// What differs between servers.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) version: ServerVersion,
    pub(crate) extended_types: bool,
    pub(crate) never_used_container_ms: Option<u64>,
    pub(crate) enforce_quota: bool,
}

/// A server, what its clients have sent so far, and its log.
pub(crate) struct Driven {
    server: Standalone,
    now: Now,
    wires: Vec<Wire>,
    opened: u64,
    pub(crate) log: Vec<u8>,
}

#[derive(Default)]
struct Wire {
    connection: u64,
    unread: BytesMut,
}

impl Driven {
    pub(crate) fn start(kind: Kind, replica: Replica) -> Driven {
        let Kind { version, extended_types, never_used_container_ms, enforce_quota } = kind;
        let leader =
            LeaderOptions { tick_ms: 500, extended_types, never_used_container_ms, enforce_quota };
        let member = MemberOptions {
            server_id: 0,
            min_session_timeout_ms: 1_000,
            max_session_timeout_ms: 10_000,
            version,
            super_digest: None,
            passwords: Passwords::LikeApache,
            session_ids: SessionIds::new(0, 1),
        };
        let now = Now { elapsed_ms: 0, wall_ms: 1_000 };
        let server = Standalone::new(leader, member, replica, 0, now);
        let wires = (0..CONNECTIONS).map(|_| Wire::default()).collect();
        let mut driven = Driven { server, now, wires, opened: 0, log: LOG_HEADER.to_vec() };
        driven.server.close_unknown_sessions(now);
        (0..CONNECTIONS).for_each(|wire| driven.reconnect(wire));
        driven
    }

    /// The client of a wire goes, and another comes.
    pub(crate) fn reconnect(&mut self, wire: usize) {
        let Some(wire) = self.wires.get_mut(wire % CONNECTIONS) else { return };
        self.server.disconnected(wire.connection);
        self.opened += 1;
        *wire = Wire { connection: self.opened, unread: BytesMut::new() };
        self.server.open(self.opened, SocketAddr::from(([127, 0, 0, 1], 1)), self.now);
    }

    /// Asks for a new session.
    pub(crate) fn greet(&mut self, wire: usize) {
        let mut hello = [0; 45];
        hello[12..16].copy_from_slice(&5_000_i32.to_be_bytes());
        hello[24..28].copy_from_slice(&16_i32.to_be_bytes());
        self.frame(wire, &hello);
        self.settle();
    }

    /// A frame comes in as it should.
    pub(crate) fn frame(&mut self, wire: usize, frame: &[u8]) {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.arrive(wire, &length.to_be_bytes());
        self.arrive(wire, frame);
    }

    /// Bytes come in.
    pub(crate) fn arrive(&mut self, wire: usize, bytes: &[u8]) {
        let Some(wire) = self.wires.get_mut(wire % CONNECTIONS) else { return };
        wire.unread.put_slice(bytes);
        loop {
            match next_frame(&mut wire.unread, MEMORY) {
                Ok(Some(frame)) => self.server.receive(wire.connection, &frame, self.now),
                Ok(None) => break,
                Err(_) => {
                    // As the front does: the connection ends.
                    wire.unread.clear();
                    self.server.disconnected(wire.connection);
                    break;
                }
            }
        }
        self.look_at_answers();
    }

    /// Time goes by.
    pub(crate) fn wait(&mut self, ms: u32) {
        self.now.elapsed_ms += u64::from(ms);
        self.now.wall_ms += i64::from(ms);
        self.server.tick(self.now);
    }

    pub(crate) fn sweep(&mut self) {
        self.server.sweep(self.now);
    }

    /// Keeps and answers all that has been prepared.
    pub(crate) fn settle(&mut self) {
        while !self.server.is_idle() {
            let through = self.server.leader().last_zxid();
            for proposal in self.server.prepared() {
                encode_entry(&proposal.header, &proposal.txn, &mut self.log);
            }
            self.server.commit(through, self.now);
            self.look_at_answers();
        }
    }

    /// Asserts that the log brings a replica to where the server is.
    pub(crate) fn assert_log_tells_all(&self, mut replica: Replica) {
        let length = u64::try_from(self.log.len()).unwrap_or(u64::MAX);
        let log = LogReader::new(Path::new("log"), Cursor::new(&self.log), length);
        let replayed = log.and_then(|mut log| replay(&mut log, &mut replica));
        assert!(matches!(replayed, Ok(Replayed { torn: None, .. })), "{replayed:?}");
        let own = self.server.member().replica();
        assert_eq!(own.last_zxid(), replica.last_zxid());
        assert_eq!(own.sessions(), replica.sessions());
        assert_eq!(own.tree().len(), replica.tree().len());
        let (mut left, mut right) = (own.tree().root(), replica.tree().root());
        while let (Some((path, node)), Some((other_path, other))) = (left, right) {
            assert_eq!(path, other_path);
            assert_eq!(node.data(), other.data(), "{path}");
            assert_eq!(node.acl(), other.acl(), "{path}");
            assert_eq!(node.stored(), other.stored(), "{path}");
            (left, right) = (own.tree().following(&path), replica.tree().following(&path));
        }
    }

    /// Every answer is one whole frame.
    fn look_at_answers(&mut self) {
        for delivery in self.server.take_deliveries() {
            match delivery {
                Delivery::Reply { frame, .. } | Delivery::Event { frame, .. } => is_whole(&frame),
                Delivery::Close { .. } => {}
            }
        }
    }
}

fn is_whole(frame: &Bytes) {
    let head = frame.first_chunk::<4>().map(|head| u32::from_be_bytes(*head));
    let length = head.and_then(|length| usize::try_from(length).ok());
    assert_eq!(length.map(|length| length + 4), Some(frame.len()));
}
