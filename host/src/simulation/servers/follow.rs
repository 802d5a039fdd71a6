//! What passes between a leader and those that follow it, and how each finds out that it does not.

use std::sync::Arc;

use wok_embedded::serve::Upcall;
use wok_embedded::time::Now;

use super::reign::{Call, Step, Word};
use super::{Alarm, BEAT_MS, Part, Running, SILENCE_MS, Servers};

impl Servers {
    /// Hands on what a server's clients want of its leader.
    pub(super) fn carry(&mut self, server: usize, now: Now) {
        loop {
            let Some(serving) = self.servers.get_mut(server) else { return };
            let upcalls = serving.member.take_upcalls();
            if upcalls.is_empty() {
                return;
            }
            for upcall in upcalls {
                if let Upcall::Attach { connection, session_id, .. } = upcall {
                    self.asks_about(server, session_id, connection);
                }
                self.call(server, Call::Upcall(upcall), now);
            }
        }
    }

    /// A server asks its leader about a session, for this connection: no longer for one before.
    fn asks_about(&mut self, server: usize, session: i64, connection: u64) {
        let Some(asking) = self.servers.get_mut(server) else { return };
        asking.pending.insert(session, connection);
        let follows = matches!(asking.part, Part::Following { .. });
        if follows && asking.running == Running::UntilItAsks {
            self.stop(server);
        }
    }

    /// What a server asks of its leader, which may be itself, gets there, waits or is lost.
    fn call(&mut self, server: usize, call: Call, now: Now) {
        let Some(calling) = self.servers.get_mut(server) else { return };
        match calling.part {
            // Its clients are gone.
            Part::Looking => {}
            Part::Leading => self.hear(server, server, call, now),
            Part::Following { leader, .. } if !self.ways.lead(server, leader) => {
                calling.calls.push_back(call);
            }
            Part::Following { leader, epoch } => {
                if let Some(reign) = self.reigns.get_mut(&leader).filter(|it| it.epoch == epoch)
                    && let Some(heard) = reign.learners.get_mut(&server)
                {
                    *heard = now.elapsed_ms;
                    self.hear(leader, server, call, now);
                }
            }
        }
    }

    /// A leader hears what a server asks of it.
    fn hear(&mut self, leads: usize, from: usize, call: Call, now: Now) {
        if let Call::Upcall(Upcall::Sync { connection }) = call
            && from == leads
            && !self.is_writing(leads, connection)
        {
            // For its own clients it waits for nothing else.
            if let Some(leading) = self.servers.get_mut(leads) {
                leading.member.synced(connection, now);
            }
            return;
        }
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        match call {
            Call::Upcall(Upcall::Write(request)) => self.prepare(leads, request, now),
            Call::Upcall(Upcall::Sync { connection }) => {
                reign.prepared.push_back(Step::Synced { server: from, connection });
            }
            Call::Upcall(Upcall::Attach { session_id: session, timeout_ms, .. }) => {
                let owner = u64::try_from(from).unwrap_or(u64::MAX);
                let is_alive = reign.leader.attach(session, timeout_ms, owner, now);
                self.tell(leads, from, Word::Attached { session, is_alive }, now);
            }
            Call::Touches(sessions) => {
                for session in sessions {
                    // Of those that are over it has told already, or is about to.
                    let _is_known = reign.leader.touch(session, now);
                }
            }
        }
    }

    /// Whether something that a connection's session has written, by whichever connection and server,
    /// is not committed yet.
    fn is_writing(&self, leads: usize, connection: u64) -> bool {
        let session = self.servers.get(leads).and_then(|it| it.member.session_of(connection));
        let is_its = |step: &Step| match step {
            Step::Commit(proposal) => Some(proposal.header.session_id) == session,
            Step::Synced { .. } => false,
        };
        self.reigns.get(&leads).is_some_and(|reign| reign.prepared.iter().any(is_its))
    }

