//! How a session ends whose time is over: in steps, between which other things happen.

use wok_embedded::prepare::Request;
use wok_embedded::protocol::Write;
use wok_embedded::time::Now;

use super::Servers;

/// A session that a leader has picked for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Expiry {
    server: usize,
    epoch: i64,
    session: i64,
}

impl Servers {
    /// Leaders pick the sessions whose time is over. What comes of them is heard as before.
    pub(in super::super) fn pick_expired(&mut self, now: Now) -> Vec<Expiry> {
        let mut picked = Vec::new();
        for (server, reign) in &mut self.reigns {
            let (server, epoch) = (*server, reign.epoch);
            let expired = reign.leader.pick_expired(now).into_iter();
            picked.extend(expired.map(|session| Expiry { server, epoch, session }));
        }
        picked
    }

    /// The leader refuses what comes of a session that it has picked: its writes, its way to another
    /// server, and the rest of what the leader's own clients ask for.
    pub(in super::super) fn refuse_expired(&mut self, expiry: Expiry) {
        let Expiry { server, epoch, session } = expiry;
        if let Some(reign) = self.reigns.get_mut(&server).filter(|reign| reign.epoch == epoch) {
            reign.leader.refuse(session);
        }
    }

    /// The leader proposes the end of a session that it has picked.
    pub(in super::super) fn close_expired(&mut self, expiry: Expiry, now: Now) {
        let Expiry { server, epoch, session } = expiry;
        if self.reigns.get(&server).is_some_and(|reign| reign.epoch == epoch) {
            self.prepare(server, Request::own(session, Write::CloseSession), now);
        }
    }
}
