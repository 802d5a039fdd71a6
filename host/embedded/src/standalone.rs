//! One leader and one server in one: what a server without ensemble is. Still without I/O.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::prepare::{Leader, LeaderOptions, Proposal, Request};
use crate::protocol::{OpCode, Write};
use crate::replica::Replica;
use crate::serve::{Delivery, Member, MemberOptions, Upcall};
use crate::time::Now;
use crate::tree::Owner;
use crate::txn::Txn;

/// A server without ensemble.
///
/// What clients ask is prepared at once and waits in [`Standalone::prepared`]; the task that drives
/// the server writes that to a log, forces the log once for all of it, and then calls
/// [`Standalone::commit`], which answers.
#[derive(Debug)]
pub struct Standalone {
    leader: Leader,
    member: Member,
    queue: VecDeque<Step>,
}

#[derive(Debug)]
enum Step {
    Commit(Proposal),
    Synced {
        connection: u64,
    },
    /// A client has come back with its session: it sees what was asked before, its own writes of an
    /// earlier connection among them.
    Attached {
        connection: u64,
        session_id: i64,
    },
}

/// Whether a frame shows that its session is alive. Apache ZooKeeper answers a login without noting that: a
/// client that logs in again and again, and is never content, loses its session.
fn keeps_alive(frame: &[u8]) -> bool {
    let op = frame.get(4..8).and_then(|op| op.try_into().ok()).map(i32::from_be_bytes);
    !matches!(op.and_then(OpCode::from_code), Some(OpCode::Auth | OpCode::Sasl))
}

impl Standalone {
    /// A server with a state, empty or restored, whose next txn follows `zxid` and the state.
    pub fn new(
        leader: LeaderOptions,
        member: MemberOptions,
        replica: Replica,
        zxid: i64,
        now: Now,
    ) -> Self {
        let leader = Leader::new(leader, &replica, zxid, member.server_id, now);
        let mut member = Member::new(member, replica);
        // Or clients that have seen it would be sent away until there is a txn.
        member.lead_from(zxid);
        Standalone { leader, member, queue: VecDeque::new() }
    }

    /// The leader.
    pub fn leader(&self) -> &Leader {
        &self.leader
    }

    /// The server.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The server, to reset its statistics.
    pub fn member_mut(&mut self) -> &mut Member {
        &mut self.member
    }

    /// See [`Member::open`].
    pub fn open(&mut self, connection: u64, address: SocketAddr, now: Now) {
        self.member.open(connection, address, now);
    }

    /// See [`Member::disconnected`].
    pub fn disconnected(&mut self, connection: u64) {
        self.member.disconnected(connection);
    }

