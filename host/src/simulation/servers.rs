//! The simulated ensemble: servers that lead, follow or look for a leader, and are more or less
//! behind, made of the parts of the embedded server. What passes between two of them can be cut; a
//! leader that is cut off does not know it. One that follows can be stopped, and goes on later. No
//! network of clients and no time of its own: [`super::network`] drives it.
//!
//! As in Apache ZooKeeper, a session is kept alive at its leader, which hears of clients of the
//! others only in their answers to its pings, two in a tick. Requests that are handed on to it touch
//! no session.
//!
//! A server to which a session's client comes asks its leader whether the session is valid, and the
//! leader counts the session from then (`Learner.validateSession`, `Leader.revalidateSession`). Both
//! the question and the answer name the session, not the connection: of several connections of a
//! session the newest is accepted on the first answer that comes, though that may be the answer to
//! what was asked for an older one (`Learner.pendingRevalidations`). A leader that is cut off answers,
//! too.
//!
//! A session whose time is over ends in four steps (`SessionTrackerImpl.run`): the leader picks it
//! with all others of that tick; then refuses what comes of it, one session after the other; then
//! proposes its end, behind what it had to do before; and commits that, when a majority has it. Until
//! the second step the leader takes the session for one that lives, and it ends all the same. A
//! server that follows serves its clients until it hears of the end.

mod election;
mod expiry;
mod follow;
mod reign;
mod stops;
mod ways;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use wok_embedded::ServerVersion;
use wok_embedded::prepare::{Leader, LeaderOptions, Proposal, Request};
use wok_embedded::protocol::{Acl, Command, Create, ErrorCode, Frame, OpCode, Write};
use wok_embedded::replica::{ChangeKind, Replica};
use wok_embedded::serve::{Delivery, Member, MemberOptions};
use wok_embedded::session::{Passwords, SessionIds};
use wok_embedded::time::Now;
use wok_embedded::tree::{Node, NodeStat, Tree};

use super::clock::BEGIN_WALL_MS;
use super::history::{Change, Data, What};
pub(super) use expiry::Expiry;
use reign::{Call, Reign, Step, Word};
use stops::Running;
use ways::Ways;

/// The length of the ensemble's tick.
pub(super) const TICK_MS: u64 = 500;

/// The shortest session timeout that the servers grant: Apache ZooKeeper's default.
pub(crate) const MIN_SESSION_TIMEOUT_MS: u64 = 2 * TICK_MS;

/// For how many ticks two servers may hear nothing of each other: Apache ZooKeeper's default.
const SYNC_LIMIT: u64 = 5;

/// How long two servers go on with each other though nothing is heard.
pub(super) const SILENCE_MS: u64 = SYNC_LIMIT * TICK_MS;

/// How often a leader pings those that follow it.
const BEAT_MS: u64 = TICK_MS / 2;

/// The session of another program. The servers count theirs from numbers that are far larger.
pub(super) const FOREIGN_SESSION: i64 = 1;

/// The servers of an ensemble.
#[derive(Debug)]
pub(super) struct Servers {
    servers: Vec<Server>,
    /// By the server that leads, or believes so.
    reigns: BTreeMap<usize, Reign>,
    ways: Ways,
    /// Of the newest leader.
    epoch: i64,
    /// Proposed since the newest leader began, and not known to be committed.
    proposed: BTreeMap<i64, Arc<Proposal>>,
    /// What has been committed, in order.
    log: Vec<Arc<Proposal>>,
    /// The same as a state: the one that nobody can take back.
    truth: Replica,
    /// Was lost, and is not back in time to be elected.
    late: BTreeSet<usize>,
    /// Whether somebody who looks for a leader would find one; unknown once something has changed.
    can_settle: Option<bool>,
    committed: Vec<Committed>,
    alarms: Vec<(u64, Alarm)>,
}

/// A server.
#[derive(Debug)]
struct Server {
    member: Member,
    part: Part,
    /// How much of the log its replica shows.
    applied: usize,
    /// What it has heard of its leader, and not done yet.
    behind: VecDeque<Word>,
    /// The newest proposal that it has on its disk for certain, and the newest that it may have.
    accepted: (i64, i64),
    /// The sessions whose clients it has heard since the last ping.
    touched: BTreeSet<i64>,
    /// By session: the connection that is accepted when its leader says that the session is valid.
    pending: BTreeMap<i64, u64>,
    /// When it heard its leader last, in milliseconds.
    heard_ms: u64,
    /// What waits for the way to its leader, and from there, to be healed.
    calls: VecDeque<Call>,
    words: VecDeque<Word>,
    running: Running,
    /// What has come from its leader since it was stopped.
    unread: VecDeque<Word>,
}

