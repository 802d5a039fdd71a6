//! The simulated ensemble: a leader and servers that are more or less behind, made of the parts of
//! the embedded server. No network and no time of its own: [`super::network`] drives it.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wok_embedded::ServerVersion;
use wok_embedded::prepare::{Leader, LeaderOptions, Proposal, Request};
use wok_embedded::protocol::{Acl, Command, ErrorCode, Frame, OpCode, Write};
use wok_embedded::replica::{ChangeKind, Replica};
use wok_embedded::serve::{Delivery, Member, MemberOptions, Upcall};
use wok_embedded::session::{Passwords, SessionIds};
use wok_embedded::time::Now;
use wok_embedded::tree::{NodeStat, Tree};

use super::history::{Change, What};
use super::nature::BEGIN_WALL_MS;

/// The length of the ensemble's tick.
pub(super) const TICK_MS: u64 = 500;

/// What servers have to do, in the order in which the leader decided it.
#[derive(Debug)]
enum Step {
    Commit(Proposal),
    /// The answer to a `sync`.
    Synced {
        server: usize,
        connection: u64,
    },
}

/// The servers of an ensemble.
#[derive(Debug)]
pub(super) struct Servers {
    members: Vec<Member>,
    leader: Leader,
    leads: usize,
    epoch: i64,
    /// Prepared, and not yet on a majority of disks.
    prepared: VecDeque<Step>,
    /// Committed, and not yet applied, by server.
    behind: Vec<VecDeque<Step>>,
    /// What has been committed: the state that nobody can take back.
    truth: Replica,
}

/// A txn was committed: what it did, for the history.
pub(super) type Committed = What;

