//! Connections of hosts: what is sent on them, how they break, and what waits while their ways are
//! cut.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Counted, Cut, Due, Inbox, Link, Sprung, State, WIRE_US};
use crate::simulation::history::{FaultKind, HostId};
use crate::simulation::recorder::Victims;

impl State {
    pub(super) fn connect(&mut self, host: HostId, server: usize) -> Option<(u64, Inbox)> {
        if !self.servers.serves(server) {
            return None;
        }
        let is_cut = self.cuts.contains_key(&(host, server));
        let (inbox, receiver) = mpsc::unbounded_channel();
        let id = self.next_link;
        self.next_link += 1;
        let now = self.now();
        if !is_cut {
            self.servers.open(server, id, now);
        }
        let (up_until, down_until) = (0, 0);
        let link = Link {
            host,
            server,
            inbox,
            up_until,
            down_until,
            // Nobody answers there, whatever becomes of the way: it is tried again.
            is_half_open: is_cut,
            is_left: false,
            breaks_at: None,
            waiting: Vec::new(),
        };
        self.links.insert(id, link);
        Some((id, receiver))
    }

    pub(super) fn send(&mut self, id: u64, frame: Bytes) {
        let (now_us, after) = (self.now_us(), self.chance.within(WIRE_US.0, WIRE_US.1));
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.is_half_open || link.is_left {
            return;
        }
        let slow = self.delay_us.get(&link.host).copied().unwrap_or(0);
        link.up_until = link.up_until.max(now_us + after + slow);
        let at_us = link.up_until;
        self.put(at_us, Due::ToServer { link: id, frame });
    }

    pub(super) fn send_request(&mut self, id: u64, xid: i32, frame: Bytes, counted: Counted) {
        let Some(host) = self.links.get(&id).map(|link| link.host) else { return };
        let mut ambushes = Vec::new();
        if counted == Counted::Yes {
            let count = self.requests.entry(host).or_insert(0);
            *count += 1;
            let waiting = self.ambushes.remove(&(host, *count));
            ambushes.extend(waiting.into_iter().flatten());
            ambushes.extend(self.next_ambushes.remove(&host).into_iter().flatten());
        }
        let is_met = |fault| ambushes.iter().any(|ambush| ambush.fault == fault);
        if is_met(FaultKind::LostBefore) {
            self.recorder.fault(FaultKind::LostBefore, Some(host), Victims::Host(host));
            self.break_links(|other, _| other == id);
        } else {
            if is_met(FaultKind::LostAfter) {
                self.recorder.fault(FaultKind::LostAfter, Some(host), Victims::Host(host));
                if let Some(link) = self.links.get_mut(&id) {
                    link.breaks_at = Some(xid);
                }
            }
            self.send(id, frame);
        }
        for ambush in ambushes.iter().filter(|ambush| !ambush.fault.is_of_a_request()) {
            // The run is over when nobody listens.
            self.sprung.send(Sprung { index: ambush.index, by: None }).ok();
        }
    }

    pub(super) fn close(&mut self, id: u64) {
        let (now_us, after) = (self.now_us(), self.chance.within(WIRE_US.0, WIRE_US.1));
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_left) else { return };
        if link.is_half_open {
            // A server never hears of a client that is gone.
            self.links.remove(&id);
            return;
        }
        link.is_left = true;
        link.up_until = link.up_until.max(now_us + after);
        let at_us = link.up_until;
        self.put(at_us, Due::Hangup { link: id });
    }

    pub(super) fn answer(&mut self, id: u64, frame: &Bytes) {
        let xid = frame.get(4..8).and_then(|xid| xid.try_into().ok()).map(i32::from_be_bytes);
        let Some(link) = self.links.get(&id) else { return };
        if link.breaks_at.is_some() && link.breaks_at == xid {
            self.break_links(|other, _| other == id);
            return;
        }
        self.send_down(id, frame);
    }

    pub(super) fn send_down(&mut self, id: u64, frame: &Bytes) {
        let (now_us, after) = (self.now_us(), self.chance.within(WIRE_US.0, WIRE_US.1));
        let Some(link) = self.links.get_mut(&id) else { return };
        let slow = self.delay_us.get(&link.host).copied().unwrap_or(0);
        link.down_until = link.down_until.max(now_us + after + slow);
        // Without its length.
        let (at_us, frame) = (link.down_until, frame.slice(4.min(frame.len())..));
        self.put(at_us, Due::ToClient { link: id, frame });
    }

    /// Something of a connection arrives, or waits for the way to be healed, or for its server to go on.
    pub(super) fn pass(&mut self, id: u64, due: Due) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_up = matches!(due, Due::ToServer { .. } | Due::Hangup { .. });
        let is_unread = is_up && self.servers.is_stopped(link.server);
        if is_unread || self.cuts.contains_key(&(link.host, link.server)) {
            return link.waiting.push(due);
        }
        match due {
            Due::ToServer { frame, .. } => {
                let server = link.server;
                let now = self.now();
                self.servers.receive(server, id, &frame, now);
            }
            Due::ToClient { frame, .. } if !link.is_half_open => {
                // A client that is gone reads nothing.
                link.inbox.send(frame).ok();
            }
            Due::Hangup { .. } => {
                if let Some(link) = self.links.remove(&id) {
                    self.servers.disconnected(link.server, id);
                }
            }
            Due::Closed { .. } => drop(self.links.remove(&id)),
            _ => {}
        }
    }

    pub(super) fn cut(&mut self, cut: &Cut) {
        for (from, to) in &cut.servers {
            self.servers.cut(*from, *to);
        }
        for way in &cut.hosts {
            *self.cuts.entry(*way).or_insert(0) += 1;
        }
    }

    pub(super) fn heal(&mut self, cut: &Cut) {
        let now = self.now();
        for (from, to) in &cut.servers {
            self.servers.heal(*from, *to, now);
        }
        for way in &cut.hosts {
            let Some(cuts) = self.cuts.get_mut(way) else { continue };
            *cuts -= 1;
            if *cuts == 0 {
                self.cuts.remove(way);
                self.bring(|link| (link.host, link.server) == *way);
            }
        }
    }

    /// What waited on some connections arrives, if nothing else is in its way.
    pub(super) fn bring(&mut self, is_meant: impl Fn(&Link) -> bool) {
        let links = self.links.iter_mut().filter(|(_, link)| is_meant(link));
        let waiting: Vec<(u64, Vec<Due>)> =
            links.map(|(id, link)| (*id, std::mem::take(&mut link.waiting))).collect();
        for (id, dues) in waiting {
            dues.into_iter().for_each(|due| self.pass(id, due));
        }
    }

    /// Both ends learn of it now.
    pub(super) fn break_links(&mut self, is_meant: impl Fn(u64, &Link) -> bool) {
        let broken: Vec<u64> = self
            .links
            .iter()
            .filter(|(id, link)| is_meant(**id, link))
            .map(|(id, _)| *id)
            .collect();
        for id in broken {
            if let Some(link) = self.links.remove(&id) {
                self.servers.disconnected(link.server, id);
            }
        }
    }
}
