//! Three servers and one leader, without sockets. Each server applies the leader's txns when the
//! test says so.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::*;
use crate::jute::{Reader, Writer};
use crate::prepare::{Leader, LeaderOptions};
use crate::protocol::Acl;

const NOW: Now = Now { elapsed_ms: 0, wall_ms: 1_000 };

enum Step {
    Commit(Proposal),
    Synced(u64),
}

/// The leader is server 0; its replica is where requests are prepared.
struct Ensemble {
    leader: Leader,
    members: Vec<Member>,
    /// What each server has not applied yet.
    behind: Vec<VecDeque<Step>>,
    next_connection: u64,
}

impl Ensemble {
    fn new() -> Self {
        let options = LeaderOptions {
            tick_ms: 500,
            extended_types: false,
            never_used_container_ms: None,
            enforce_quota: false,
        };
        let member = |id: u8| {
            let options = MemberOptions {
                server_id: u64::from(id),
                min_session_timeout_ms: 1_000,
                max_session_timeout_ms: 10_000,
                version: ServerVersion::V3_9,
                super_digest: None,
                passwords: Passwords::Secret([1; 32]),
                session_ids: SessionIds::new(id, 1),
            };
            Member::new(options, Replica::new())
        };
        Ensemble {
            leader: Leader::new(options, &Replica::new(), 1 << 32, 0, NOW),
            members: (0..3).map(member).collect(),
            behind: (0..3).map(|_| VecDeque::new()).collect(),
            next_connection: 1,
        }
    }

    fn carry(&mut self, server: usize) {
        for upcall in self.members[server].take_upcalls() {
            match upcall {
                Upcall::Write(request) => {
                    // The leader has applied what it has prepared, before the next request.
                    self.catch_up(0);
                    let replica = &self.members[0].replica;
                    let proposal = self.leader.prepare(replica, request, NOW);
                    for behind in &mut self.behind {
                        behind.push_back(Step::Commit(proposal.clone()));
                    }
                }
                Upcall::Sync { connection } => {
                    self.behind[server].push_back(Step::Synced(connection));
                }
                Upcall::Attach { connection, session_id, timeout_ms } => {
                    let owner = u64::try_from(server).unwrap();
                    let is_alive = self.leader.attach(session_id, timeout_ms, owner, NOW);
                    self.members[server].attached(connection, is_alive, NOW);
                }
            }
        }
    }

    fn catch_up(&mut self, server: usize) {
        while let Some(step) = self.behind[server].pop_front() {
            match step {
                Step::Commit(proposal) => {
                    self.members[server].commit(&proposal, NOW);
                    if server == 0 {
                        self.leader.committed(&proposal.header);
                    }
                }
                Step::Synced(connection) => self.members[server].synced(connection, NOW),
            }
        }
    }

    fn frame(&mut self, server: usize, connection: u64, frame: &[u8]) {
        self.members[server].receive(connection, frame, NOW);
        self.carry(server);
    }

    fn connect(&mut self, server: usize, session: (i64, Bytes), last_zxid: i64) -> u64 {
        let connection = self.next_connection;
        self.next_connection += 1;
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        self.members[server].open(connection, address, NOW);
        let mut hello = Writer::new();
        hello.int(0);
        hello.long(last_zxid);
        hello.int(5_000);
        hello.long(session.0);
        hello.slice(Some(&session.1));
        self.frame(server, connection, &hello.finish());
        connection
    }

    /// A connection with a new session that every server knows.
    fn client(&mut self, server: usize) -> u64 {
        let connection = self.connect(server, (0, Bytes::new()), 0);
        (0..3).for_each(|server| self.catch_up(server));
        self.members[server].take_deliveries();
        connection
    }