    /// Frames have come in: their session is alive, even if they have to wait for their turn.
    pub fn heard<'a>(
        &mut self,
        connection: u64,
        frames: impl IntoIterator<Item = &'a [u8]>,
        now: Now,
    ) {
        if let Some(session_id) = self.member.session_of(connection)
            && frames.into_iter().any(keeps_alive)
        {
            // If the session is over, what came in is dropped in its turn.
            self.leader.touch(session_id, now);
        }
    }

    /// A frame is to be served, without its length. It is dropped if its session is over.
    pub fn receive(&mut self, connection: u64, frame: &[u8], now: Now) {
        self.receive_late(connection, frame, now, now);
    }

    /// As [`Standalone::receive`], for a frame that came in before: see [`Member::receive_late`].
    pub fn receive_late(&mut self, connection: u64, frame: &[u8], arrived: Now, now: Now) {
        if let Some(session_id) = self.member.session_of(connection)
            && keeps_alive(frame)
            && !self.leader.touch(session_id, now)
        {
            return;
        }
        self.member.receive_late(connection, frame, arrived, now);
        self.carry(now);
    }

    /// To be called at least once a tick: closes the sessions whose time is over.
    pub fn tick(&mut self, now: Now) {
        let proposals = self.leader.expire(self.member.replica(), now);
        self.queue.extend(proposals.into_iter().map(Step::Commit));
    }

    /// To be called every so often: removes containers and nodes whose time to live is over.
    pub fn sweep(&mut self, now: Now) {
        let proposals = self.leader.sweep(self.member.replica(), now);
        self.queue.extend(proposals.into_iter().map(Step::Commit));
    }

    /// To be called once at the beginning: closes the sessions that own nodes but are not known,
    /// as in a snapshot that another server took while a session ended.
    pub fn close_unknown_sessions(&mut self, now: Now) {
        let replica = self.member.replica();
        let owners = replica.tree().ephemerals().map(|(session_id, _)| session_id);
        let unknown: Vec<i64> =
            owners.filter(|session_id| !replica.sessions().contains_key(session_id)).collect();
        for session_id in unknown {
            let close = Request::own(session_id, Write::CloseSession);
            let proposal = self.leader.prepare(self.member.replica(), close, now);
            self.queue.push_back(Step::Commit(proposal));
        }
    }

    /// Whether anything waits to be committed.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// What is prepared and must be in the log before it is committed, in order.
    pub fn prepared(&self) -> impl Iterator<Item = &Proposal> {
        self.queue.iter().filter_map(|step| match step {
            Step::Commit(proposal) => Some(proposal),
            Step::Synced { .. } | Step::Attached { .. } => None,
        })
    }

    /// Applies and answers what is prepared, up to and including a zxid: what the log has on
    /// disk. Meanwhile more may be prepared, by clients that get their session here and now.
    pub fn commit(&mut self, through: i64, now: Now) {
        let is_due = |step: &mut Step| match step {
            Step::Commit(proposal) => proposal.header.zxid <= through,
            Step::Synced { .. } | Step::Attached { .. } => true,
        };
        while let Some(step) = self.queue.pop_front_if(is_due) {
            match step {
                Step::Commit(proposal) => {
                    debug_assert!(takes_only_its_own(self.member.replica(), &proposal));
                    self.member.commit(&proposal, now);
                    self.leader.committed(&proposal.header);
                }
                Step::Synced { connection } => self.member.synced(connection, now),
                Step::Attached { connection, session_id } => {
                    // What was asked before may have ended the session.
                    let is_alive = self.leader.touch(session_id, now);
                    self.member.attached(connection, is_alive, now);
                }
            }
            self.carry(now);
        }
    }

    /// What is to be sent, in order.
    pub fn take_deliveries(&mut self) -> Vec<Delivery> {
        self.member.take_deliveries()
    }

    fn carry(&mut self, now: Now) {
        // An answer may set free frames that waited for it, and those ask in turn.
        let mut upcalls: VecDeque<Upcall> = self.member.take_upcalls().into();
        while let Some(upcall) = upcalls.pop_front() {
            match upcall {
                Upcall::Write(request) => {
                    let proposal = self.leader.prepare(self.member.replica(), request, now);
                    self.queue.push_back(Step::Commit(proposal));
                }
                Upcall::Sync { connection } => self.queue.push_back(Step::Synced { connection }),
                Upcall::Attach { connection, session_id, timeout_ms } => {
                    let server = self.member.options().server_id;
                    let is_alive = self.leader.attach(session_id, timeout_ms, server, now);
                    match self.queue.is_empty() {
                        true => self.member.attached(connection, is_alive, now),
                        false => self.queue.push_back(Step::Attached { connection, session_id }),
                    }
                }
            }
            upcalls.extend(self.member.take_upcalls());
        }
    }
}