    /// A leader tells something to a server, which may be itself.
    pub(super) fn tell(&mut self, leads: usize, to: usize, word: Word, now: Now) {
        let epoch = self.reigns.get(&leads).map_or(0, |reign| reign.epoch);
        let Some(told) = self.servers.get_mut(to) else { return };
        let is_own = to == leads;
        if !is_own && told.part != (Part::Following { leader: leads, epoch }) {
            return;
        }
        if !is_own && !self.ways.lead(leads, to) {
            return told.words.push_back(word);
        }
        // One that was stopped reads in order, too.
        if told.running == Running::No || !told.unread.is_empty() {
            return told.unread.push_back(word);
        }
        self.read(to, word, now);
    }

    /// A server takes in what its leader, which may be itself, has told it.
    pub(super) fn read(&mut self, server: usize, word: Word, now: Now) {
        let Some(told) = self.servers.get_mut(server) else { return };
        told.heard_ms = now.elapsed_ms;
        match word {
            Word::Ping => {
                let touches = Call::Touches(std::mem::take(&mut told.touched));
                self.call(server, touches, now);
            }
            // Whether a session lives is told past all that there is to apply.
            Word::Attached { session, is_alive } => {
                // The answer to an older question may have been enough.
                if let Some(connection) = told.pending.remove(&session) {
                    told.member.attached(connection, is_alive, now);
                }
            }
            Word::End => self.look(server),
            word => told.behind.push_back(word),
        }
    }

    /// The leader closes the connection to one that follows it, which hears so when it runs.
    fn part_from(&mut self, server: usize) {
        match self.servers.get_mut(server) {
            Some(stopped) if stopped.running == Running::No => stopped.unread.push_back(Word::End),
            _ => self.look(server),
        }
    }

    /// Cuts the way from one server to another. Nobody is told.
    pub(in super::super) fn cut(&mut self, from: usize, to: usize) {
        self.ways.cut(from, to);
        self.can_settle = None;
    }

    /// Heals it: what waited arrives, unless one of the two has given the other up meanwhile.
    pub(in super::super) fn heal(&mut self, from: usize, to: usize, now: Now) {
        self.ways.heal(from, to);
        self.can_settle = None;
        if !self.ways.lead(from, to) {
            return;
        }
        // One of them may lead, or have led, the other.
        if self.follows(to, from) {
            self.bring_words(from, to, now);
        }
        if self.follows(from, to) {
            self.bring_calls(from, to, now);
        }
        self.part_with(from, to);
    }

    /// Whether one believes to follow the other, in whichever of its reigns.
    fn follows(&self, server: usize, leads: usize) -> bool {
        let part = self.servers.get(server).map(|server| server.part);
        matches!(part, Some(Part::Following { leader, .. }) if leader == leads)
    }

    /// Whether they agree that the one follows the other.
    pub(super) fn agree(&self, leads: usize, server: usize) -> bool {
        let Some(reign) = self.reigns.get(&leads) else { return false };
        let part = self.servers.get(server).map(|server| server.part);
        let follows = part == Some(Part::Following { leader: leads, epoch: reign.epoch });
        follows && reign.learners.contains_key(&server)
    }

    fn bring_words(&mut self, leads: usize, to: usize, now: Now) {
        if !self.agree(leads, to) {
            return self.part_from(to);
        }
        let proposed = self.reigns.get(&leads).map_or(0, |reign| reign.leader.last_zxid());
        let Some(told) = self.servers.get_mut(to) else { return };
        told.accepted.1 = proposed;
        if told.running != Running::No {
            told.heard_ms = now.elapsed_ms;
        }
        let words = std::mem::take(&mut told.words);
        words.into_iter().for_each(|word| self.tell(leads, to, word, now));
        self.carry(to, now);
    }

    fn bring_calls(&mut self, from: usize, leads: usize, now: Now) {
        if !self.agree(leads, from) {
            // It is told that nobody is there any more, if that gets through.
            if self.ways.lead(leads, from) {
                self.part_from(from);
            }
            return;
        }
        let Some(calling) = self.servers.get_mut(from) else { return };
        let calls = std::mem::take(&mut calling.calls);
        calls.into_iter().for_each(|call| self.call(from, call, now));
        self.carry(from, now);
    }

    /// A leader hears that one that followed it has gone.
    fn part_with(&mut self, from: usize, leads: usize) {
        let agree = self.agree(leads, from);
        if let Some(reign) = self.reigns.get_mut(&leads).filter(|_| !agree) {
            reign.learners.remove(&from);
        }
    }