impl Servers {
    /// An ensemble in which `parents` exist, whose counters are at `counter`.
    pub(super) fn new(
        version: ServerVersion,
        count: usize,
        parents: &[String],
        counter: i32,
    ) -> Self {
        let replica = || {
            let mut tree = Tree::new();
            for parent in parents {
                let stat =
                    NodeStat { czxid: 1, cversion: counter, pzxid: 1, ..NodeStat::default() };
                tree.restore(parent, None, &Acl::open(), stat);
            }
            Replica::restored(tree, std::collections::BTreeMap::new(), 1)
        };
        let member = |server: usize| {
            let id = u8::try_from(server).unwrap_or(u8::MAX);
            let options = MemberOptions {
                server_id: u64::from(id),
                min_session_timeout_ms: 1_000,
                max_session_timeout_ms: 40_000,
                version,
                super_digest: None,
                passwords: Passwords::Secret([7; 32]),
                session_ids: SessionIds::new(id, i64::try_from(BEGIN_WALL_MS).unwrap_or(0)),
            };
            Member::new(options, replica())
        };
        let begin = Now { elapsed_ms: 0, wall_ms: 0 };
        Servers {
            members: (0..count).map(member).collect(),
            leader: Leader::new(leader_options(), &replica(), 1 << 32, 0, begin),
            leads: 0,
            epoch: 1,
            prepared: VecDeque::new(),
            behind: (0..count).map(|_| VecDeque::new()).collect(),
            truth: replica(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    pub(super) fn leads(&self) -> usize {
        self.leads
    }

    /// What has been committed.
    pub(super) fn truth(&self) -> &Replica {
        &self.truth
    }

    pub(super) fn open(&mut self, server: usize, connection: u64, now: Now) {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        if let Some(member) = self.members.get_mut(server) {
            member.open(connection, address, now);
        }
    }

    pub(super) fn disconnected(&mut self, server: usize, connection: u64) {
        if let Some(member) = self.members.get_mut(server) {
            member.disconnected(connection);
        }
    }

    /// A frame has come in.
    pub(super) fn receive(&mut self, server: usize, connection: u64, frame: &[u8], now: Now) {
        let Some(member) = self.members.get(server) else { return };
        if let Some(session) = member.session_of(connection) {
            let is_known = self.leader.touch(session, now);
            // A follower serves whoever is connected to it until it hears of the session's end.
            if server == self.leads {
                if !is_known {
                    return;
                }
                if self.has_moved(session, server) && !is_write(frame) {
                    if let Some(member) = self.members.get_mut(server) {
                        member.moved(connection, now);
                    }
                    return;
                }
            }
        }
        let Some(member) = self.members.get_mut(server) else { return };
        member.receive(connection, frame, now);
        self.carry(server, now);
    }

    /// Whether a session's client has gone to another server.
    fn has_moved(&self, session: i64, server: usize) -> bool {
        let owner = u64::try_from(server).unwrap_or(u64::MAX);
        self.leader.sessions().check(session, owner) == Err(ErrorCode::SessionMoved)
    }

    /// Closes sessions whose time is over.
    pub(super) fn expire(&mut self, now: Now) {
        let Some(member) = self.members.get(self.leads) else { return };
        let closes = self.leader.expire(member.replica(), now);
        self.prepared.extend(closes.into_iter().map(Step::Commit));
    }

    /// Removes empty containers.
    pub(super) fn sweep(&mut self, now: Now) {
        let Some(member) = self.members.get(self.leads) else { return };
        let deletes = self.leader.sweep(member.replica(), now);
        self.prepared.extend(deletes.into_iter().map(Step::Commit));
    }

    /// Ends a session whose client is well.
    pub(super) fn close_session(&mut self, session: i64, now: Now) {
        let Some(member) = self.members.get(self.leads) else { return };
        let close = Request::own(session, Write::CloseSession);
        let close = self.leader.prepare(member.replica(), close, now);
        self.prepared.push_back(Step::Commit(close));
    }

    fn carry(&mut self, server: usize, now: Now) {
        loop {
            let Some(member) = self.members.get_mut(server) else { return };
            let upcalls = member.take_upcalls();
            if upcalls.is_empty() {
                return;
            }
            for upcall in upcalls {
                match upcall {
                    Upcall::Write(request) => {
                        let Some(leading) = self.members.get(self.leads) else { continue };
                        let proposal = self.leader.prepare(leading.replica(), request, now);
                        self.prepared.push_back(Step::Commit(proposal));
                    }
                    Upcall::Sync { connection } => {
                        self.prepared.push_back(Step::Synced { server, connection });
                    }
                    Upcall::Attach { connection, session_id, timeout_ms } => {
                        let owner = u64::try_from(server).unwrap_or(u64::MAX);
                        let alive = self.leader.attach(session_id, timeout_ms, owner, now);
                        if let Some(member) = self.members.get_mut(server) {
                            member.attached(connection, alive, now);
                        }
                    }
                }
            }
        }
    }

    /// Commits the oldest of what is prepared: the leader applies it at once, the others when
    /// [`Servers::apply`] says so. Answers what it did.
    pub(super) fn commit(&mut self, now: Now) -> Option<Committed> {
        match self.prepared.pop_front()? {
            Step::Synced { server, connection } if server == self.leads => {
                if let Some(member) = self.members.get_mut(server) {
                    member.synced(connection, now);
                }
                self.carry(server, now);
                None
            }
            Step::Synced { server, connection } => {
                if let Some(behind) = self.behind.get_mut(server) {
                    behind.push_back(Step::Synced { server, connection });
                }
                None
            }
            Step::Commit(proposal) => {
                let committed = self.record(&proposal);
                if let Some(member) = self.members.get_mut(self.leads) {
                    member.commit(&proposal, now);
                }
                self.leader.committed(&proposal.header);
                for (server, behind) in self.behind.iter_mut().enumerate() {
                    if server != self.leads {
                        behind.push_back(Step::Commit(proposal.clone()));
                    }
                }
                self.carry(self.leads, now);
                Some(committed)
            }
        }
    }

    /// A server applies the oldest of what it is behind with.
    pub(super) fn apply(&mut self, server: usize, now: Now) {
        let step = self.behind.get_mut(server).and_then(VecDeque::pop_front);
        let Some(member) = self.members.get_mut(server) else { return };
        match step {
            None => return,
            Some(Step::Commit(proposal)) => member.commit(&proposal, now),
            Some(Step::Synced { connection, .. }) => member.synced(connection, now),
        }
        self.carry(server, now);
    }

    /// Another server takes over; `keeps` of what was prepared turns out to have been committed.
    /// All connections are gone. Answers what was committed.
    pub(super) fn change_leader(&mut self, to: usize, keeps: usize, now: Now) -> Vec<Committed> {
        let mut committed = Vec::new();
        for _ in 0..keeps {
            committed.extend(self.commit(now));
        }
        self.prepared.clear();
        for server in 0..self.members.len() {
            // A new leader has all that was committed, and brings the others up to it; answers
            // find no connection any more.
            let connections: Vec<u64> = self
                .members
                .get(server)
                .map(|member| member.connections().map(|(connection, _)| connection).collect())
                .unwrap_or_default();
            for connection in connections {
                self.disconnected(server, connection);
            }
            while self.behind.get(server).is_some_and(|behind| !behind.is_empty()) {
                self.apply(server, now);
            }
        }
        self.epoch += 1;
        self.leads = to;
        if let Some(member) = self.members.get_mut(to) {
            let server = u64::try_from(to).unwrap_or(u64::MAX);
            let (options, zxid) = (leader_options(), self.epoch << 32);
            member.lead_from(zxid);
            self.leader = Leader::new(options, member.replica(), zxid, server, now);
        }
        committed
    }

    /// What is to be sent, by server.
    pub(super) fn take_deliveries(&mut self, server: usize) -> Vec<Delivery> {
        self.members.get_mut(server).map(Member::take_deliveries).unwrap_or_default()
    }

    /// How much is prepared and not committed.
    pub(super) fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// How much a server has not applied yet.
    pub(super) fn behind(&self, server: usize) -> usize {
        self.behind.get(server).map_or(0, VecDeque::len)
    }

    fn record(&mut self, proposal: &Proposal) -> Committed {
        let applied = self.truth.apply(&proposal.header, &proposal.txn);
        let mut changes = Vec::with_capacity(applied.changes.len());
        for change in applied.changes {
            let path = change.path;
            changes.push(match change.kind {
                ChangeKind::Created => {
                    let stat = self.truth.tree().stat(&path).unwrap_or_default();
                    // Containers and the like are marked by an owner that is no session.
                    Change::Created { path, ephemeral_owner: stat.ephemeral_owner.max(0) }
                }
                ChangeKind::Deleted => Change::Deleted { path },
                ChangeKind::DataChanged => Change::DataSet { path },
            });
        }
        let session = proposal.header.session_id;
        match proposal.header.op {
            OpCode::CreateSession => changes.push(Change::SessionCreated { session }),
            OpCode::CloseSession => changes.push(Change::SessionClosed { session }),
            _ => {}
        }
        What::Txn { zxid: applied.zxid, session, changes }
    }
}

/// Whether the leader answers it by a txn, which says by itself that its session has gone.
fn is_write(frame: &[u8]) -> bool {
    Frame::decode(frame).is_ok_and(|frame| matches!(frame.command, Command::Write(_)))
}

fn leader_options() -> LeaderOptions {
    LeaderOptions {
        tick_ms: TICK_MS,
        extended_types: true,
        never_used_container_ms: None,
        enforce_quota: false,
    }
}