/// Whether a session that ends takes nobody else's nodes along.
fn takes_only_its_own(replica: &Replica, proposal: &Proposal) -> bool {
    let Txn::CloseSession(close) = &proposal.txn else { return true };
    let own = Owner::Session(proposal.header.session_id).to_raw();
    close.paths.iter().flatten().all(|path| {
        replica.tree().get(path).is_some_and(|node| node.stored().ephemeral_owner == own)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::jute::Writer;
    use crate::protocol::Acl;
    use crate::session::{Passwords, SessionIds};
    use crate::version::ServerVersion;

    const NOW: Now = Now { elapsed_ms: 0, wall_ms: 1_000 };

    fn server() -> Standalone {
        let leader = LeaderOptions {
            tick_ms: 500,
            extended_types: true,
            never_used_container_ms: None,
            enforce_quota: false,
        };
        let member = MemberOptions {
            server_id: 0,
            min_session_timeout_ms: 1_000,
            max_session_timeout_ms: 10_000,
            version: ServerVersion::V3_9,
            super_digest: None,
            passwords: Passwords::Secret([1; 32]),
            session_ids: SessionIds::new(0, 1),
        };
        Standalone::new(leader, member, Replica::new(), 0, NOW)
    }

    fn settle(server: &mut Standalone) -> Vec<Delivery> {
        server.commit(server.leader().last_zxid(), NOW);
        server.take_deliveries()
    }

    /// Asks for a session, or for the one of that id again.
    fn greet(server: &mut Standalone, connection: u64, session_id: i64, password: &[u8]) {
        server.open(connection, SocketAddr::from(([127, 0, 0, 1], 1)), NOW);
        let mut hello = Writer::new();
        hello.int(0);
        hello.long(0);
        hello.int(5_000);
        hello.long(session_id);
        hello.slice(Some(password));
        server.receive(connection, &hello.finish(), NOW);
    }

    fn connected() -> Standalone {
        let mut server = server();
        greet(&mut server, 1, 0, &[0; 16]);
        assert_eq!(settle(&mut server).len(), 1);
        server
    }

    fn request(op: i32, path: &str, number: i32) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.int(1);
        writer.int(op);
        writer.string(path);
        match op {
            1 | 15 | 19 | 21 => {
                writer.slice(Some(b"x"));
                Acl::encode_list(&Acl::open(), &mut writer);
                writer.int(number);
                writer.long(1);
            }
            5 => {
                writer.slice(None);
                writer.int(-1);
            }
            _ => writer.int(number),
        }
        writer.finish().to_vec()
    }

    fn anything() -> impl Strategy<Value = Vec<u8>> {
        let path = prop::sample::select(vec!["/", "", "a", "/a", "/a/b", "/a/", "/\0", "/é"]);
        let likely = (-12..30i32, path, -2..8i32).prop_map(|(op, path, n)| request(op, path, n));
        prop_oneof![likely, prop::collection::vec(any::<u8>(), 0..60)]
    }

    proptest! {
        #[test]
        fn no_frames_make_the_server_panic(
            frames in prop::collection::vec((anything(), any::<bool>()), 0..40),
        ) {
            let mut server = connected();
            for (frame, is_settled) in frames {
                server.receive(1, &frame, NOW);
                if is_settled {
                    settle(&mut server);
                }
            }
            settle(&mut server);
            prop_assert!(server.is_idle());
        }
    }

    #[test]
    fn a_silent_sessions_end_is_prepared_by_the_tick() {
        let mut server = connected();
        server.tick(Now { elapsed_ms: 5_000, ..NOW });
        assert_eq!(server.prepared().count(), 0);
        server.tick(Now { elapsed_ms: 5_500, ..NOW });
        assert_eq!(server.prepared().count(), 1);
        assert_eq!(settle(&mut server), [Delivery::Close { connection: 1 }]);
    }

    #[test]
    fn who_comes_back_sees_its_own_write_that_was_under_way() {
        let mut server = connected();
        let (session_id, _) = server.member.replica().sessions().iter().next().unwrap();
        let (session_id, passwords) = (*session_id, Passwords::Secret([1; 32]));
        server.receive(1, &request(1, "/a", 0), NOW);
        server.disconnected(1);
        greet(&mut server, 2, session_id, &passwords.of(session_id));
        server.receive(2, &request(3, "/a", 0), NOW);
        assert_eq!(server.take_deliveries(), []);
        let deliveries = settle(&mut server);
        let [Delivery::Reply { .. }, Delivery::Reply { connection: 2, frame }] = &*deliveries
        else {
            panic!("not a welcome and an answer: {deliveries:?}");
        };
        // Behind the length, the xid and the zxid: no error.
        assert_eq!(frame.get(16..20), Some(&[0; 4][..]));
    }

    #[test]
    fn a_login_keeps_no_session_alive() {
        let at = |elapsed_ms| Now { elapsed_ms, ..NOW };
        for (op, is_alive) in [(OpCode::Auth, false), (OpCode::Sasl, false), (OpCode::Ping, true)] {
            let mut server = connected();
            let frame = [1, op.code()].map(i32::to_be_bytes).concat();
            server.heard(1, [&*frame], at(4_000));
            server.receive(1, &frame, at(4_000));
            server.tick(at(8_000));
            assert_eq!(server.prepared().count() == 0, is_alive, "{op:?}");
        }
    }

    #[test]
    fn nothing_is_answered_before_it_is_committed() {
        let mut server = connected();
        server.receive(1, &request(1, "/a", 0), NOW);
        server.receive(1, &request(4, "/a", 0), NOW);
        assert_eq!(server.take_deliveries(), []);
        assert_eq!(server.prepared().count(), 1);
        assert_eq!(settle(&mut server).len(), 2);
    }
}
