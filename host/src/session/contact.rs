//! When this host was last in contact with the ensemble, as far as that proves anything.
//!
//! A session lives or dies at the ensemble's leader, and another client may hold what this session
//! held as soon as a majority has agreed on the session's end. So an answer is contact only if the
//! server that gave it could not have given it alone:
//!
//! - A follower answers reads from its own memory, also when it has lost its leader: no contact.
//! - The leader answers a `sync`, also when it is cut off and does not know it yet (ZOOKEEPER-1675).
//! - A majority has taken part in an answer to a write, also to one that was refused.
//!
//! The leader learns from a follower which sessions were alive when it pings that follower, once in
//! half a tick. A follower that is cut off right after it passed a write on has told the leader of
//! earlier requests only: of those that it had answered half a tick before that write was sent. When
//! they were sent is what counts; a request that was held up on its way, by the link or by a pause of
//! the follower, may have come to the follower just before the write did. A session lasts two ticks
//! at least, so half a tick is a quarter of the session timeout at most.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::timing::Timing;
use crate::clock::Boottime;

/// Who has taken part in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Authority {
    /// Perhaps only the server that gave it.
    Server,
    /// The leader, or who believes to be it.
    Leader,
    /// A majority of the servers.
    Quorum,
}

/// What a session may be believed in on the word of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContactRule {
    /// While it has ephemeral znodes, a majority's. A heartbeat is a transaction then.
    #[default]
    Quorum,
    /// Always the leader's. No heartbeat is a transaction, but a leader that is cut off with this
    /// host is believed until it notices.
    Leader,
}

/// When the answered requests of a session were sent.
#[derive(Debug)]
pub(super) struct Contact {
    timing: Timing,
    rule: ContactRule,
    leader: Evidence,
    quorum: Evidence,
    /// Requests that were answered, oldest first, as far back as the newest that the leader must
    /// know of. Never empty.
    told: VecDeque<Told>,
    /// How many ephemeral znodes there are, or may be.
    znodes: usize,
    /// How many of them are claimed.
    claims: usize,
}

/// A request that has kept the session alive at the server that answered it.
#[derive(Debug, Clone, Copy)]
struct Told {
    sent: Boottime,
    answered: Boottime,
}

/// What is known by the answers of one authority.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    /// When the newest answered request was sent.
    newest: Boottime,
    /// Since when the session counts: not later, and not much later than what the leader knows.
    since: Boottime,
}

impl Evidence {
    fn take(&mut self, other: Evidence) {
        self.newest = self.newest.max(other.newest);
        self.since = self.since.max(other.since);
    }
}

impl Contact {
    /// A session that was opened by a request sent at `opened`: all servers count from then.
    pub(super) fn new(timing: Timing, rule: ContactRule, opened: Boottime) -> Self {
        let evidence = Evidence { newest: opened, since: opened };
        Contact {
            timing,
            rule,
            leader: evidence,
            quorum: evidence,
            told: VecDeque::from([Told { sent: opened, answered: opened }]),
            znodes: 0,
            claims: 0,
        }
    }

    /// Goes by this rule from now on.
    pub(super) fn rule(&mut self, rule: ContactRule) {
        self.rule = rule;
    }

    pub(super) fn timing(&self) -> Timing {
        self.timing
    }

    /// The servers grant a session timeout as short as `least`: what the leader may not have been told
    /// is less than was supposed.
    pub(super) fn learn(&mut self, least: Duration) {
        self.timing = self.timing.granting(least);
    }

    /// A request sent at `sent` has been answered on this authority now.
    pub(super) fn answered(&mut self, authority: Authority, sent: Boottime, now: Boottime) {
        if authority != Authority::Server {
            let evidence = Evidence { newest: sent, since: self.bound(sent) };
            self.leader.take(evidence);
            if authority == Authority::Quorum {
                self.quorum.take(evidence);
            }
        }
        let is_spaced = self.told.back().is_none_or(|last| sent >= last.sent + self.spacing());
        if is_spaced {
            self.told.push_back(Told { sent, answered: now });
        }
    }

    /// Since when the session counts if a request sent at `sent` is answered: then, unless what the
    /// leader must know of is so old that the leader may not have heard of the session for longer
    /// than the margin allows for, as after a pause of this host, of its server, or of the link
    /// between them.
    fn bound(&mut self, sent: Boottime) -> Boottime {
        let untold = self.timing.untold();
        while self.told.get(1).is_some_and(|next| next.answered + untold <= sent) {
            self.told.pop_front();
        }
        let known = self.told.front().map_or(sent, |told| told.sent);
        sent.min(known + untold + self.timing.heartbeat())
    }

