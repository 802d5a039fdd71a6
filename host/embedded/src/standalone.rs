//! One leader and one server in one: what a server without ensemble is. Still without I/O.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::prepare::{Leader, LeaderOptions, Proposal};
use crate::replica::Replica;
use crate::serve::{Delivery, Member, MemberOptions, Upcall};
use crate::time::Now;

/// A server without ensemble.
///
/// What clients ask is prepared at once and waits in [`Standalone::prepared`]; whoever drives it
/// writes that to a log, forces the log once for all of it, and then calls
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
    Synced { connection: u64 },
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
        Standalone { leader, member: Member::new(member, replica), queue: VecDeque::new() }
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

    /// A frame has come in, without its length. It is dropped if its session is over.
    pub fn receive(&mut self, connection: u64, frame: &[u8], now: Now) {
        if let Some(session_id) = self.member.session_of(connection)
            && !self.leader.touch(session_id, now)
        {
            return;
        }
        self.member.receive(connection, frame, now);
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

    /// Whether anything waits to be committed.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// What is prepared and must be in the log before it is committed, in order.
    pub fn prepared(&self) -> impl Iterator<Item = &Proposal> {
        self.queue.iter().filter_map(|step| match step {
            Step::Commit(proposal) => Some(proposal),
            Step::Synced { .. } => None,
        })
    }

    /// Applies and answers what is prepared, up to and including a zxid: what the log has on
    /// disk. Meanwhile more may be prepared, by clients that get their session here and now.
    pub fn commit(&mut self, through: i64, now: Now) {
        let is_due = |step: &mut Step| match step {
            Step::Commit(proposal) => proposal.header.zxid <= through,
            Step::Synced { .. } => true,
        };
        while let Some(step) = self.queue.pop_front_if(is_due) {
            match step {
                Step::Commit(proposal) => {
                    self.member.commit(&proposal, now);
                    self.leader.committed(&proposal.header);
                }
                Step::Synced { connection } => self.member.synced(connection, now),
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
                    self.member.attached(connection, is_alive, now);
                }
            }
            upcalls.extend(self.member.take_upcalls());
        }
    }
}