    fn replies(&mut self, server: usize) -> Vec<Answer> {
        self.members[server].take_deliveries().into_iter().map(Answer::of).collect()
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Reply { xid: i32, error: i32, data: Option<String> },
    Event { path: String },
    Close,
}

impl Answer {
    fn of(delivery: Delivery) -> Answer {
        let parse = |frame: Bytes| {
            let mut reader = Reader::new(&frame[4..]);
            let (xid, _zxid, error) =
                (reader.int().unwrap(), reader.long().unwrap(), reader.int().unwrap());
            (xid, error, Bytes::copy_from_slice(reader.rest()))
        };
        match delivery {
            Delivery::Reply { frame, .. } => {
                let (xid, error, body) = parse(frame);
                let data = Reader::new(&body).optional_string().unwrap_or_default();
                Answer::Reply { xid, error, data }
            }
            Delivery::Event { frame, .. } => {
                let (_, _, body) = parse(frame);
                Answer::Event { path: Reader::new(&body[8..]).string().unwrap() }
            }
            Delivery::Close { .. } => Answer::Close,
        }
    }
}

fn reply(xid: i32, data: Option<&str>) -> Answer {
    Answer::Reply { xid, error: 0, data: data.map(str::to_owned) }
}

fn request(xid: i32, op: OpCode) -> Writer {
    let mut writer = Writer::new();
    writer.int(xid);
    writer.int(op.code());
    writer
}

fn create(xid: i32, path: &str, data: &str) -> Bytes {
    let mut writer = request(xid, OpCode::Create);
    writer.string(path);
    writer.string(data);
    Acl::encode_list(&Acl::open(), &mut writer);
    writer.int(0);
    writer.finish()
}

fn get(xid: i32, path: &str, watch: bool) -> Bytes {
    let mut writer = request(xid, OpCode::GetData);
    writer.string(path);
    writer.bool(watch);
    writer.finish()
}

fn set(xid: i32, path: &str, data: &str) -> Bytes {
    let mut writer = request(xid, OpCode::SetData);
    writer.string(path);
    writer.string(data);
    writer.int(-1);
    writer.finish()
}

fn sync(xid: i32, path: &str) -> Bytes {
    let mut writer = request(xid, OpCode::Sync);
    writer.string(path);
    writer.finish()
}

#[test]
fn a_server_that_is_behind_answers_stale_reads_until_it_has_synced() {
    let mut ensemble = Ensemble::new();
    let writer = ensemble.client(1);
    let reader = ensemble.client(2);
    ensemble.frame(1, writer, &create(1, "/a", "old"));
    (0..3).for_each(|server| ensemble.catch_up(server));
    ensemble.replies(1);

    ensemble.frame(1, writer, &set(2, "/a", "new"));
    ensemble.catch_up(1);
    assert_eq!(ensemble.replies(1).len(), 1);
    ensemble.frame(2, reader, &get(1, "/a", false));
    assert_eq!(ensemble.replies(2), [reply(1, Some("old"))]);

    ensemble.frame(2, reader, &sync(2, "/a"));
    ensemble.frame(2, reader, &get(3, "/a", false));
    assert_eq!(ensemble.replies(2), [], "the read waits behind the sync");
    ensemble.catch_up(2);
    assert_eq!(ensemble.replies(2), [reply(2, Some("/a")), reply(3, Some("new"))]);
}

#[test]
fn a_client_that_has_seen_more_is_refused() {
    let mut ensemble = Ensemble::new();
    let writer = ensemble.client(1);
    ensemble.frame(1, writer, &create(1, "/a", ""));
    ensemble.catch_up(1);
    let seen = ensemble.members[1].replica().last_zxid();
    let behind = ensemble.connect(2, (0, Bytes::new()), seen);
    assert_eq!(ensemble.members[2].take_deliveries(), [Delivery::Close { connection: behind }]);
    ensemble.catch_up(2);
    ensemble.connect(2, (0, Bytes::new()), seen);
    ensemble.catch_up(2);
    assert_eq!(ensemble.members[2].take_deliveries().len(), 1);
}

#[test]
fn a_session_that_has_moved_cannot_write_where_it_was() {
    let mut ensemble = Ensemble::new();
    let old = ensemble.client(1);
    let session_id = ensemble.members[1].session_of(old).unwrap();
    let password = Passwords::Secret([1; 32]).of(session_id);
    let new = ensemble.connect(2, (session_id, Bytes::copy_from_slice(&password)), 0);
    assert_eq!(ensemble.members[2].session_of(new), Some(session_id));
    ensemble.replies(2);

    ensemble.frame(1, old, &create(1, "/old", ""));
    ensemble.frame(2, new, &create(1, "/new", ""));
    (0..3).for_each(|server| ensemble.catch_up(server));
    assert_eq!(ensemble.replies(1), [Answer::Close]);
    assert_eq!(ensemble.replies(2), [reply(1, Some("/new"))]);
    assert!(ensemble.members[0].replica().tree().get("/old").is_none());
}

#[test]
fn an_event_goes_out_before_the_answer_that_shows_its_cause() {
    let mut ensemble = Ensemble::new();
    let client = ensemble.client(1);
    ensemble.frame(1, client, &create(1, "/a", ""));
    ensemble.catch_up(1);
    ensemble.frame(1, client, &get(2, "/a", true));
    ensemble.replies(1);
    ensemble.frame(1, client, &set(3, "/a", "x"));
    ensemble.frame(1, client, &get(4, "/a", false));
    ensemble.catch_up(1);
    let answers = ensemble.replies(1);
    assert_eq!(answers[0], Answer::Event { path: "/a".to_owned() });
    assert!(matches!(answers[1], Answer::Reply { xid: 3, .. }));
    assert_eq!(answers[2], reply(4, Some("x")));
}

#[test]
fn all_replicas_come_to_the_same_state() {
    let mut ensemble = Ensemble::new();
    let client = ensemble.client(1);
    for number in 0..20 {
        ensemble.frame(1, client, &create(number, &format!("/n{}", number % 7), "x"));
        ensemble.catch_up(usize::try_from(number % 3).unwrap());
    }
    (0..3).for_each(|server| ensemble.catch_up(server));
    let show = |member: &Member| {
        let tree = member.replica().tree();
        let root = tree.get("/").unwrap();
        let names: Vec<String> = root.children().map(str::to_owned).collect();
        (tree.len(), root.stat(), names, member.replica().last_zxid())
    };
    assert_eq!(show(&ensemble.members[0]), show(&ensemble.members[1]));
    assert_eq!(show(&ensemble.members[0]), show(&ensemble.members[2]));
}