    fn spacing(&self) -> Duration {
        self.timing.heartbeat() / 2
    }

    /// Another ephemeral znode may be created from now on.
    fn stand(&mut self) {
        if self.znodes == 0 {
            // It was enough until now. Nothing is held before a write has been answered, so a
            // leader that was wrong to answer has not vouched for any claim.
            self.quorum.take(self.leader);
        }
        self.znodes += 1;
    }

    /// One is gone, or was not created.
    fn fall(&mut self) {
        self.znodes = self.znodes.saturating_sub(1);
    }

    /// Whether there is an ephemeral znode, or may be.
    pub(super) fn has_znodes(&self) -> bool {
        self.znodes > 0
    }

    /// Whether anything is held.
    pub(super) fn has_claims(&self) -> bool {
        self.claims > 0
    }

    /// On whose word the session is believed in now.
    pub(super) fn authority(&self) -> Authority {
        match self.rule {
            ContactRule::Quorum if self.znodes > 0 => Authority::Quorum,
            ContactRule::Quorum | ContactRule::Leader => Authority::Leader,
        }
    }

    fn evidence(&self) -> Evidence {
        match self.authority() {
            Authority::Quorum => self.quorum,
            Authority::Leader | Authority::Server => self.leader,
        }
    }

    /// When the newest answered request that counts was sent.
    pub(super) fn newest(&self) -> Boottime {
        self.evidence().newest
    }

    /// Since when the session counts.
    pub(super) fn since(&self) -> Boottime {
        self.evidence().since
    }

    /// Until when this host may believe in the session without hearing more.
    pub(super) fn deadline(&self) -> Boottime {
        self.since() + self.timing.patience()
    }
}

/// An ephemeral znode that exists, or may. While there is one, only a majority's word counts.
#[derive(Debug)]
pub(super) struct Standing(Arc<Mutex<Contact>>);

impl Standing {
    /// To be made before the znode's create is sent, and dropped when the znode is gone.
    pub(super) fn new(contact: &Arc<Mutex<Contact>>) -> Self {
        lock(contact).stand();
        Standing(Arc::clone(contact))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        lock(&self.0).fall();
    }
}

/// A znode that is claimed.
#[derive(Debug)]
pub(super) struct Claimed(Arc<Mutex<Contact>>);

impl Claimed {
    /// To be made when the claim is confirmed, and dropped when it is over.
    pub(super) fn new(contact: &Arc<Mutex<Contact>>) -> Self {
        lock(contact).claims += 1;
        Claimed(Arc::clone(contact))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut contact = lock(&self.0);
        contact.claims = contact.claims.saturating_sub(1);
    }
}