    /// A leader pings those that follow it, and looks whom it has heard.
    pub(in super::super) fn beat(&mut self, leads: usize, epoch: i64, now: Now) {
        let reign = self.reigns.get_mut(&leads).filter(|reign| reign.epoch == epoch);
        let Some(reign) = reign else { return };
        reign.beats += 1;
        let is_whole_tick = reign.beats.is_multiple_of(2);
        let learners: Vec<usize> = reign.learners.keys().copied().collect();
        for learner in learners {
            self.tell(leads, learner, Word::Ping, now);
            self.miss(leads, learner, now);
        }
        let followed = self.reigns.get(&leads).map_or(0, |reign| reign.learners.len());
        if is_whole_tick && followed + 1 < self.majority() {
            return self.look(leads);
        }
        self.alarms.push((now.elapsed_ms + BEAT_MS, Alarm::Beat { server: leads, epoch }));
    }

    /// Gives one up that was silent for too long; it is told, if that gets through.
    fn miss(&mut self, leads: usize, learner: usize, now: Now) {
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        let heard = reign.learners.get(&learner).copied().unwrap_or(now.elapsed_ms);
        if now.elapsed_ms < heard + SILENCE_MS {
            return;
        }
        reign.learners.remove(&learner);
        if self.ways.lead(leads, learner) && self.follows(learner, leads) {
            self.part_from(learner);
        }
    }

    /// One that follows looks whether it has heard its leader.
    pub(in super::super) fn listen(&mut self, server: usize, epoch: i64, now: Now) {
        let Some(listening) = self.servers.get(server) else { return };
        if !matches!(listening.part, Part::Following { epoch: own, .. } if own == epoch) {
            return;
        }
        let due = match listening.running {
            // It looks when it goes on, and has read what there is to read.
            Running::No => now.elapsed_ms + BEAT_MS,
            Running::Yes | Running::UntilItAsks => listening.heard_ms + SILENCE_MS,
        };
        if due <= now.elapsed_ms {
            return self.look(server);
        }
        self.alarms.push((due, Alarm::Silence { server, epoch }));
    }

    /// A server gives up its lead, or its leader, and looks for another: its clients' connections
    /// end, and those that followed it, or that it followed, hear so, if that gets through.
    pub(super) fn look(&mut self, server: usize) {
        self.can_settle = None;
        let Some(looking) = self.servers.get_mut(server) else { return };
        let part = std::mem::replace(&mut looking.part, Part::Looking);
        looking.member.close_all();
        looking.behind.clear();
        looking.touched.clear();
        looking.pending.clear();
        looking.calls.clear();
        looking.words.clear();
        looking.unread.clear();
        match part {
            Part::Looking => {}
            Part::Leading => {
                let Some(reign) = self.reigns.remove(&server) else { return };
                for learner in reign.learners.into_keys() {
                    if self.ways.lead(server, learner) && self.follows(learner, server) {
                        self.part_from(learner);
                    }
                }
            }
            Part::Following { leader, epoch } => {
                let reign = self.reigns.get_mut(&leader).filter(|reign| reign.epoch == epoch);
                if let Some(reign) = reign.filter(|_| self.ways.lead(server, leader)) {
                    reign.learners.remove(&server);
                }
            }
        }
    }

    /// One that looks for a leader follows one that it has found, and shows all that was committed
    /// before it serves.
    pub(super) fn follow(&mut self, server: usize, leads: usize, now: Now) {
        let Some(reign) = self.reigns.get_mut(&leads) else { return };
        let Some(joining) = self.servers.get_mut(server) else { return };
        let epoch = reign.epoch;
        reign.learners.insert(server, now.elapsed_ms);
        joining.part = Part::Following { leader: leads, epoch };
        joining.heard_ms = now.elapsed_ms;
        joining.catch_up(&self.log, now);
        joining.touched.clear();
        let committed = self.log.last().map_or(0, |last: &Arc<_>| last.header.zxid);
        joining.accepted = (committed.max(epoch << 32), reign.leader.last_zxid());
        self.alarms.push((now.elapsed_ms + SILENCE_MS, Alarm::Silence { server, epoch }));
        self.can_settle = None;
    }
}