/// What a server is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Leading,
    /// Whom, and since which of its reigns.
    Following {
        leader: usize,
        epoch: i64,
    },
    /// It looks for a leader, and serves nobody.
    Looking,
}

/// Something to be looked at when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alarm {
    /// A leader pings those that follow it.
    Beat { server: usize, epoch: i64 },
    /// One that follows looks whether it has heard its leader.
    Silence { server: usize, epoch: i64 },
}

/// A txn was committed: what it did, for the history.
pub(super) type Committed = What;

impl Servers {
    /// An ensemble in which `parents` exist, whose counters are at `counter`. The first leads.
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
            Replica::restored(tree, BTreeMap::new(), 1)
        };
        let server = |server: usize| {
            let id = u8::try_from(server).unwrap_or(u8::MAX);
            let options = MemberOptions {
                server_id: u64::from(id),
                min_session_timeout_ms: i32::try_from(MIN_SESSION_TIMEOUT_MS).unwrap_or(i32::MAX),
                max_session_timeout_ms: 40_000,
                version,
                super_digest: None,
                passwords: Passwords::Secret([7; 32]),
                session_ids: SessionIds::new(id, i64::try_from(BEGIN_WALL_MS).unwrap_or(0)),
            };
            Server {
                member: Member::new(options, replica()),
                part: Part::Looking,
                applied: 0,
                behind: VecDeque::new(),
                accepted: (0, 0),
                touched: BTreeSet::new(),
                pending: BTreeMap::new(),
                heard_ms: 0,
                calls: VecDeque::new(),
                words: VecDeque::new(),
                running: Running::Yes,
                unread: VecDeque::new(),
            }
        };
        let mut servers = Servers {
            servers: (0..count).map(server).collect(),
            reigns: BTreeMap::new(),
            ways: Ways::default(),
            epoch: 0,
            proposed: BTreeMap::new(),
            log: Vec::new(),
            truth: replica(),
            late: BTreeSet::new(),
            can_settle: None,
            committed: Vec::new(),
            alarms: Vec::new(),
        };
        let others: Vec<usize> = (0..count).collect();
        servers.crown(0, &others, Now { elapsed_ms: 0, wall_ms: 0 });
        servers
    }

    pub(super) fn count(&self) -> usize {
        self.servers.len()
    }

    fn majority(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    /// The server that leads; of several that believe so, the one that was elected last.
    pub(super) fn leads(&self) -> Option<usize> {
        self.reigns.iter().max_by_key(|(_, reign)| reign.epoch).map(|(server, _)| *server)
    }

    /// Whether one leads and all others follow it.
    pub(super) fn is_whole(&self) -> bool {
        let mut leaders = self.reigns.keys();
        let (Some(leads), None) = (leaders.next(), leaders.next()) else { return false };
        (0..self.count()).all(|server| server == *leads || self.agree(*leads, server))
    }

    /// Whether clients can connect to a server.
    pub(super) fn serves(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(|server| server.part != Part::Looking)
    }

    /// What has been committed.
    pub(super) fn truth(&self) -> &Replica {
        &self.truth
    }

    /// What has been committed since last asked.
    pub(super) fn take_committed(&mut self) -> Vec<Committed> {
        std::mem::take(&mut self.committed)
    }

    /// What is to be looked at later, and when, in milliseconds, since last asked.
    pub(super) fn take_alarms(&mut self) -> Vec<(u64, Alarm)> {
        std::mem::take(&mut self.alarms)
    }

    pub(super) fn open(&mut self, server: usize, connection: u64, now: Now) {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        if let Some(server) = self.servers.get_mut(server) {
            server.member.open(connection, address, now);
        }
    }

    pub(super) fn disconnected(&mut self, server: usize, connection: u64) {
        if let Some(server) = self.servers.get_mut(server) {
            server.member.disconnected(connection);
        }
    }

    /// A frame has come in.
    pub(super) fn receive(&mut self, server: usize, connection: u64, frame: &[u8], now: Now) {
        let Some(serving) = self.servers.get_mut(server) else { return };
        if let Some(session) = serving.member.session_of(connection) {
            match self.reigns.get_mut(&server) {
                Some(reign) => {
                    if !reign.leader.touch(session, now) {
                        return;
                    }
                    if has_moved(&reign.leader, session, server) && !is_write(frame) {
                        return serving.member.moved(connection, now);
                    }
                }
                // A follower serves a client that is connected to it until the follower hears of
                // the session's end.
                None => drop(serving.touched.insert(session)),
            }
        }
        serving.member.receive(connection, frame, now);
        self.carry(server, now);
    }

    /// Leaders remove empty containers.
    pub(super) fn sweep(&mut self, now: Now) {
        let leaders: Vec<usize> = self.reigns.keys().copied().collect();
        for server in leaders {
            let (Some(reign), Some(leading)) =
                (self.reigns.get_mut(&server), self.servers.get(server))
            else {
                continue;
            };
            for proposal in reign.leader.sweep(leading.member.replica(), now) {
                self.propose(server, proposal);
            }
        }
    }

    /// Ends a session whose client is well.
    pub(super) fn close_session(&mut self, session: i64, now: Now) {
        let Some(leads) = self.leads() else { return };
        self.prepare(leads, Request::own(session, Write::CloseSession), now);
    }

    /// Another program's client, of a session that is nobody's here, creates a znode. It is refused where
    /// there is no znode above it.
    pub(super) fn create_foreign(&mut self, path: String, data: &[u8], now: Now) {
        let Some(leads) = self.leads() else { return };
        let create = Create {
            op: OpCode::Create,
            path,
            data: Some(Bytes::copy_from_slice(data)),
            acl: Acl::open().to_vec(),
            flags: 0,
            ttl_ms: -1,
        };
        self.prepare(leads, Request::own(FOREIGN_SESSION, Write::Create(create)), now);
    }

    fn prepare(&mut self, leads: usize, request: Request, now: Now) {
        let (Some(reign), Some(leading)) = (self.reigns.get_mut(&leads), self.servers.get(leads))
        else {
            return;
        };
        let proposal = reign.leader.prepare(leading.member.replica(), request, now);
        self.propose(leads, proposal);
    }

    /// A leader proposes a txn to those that follow it.
    fn propose(&mut self, leads: usize, proposal: Proposal) {
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        let (zxid, proposal) = (proposal.header.zxid, Arc::new(proposal));
        self.proposed.insert(zxid, Arc::clone(&proposal));
        reign.prepared.push_back(Step::Commit(proposal));
        if let Some(leading) = self.servers.get_mut(leads) {
            leading.accepted = (zxid, zxid);
        }
        for learner in reign.learners.keys() {
            if let Some(learning) = self.servers.get_mut(*learner)
                && learning.part == (Part::Following { leader: leads, epoch: reign.epoch })
                && self.ways.lead(leads, *learner)
            {
                learning.accepted.1 = zxid;
            }
        }
    }

    /// How much a leader has prepared that it can commit now.
    pub(super) fn ready(&self, server: usize) -> usize {
        let Some(reign) = self.reigns.get(&server) else { return 0 };
        match reign.prepared.front() {
            None => 0,
            Some(Step::Commit(_)) if !self.has_quorum(server, reign) => 0,
            Some(_) => reign.prepared.len(),
        }
    }

    /// Whether a majority has what a leader proposes, and it knows that.
    fn has_quorum(&self, leads: usize, reign: &Reign) -> bool {
        self.in_touch(leads, reign).count() + 1 >= self.majority()
    }

    /// Those that follow a leader and run, and the two hear each other.
    fn in_touch<'a>(&'a self, leads: usize, reign: &'a Reign) -> impl Iterator<Item = usize> + 'a {
        let part = Part::Following { leader: leads, epoch: reign.epoch };
        let follows =
            move |server: usize| self.servers.get(server).is_some_and(|it| it.part == part);
        let learners = reign.learners.keys().copied();
        learners.filter(move |it| follows(*it) && self.runs(*it) && self.ways.join(leads, *it))
    }

    /// A leader does the oldest of what it has prepared: it applies a txn at once, the others when
    /// [`Servers::apply`] says so.
    pub(super) fn commit(&mut self, leads: usize, now: Now) {
        if self.ready(leads) == 0 {
            return;
        }
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        match reign.prepared.pop_front() {
            None => {}
            Some(Step::Synced { server, connection }) if server == leads => {
                if let Some(leading) = self.servers.get_mut(leads) {
                    leading.member.synced(connection, now);
                }
            }
            Some(Step::Synced { server, connection }) => {
                self.tell(leads, server, Word::Synced { connection }, now);
            }
            Some(Step::Commit(proposal)) => self.commit_txn(leads, proposal, now),
        }
        self.carry(leads, now);
    }

    fn commit_txn(&mut self, leads: usize, proposal: Arc<Proposal>, now: Now) {
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        reign.leader.committed(&proposal.header);
        let learners: Vec<usize> = reign.learners.keys().copied().collect();
        let zxid = proposal.header.zxid;
        self.enter(Arc::clone(&proposal));
        if let Some(leading) = self.servers.get_mut(leads) {
            leading.member.commit(&proposal, now);
            leading.applied = self.log.len();
        }
        for learner in learners {
            if self.ways.join(leads, learner)
                && self.runs(learner)
                && let Some(learning) = self.servers.get_mut(learner)
            {
                learning.accepted = (learning.accepted.0.max(zxid), learning.accepted.1.max(zxid));
            }
            self.tell(leads, learner, Word::Commit, now);
        }
    }

    /// Enters what was committed into the log.
    fn enter(&mut self, proposal: Arc<Proposal>) {
        self.proposed.remove(&proposal.header.zxid);
        let committed = self.record(&proposal);
        self.committed.push(committed);
        self.log.push(proposal);
    }

    /// A server does the oldest of what it is behind with.
    pub(super) fn apply(&mut self, server: usize, now: Now) {
        let Some(behind) = self.servers.get_mut(server) else { return };
        if behind.running == Running::No {
            return;
        }
        match behind.behind.pop_front() {
            Some(Word::Commit) => behind.apply_next(&self.log, now),
            Some(Word::Synced { connection }) => behind.member.synced(connection, now),
            // Nobody is behind with any other.
            _ => return,
        }
        self.carry(server, now);
    }

    /// What is to be sent, by server.
    pub(super) fn take_deliveries(&mut self, server: usize) -> Vec<Delivery> {
        self.servers.get_mut(server).map(|it| it.member.take_deliveries()).unwrap_or_default()
    }

    /// How much a server has not applied yet.
    pub(super) fn behind(&self, server: usize) -> usize {
        self.servers.get(server).map_or(0, |server| server.behind.len())
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
                    let ephemeral_owner = stat.ephemeral_owner.max(0);
                    let data = data_of(self.truth.tree(), &path);
                    Change::Created { path, ephemeral_owner, data }
                }
                ChangeKind::Deleted => Change::Deleted { path },
                ChangeKind::DataChanged => {
                    let version = self.truth.tree().stat(&path).unwrap_or_default().version;
                    let data = data_of(self.truth.tree(), &path);
                    Change::DataSet { path, version, data }
                }
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

impl Server {
    /// Applies the next txn of the log. One that follows takes a new session for one that it has
    /// heard.
    fn apply_next(&mut self, log: &[Arc<Proposal>], now: Now) {
        let Some(proposal) = log.get(self.applied) else { return };
        self.applied += 1;
        self.member.commit(proposal, now);
        let session = proposal.header.session_id;
        match proposal.header.op {
            OpCode::CreateSession => drop(self.touched.insert(session)),
            OpCode::CloseSession => drop(self.touched.remove(&session)),
            _ => {}
        }
    }

    /// Has its replica show all of the log.
    fn catch_up(&mut self, log: &[Arc<Proposal>], now: Now) {
        self.behind.clear();
        while self.applied < log.len() {
            self.apply_next(log, now);
        }
    }
}

/// What a znode holds; nothing if the rest of its txn has deleted it.
fn data_of(tree: &Tree, path: &str) -> Data {
    tree.get(path).and_then(Node::data).map_or_else(Data::default, |data| data.to_vec().into())
}

/// Whether a session's client has gone to another server.
fn has_moved(leader: &Leader, session: i64, server: usize) -> bool {
    let owner = u64::try_from(server).unwrap_or(u64::MAX);
    leader.sessions().check(session, owner) == Err(ErrorCode::SessionMoved)
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

#[cfg(test)]
mod tests;