/// The contact that is shared with the znodes that it depends on.
pub(super) fn lock(contact: &Mutex<Contact>) -> MutexGuard<'_, Contact> {
    // No panic can leave it half changed.
    contact.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(8);
    const PATIENCE: Duration = Duration::from_secs(5);

    fn at(ms: u64) -> Boottime {
        Boottime::from_nanos(1_000_000_000) + Duration::from_millis(ms)
    }

    fn opened() -> Contact {
        let timing = Timing::new(TIMEOUT);
        assert_eq!(timing.patience(), PATIENCE);
        Contact::new(timing, ContactRule::Quorum, at(0))
    }

    /// Heartbeats as they come, and what is believed after each.
    fn beat(contact: &mut Contact, authority: Authority, from_ms: u64, until_ms: u64) {
        for ms in (from_ms..=until_ms).step_by(800) {
            contact.answered(authority, at(ms), at(ms));
            assert_eq!(contact.deadline(), at(ms) + PATIENCE, "at {ms} ms");
        }
    }

    #[test]
    fn a_server_alone_is_no_contact() {
        let mut contact = opened();
        contact.answered(Authority::Server, at(1_000), at(1_000));
        assert_eq!((contact.newest(), contact.deadline()), (at(0), at(0) + PATIENCE));
    }

    #[test]
    fn the_leader_is_believed_only_while_there_is_no_ephemeral_znode() {
        let mut contact = opened();
        beat(&mut contact, Authority::Leader, 0, 4_000);
        contact.stand();
        assert_eq!(contact.newest(), at(4_000), "what was believed is believed");
        contact.answered(Authority::Leader, at(4_800), at(4_800));
        assert_eq!(contact.newest(), at(4_000));
        contact.answered(Authority::Quorum, at(5_000), at(5_000));
        assert_eq!(contact.deadline(), at(5_000) + PATIENCE);
        contact.fall();
        contact.answered(Authority::Leader, at(5_800), at(5_800));
        assert_eq!(contact.newest(), at(5_800));
    }

    #[test]
    fn who_asks_for_it_is_content_with_the_leader() {
        let mut contact = Contact::new(Timing::new(TIMEOUT), ContactRule::Leader, at(0));
        contact.stand();
        beat(&mut contact, Authority::Leader, 0, 4_000);
    }

    #[test]
    fn heartbeats_in_time_move_the_deadline_by_as_much() {
        let mut contact = opened();
        contact.stand();
        beat(&mut contact, Authority::Quorum, 0, 80_000);
        assert!(contact.told.len() <= 6, "{:?}", contact.told);
    }

    #[test]
    fn many_requests_leave_no_more_behind_than_few() {
        let mut contact = opened();
        for ms in 0..20_000 {
            contact.answered(Authority::Quorum, at(ms), at(ms));
            assert_eq!(contact.newest(), at(ms));
            assert_eq!(contact.deadline(), at(ms) + PATIENCE);
        }
        assert!(contact.told.len() <= 8, "{:?}", contact.told);
    }

    #[test]
    fn the_first_answer_after_a_silence_counts_as_little_as_the_leader_may_know() {
        let mut contact = opened();
        contact.stand();
        beat(&mut contact, Authority::Quorum, 0, 1_600);
        // This host is paused. Its next heartbeat is answered, but the follower that passed it on
        // may be cut off before the leader's next ping.
        contact.answered(Authority::Quorum, at(6_000), at(6_000));
        assert_eq!(contact.newest(), at(6_000), "no heartbeat is due");
        let untold = TIMEOUT / 4 + TIMEOUT / 10;
        assert_eq!(contact.since(), at(1_600) + untold, "nothing is granted on it");
        assert_eq!(contact.deadline(), at(1_600) + untold + PATIENCE);
        // One that comes half a tick later passed a ping on its way.
        contact.answered(Authority::Quorum, at(8_000), at(8_000));
        assert_eq!(contact.deadline(), at(8_000) + PATIENCE);
    }

    #[test]
    fn what_was_held_up_on_its_way_counts_as_little_as_the_leader_may_know() {
        let mut contact = opened();
        contact.stand();
        beat(&mut contact, Authority::Quorum, 0, 1_600);
        // The link lets nothing pass, or the follower is paused: what is sent meanwhile comes to the
        // follower all at once, which is cut off from the leader before its next ping.
        for ms in (2_400..=5_600).step_by(800) {
            contact.answered(Authority::Quorum, at(ms), at(5_700));
        }
        let untold = TIMEOUT / 4 + TIMEOUT / 10;
        assert_eq!(contact.newest(), at(5_600), "no heartbeat is due");
        assert_eq!(contact.since(), at(1_600) + untold, "nothing is granted on it");
        assert_eq!(contact.deadline(), at(1_600) + untold + PATIENCE);
        // Half a tick after the answers the leader has been told.
        contact.answered(Authority::Quorum, at(7_600), at(7_600));
        assert_eq!(contact.deadline(), at(1_600) + untold + PATIENCE);
        contact.answered(Authority::Quorum, at(7_700), at(7_700));
        assert_eq!(contact.deadline(), at(7_700) + PATIENCE);
    }

    #[test]
    fn a_read_keeps_a_session_alive_at_its_server_and_a_majority_says_that_the_leader_knows() {
        let mut contact = opened();
        contact.stand();
        beat(&mut contact, Authority::Quorum, 0, 800);
        contact.answered(Authority::Server, at(3_000), at(3_100));
        assert_eq!(contact.newest(), at(800));
        let untold = TIMEOUT / 4 + TIMEOUT / 10;
        contact.answered(Authority::Quorum, at(5_000), at(5_000));
        assert_eq!(contact.since(), at(800) + untold);
        contact.answered(Authority::Quorum, at(5_100), at(5_100));
        assert_eq!(contact.since(), at(5_100));
    }

    #[test]
    fn answers_may_be_noted_in_another_order() {
        let mut contact = opened();
        beat(&mut contact, Authority::Quorum, 0, 4_000);
        let before = contact.deadline();
        contact.answered(Authority::Quorum, at(3_900), at(3_900));
        assert_eq!((contact.newest(), contact.deadline()), (at(4_000), before));
    }
}
