//! How those that look for a leader find one.

use std::collections::{BTreeMap, VecDeque};

use wok_embedded::prepare::Leader;
use wok_embedded::time::Now;

use super::reign::Reign;
use super::{Alarm, BEAT_MS, Part, Servers, leader_options};
use crate::simulation::chance::Chance;

impl Servers {
    /// Whether somebody who looks for a leader would find one.
    pub(in super::super) fn can_settle(&mut self) -> bool {
        let known = self.can_settle;
        known.unwrap_or_else(|| {
            let looking = self.looking();
            let can_join = looking.iter().any(|server| self.found_by(*server).is_some());
            let votes = |server: &usize| self.voters(*server, &looking).len();
            let can = can_join || looking.iter().any(|it| votes(it) >= self.majority());
            self.can_settle = Some(can);
            can
        })
    }

    fn looking(&self) -> Vec<usize> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, it)| it.part == Part::Looking).map(|(server, _)| server).collect()
    }

    /// Of those who look for a leader, the ones that one of them reaches, itself included.
    fn voters(&self, server: usize, looking: &[usize]) -> Vec<usize> {
        let reaches = |other: &usize| *other == server || self.ways.join(server, *other);
        looking.iter().copied().filter(reaches).collect()
    }

    /// The leader that a majority tells one of who looks for it, and which it reaches.
    fn found_by(&self, server: usize) -> Option<usize> {
        let tells = |leads: usize, epoch: i64, other: usize| {
            let part = self.servers.get(other).map(|other| other.part);
            let follows = part == Some(Part::Following { leader: leads, epoch });
            let is_part = other == leads || follows;
            is_part && other != server && self.runs(other) && self.ways.join(server, other)
        };
        let mut reigns: Vec<_> = self.reigns.iter().map(|(it, reign)| (reign.epoch, *it)).collect();
        reigns.sort_unstable_by(|one, other| other.cmp(one));
        let found = reigns.into_iter().find(|(epoch, leads)| {
            let told = (0..self.count()).filter(|other| tells(*leads, *epoch, *other)).count();
            self.ways.join(server, *leads) && told >= self.majority()
        });
        found.map(|(_, leads)| leads)
    }

    /// All who look for a leader and can find or elect one do.
    pub(in super::super) fn settle(&mut self, chance: &mut Chance, now: Now) {
        self.elect(chance, now);
        // Those that were lost are back.
        if !std::mem::take(&mut self.late).is_empty() {
            self.elect(chance, now);
        }
        self.can_settle = None;
    }

    fn elect(&mut self, chance: &mut Chance, now: Now) {
        let mut voting = self.looking();
        voting.retain(|server| !self.late.contains(server));
        if let Some((winner, voters)) = self.vote(&voting, chance) {
            self.crown(winner, &voters, now);
        }
        for server in self.looking() {
            if let Some(leads) = self.found_by(server).filter(|_| !self.late.contains(&server)) {
                self.follow(server, leads, now);
            }
        }
    }

    /// Who is elected by whom: one whose disk has at least what those have who vote for it.
    fn vote(&mut self, voting: &[usize], chance: &mut Chance) -> Option<(usize, Vec<usize>)> {
        if voting.len() < self.majority() {
            return None;
        }
        let mut ballot = Vec::new();
        for server in voting {
            let (zxid, tie) = (self.find_accepted(*server, chance), chance.draw());
            ballot.push((zxid, tie, *server));
        }
        ballot.sort_unstable();
        let has: BTreeMap<usize, i64> = ballot.iter().map(|(it, _, who)| (*who, *it)).collect();
        ballot.iter().rev().find_map(|(zxid, _, winner)| {
            let mut voters = self.voters(*winner, voting);
            voters.retain(|voter| has.get(voter).is_some_and(|its| its <= zxid));
            (voters.len() >= self.majority()).then_some((*winner, voters))
        })
    }

    /// The newest proposal that is on a server's disk: of those that may have got there in time, chance
    /// decides.
    fn find_accepted(&mut self, server: usize, chance: &mut Chance) -> i64 {
        let Some(server) = self.servers.get_mut(server) else { return 0 };
        let (least, most) = server.accepted;
        if least < most {
            let between: Vec<i64> =
                self.proposed.range(least + 1..=most).map(|(zxid, _)| *zxid).collect();
            let kept = chance.within(0, u64::try_from(between.len()).unwrap_or(0));
            let kept = usize::try_from(kept).unwrap_or(0).checked_sub(1);
            let zxid = kept.and_then(|kept| between.get(kept)).copied().unwrap_or(least);
            server.accepted = (zxid, zxid);
        }
        server.accepted.0
    }

    /// A server begins to lead those that have elected it. What is on its disk of the epoch before is
    /// committed, and all sessions get their whole timeout anew.
    pub(super) fn crown(&mut self, winner: usize, voters: &[usize], now: Now) {
        let accepted = self.servers.get(winner).map_or(0, |winner| winner.accepted.0);
        let proposed = std::mem::take(&mut self.proposed);
        for (zxid, proposal) in proposed {
            if zxid <= accepted && zxid >> 32 == accepted >> 32 {
                self.enter(proposal);
            }
        }
        self.epoch += 1;
        let (epoch, zxid) = (self.epoch, self.epoch << 32);
        let Some(leading) = self.servers.get_mut(winner) else { return };
        leading.catch_up(&self.log, now);
        leading.touched.clear();
        leading.part = Part::Leading;
        leading.accepted = (zxid, zxid);
        if epoch > 1 {
            leading.member.lead_from(zxid);
        }
        let owner = u64::try_from(winner).unwrap_or(u64::MAX);
        let replica = leading.member.replica();
        let leader = Leader::new(leader_options(), replica, zxid, owner, now);
        let (prepared, learners) = (VecDeque::new(), BTreeMap::new());
        self.reigns.insert(winner, Reign { epoch, leader, prepared, learners, beats: 0 });
        self.alarms.push((now.elapsed_ms + BEAT_MS, Alarm::Beat { server: winner, epoch }));
        for voter in voters.iter().filter(|voter| **voter != winner) {
            self.follow(*voter, winner, now);
        }
    }

    /// The leader is lost, and does not come back before another is elected.
    pub(in super::super) fn lose_leader(&mut self) {
        let Some(leads) = self.leads() else { return };
        self.late.insert(leads);
        self.look(leads);
    }
}
