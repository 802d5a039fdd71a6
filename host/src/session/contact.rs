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
//! half a tick. What a follower passes on tells the leader nothing of the session that sent it, so a
//! follower that is cut off right after it passed a write on leaves a leader that may have heard of
//! the session last before a long silence. Three answers in a row show what the leader knows:
//!
//! 1. a request that the follower has answered, whatever it was: the follower heard of the session
//!    when it was sent, or later;
//! 2. one for which the leader was asked, sent half a tick after that answer: before the leader's
//!    answer to it comes a ping that the leader sent after the first one was answered, and the
//!    follower answers the ping when it comes;
//! 3. one for which the leader was asked, sent after the second one was answered: on its way to the
//!    leader it is behind the follower's answer to the ping. That the leader has answered it tells
//!    that the leader had heard of the session by then, as of the first request.
//!
//! All rests on the order in which one connection carries what is sent over it, and on no link's
//! speed. After a change of the leader all sessions start afresh. A server that takes a session
//! over on a new connection tells the leader of the session ahead of all that it passes on from
//! there. Where the leader may be ending the session already, as after a sleep of this machine, a
//! `sync` does not do for the third answer: the leader answers a `sync` also for a session that
//! it is ending, and refuses a write.

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
    /// When the newest request was sent that the leader has answered, and a majority.
    newest: Newest,
    /// As of when the leader is known to have heard of the session.
    known: Boottime,
    /// Requests that were answered, oldest first, as far back as the newest that the server was
    /// pinged after. Never empty.
    answered: VecDeque<Answered>,
    /// Answers of the leader that came behind a ping, oldest first.
    pinged: VecDeque<Pinged>,
    /// The newest takeover of the session by a server, until it is known that the leader has heard of it.
    takeover: Option<Takeover>,
    /// How many ephemeral znodes there are, or may be.
    znodes: usize,
    /// How many of them are claimed.
    claims: usize,
}

/// A request that has kept the session alive at the server that answered it.
#[derive(Debug, Clone, Copy)]
struct Answered {
    sent: Boottime,
    at: Boottime,
}

/// An answer of the leader that came behind a ping of its server.
#[derive(Debug, Clone, Copy)]
struct Pinged {
    at: Boottime,
    /// When the newest request was sent that the server's answer to that ping must have told of.
    told: Boottime,
}

/// A server has taken the session over.
#[derive(Debug, Clone, Copy)]
struct Takeover {
    /// It was asked to after that, where a moment is known.
    stood: Option<Boottime>,
    /// It had done so by then.
    at: Boottime,
}

/// They reach back for three quarters of the session timeout, which is a tick at least.
const MOST_PINGED: usize = 32;

/// When the newest request was sent that was answered on an authority.
#[derive(Debug, Clone, Copy)]
struct Newest {
    leader: Boottime,
    quorum: Boottime,
}

impl Contact {
    /// A session that was opened by a request sent at `opened`: all servers count from then.
    pub(super) fn new(timing: Timing, rule: ContactRule, opened: Boottime) -> Self {
        Contact {
            timing,
            rule,
            newest: Newest { leader: opened, quorum: opened },
            known: opened,
            answered: VecDeque::from([Answered { sent: opened, at: opened }]),
            pinged: VecDeque::new(),
            takeover: None,
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
        self.note_takeover(authority, sent, now);
        if authority != Authority::Server {
            self.newest.leader = self.newest.leader.max(sent);
            self.note_known(authority, sent, now);
            self.note_pinged(sent, now);
        }
        if authority == Authority::Quorum {
            self.newest.quorum = self.newest.quorum.max(sent);
        }
        let is_spaced = self.answered.back().is_none_or(|last| sent >= last.sent + self.spacing());
        if is_spaced {
            self.answered.push_back(Answered { sent, at: now });
        }
    }

    /// The third of the three answers: the leader knows what a ping's answer before it told.
    ///
    /// Once the session's time may be over, the leader may have picked it for its end before it was
    /// told. It refuses the session's writes as soon as the end is under way, which takes no tick.
    fn note_known(&mut self, authority: Authority, sent: Boottime, now: Boottime) {
        let may_be_ending = now >= self.known + self.timing.timeout();
        let wait = match (may_be_ending, authority) {
            (false, _) => Duration::ZERO,
            (true, Authority::Quorum) => self.timing.untold() * 2,
            (true, _) => return,
        };
        while let Some(pinged) = self.pinged.pop_front_if(|pinged| pinged.at + wait <= sent) {
            self.known = self.known.max(pinged.told);
        }
    }

    /// The second of them: a ping came between that of the first and this one.
    fn note_pinged(&mut self, sent: Boottime, now: Boottime) {
        let pinged_by = |first: &Answered, timing: Timing| first.at + timing.ping() <= sent;
        while self.answered.get(1).is_some_and(|next| pinged_by(next, self.timing)) {
            self.answered.pop_front();
        }
        let told = self.answered.front().filter(|first| pinged_by(first, self.timing));
        let newest = self.pinged.back().map_or(self.known, |pinged| pinged.told);
        if let Some(told) = told.map(|first| first.sent).filter(|told| *told > newest) {
            // Where no write is asked for, nobody asks what the leader knows of a session that may be
            // ending, and the newest few are enough for when somebody does.
            if self.pinged.len() >= MOST_PINGED {
                self.pinged.pop_front();
            }
            self.pinged.push_back(Pinged { at: now, told });
        }
    }

    /// As often as anything is sent where a link is slow.
    fn spacing(&self) -> Duration {
        self.timing.reminder()
    }

    /// A server has taken the session over by `now`, on a connection that was asked for after `stood`, where
    /// that is known. What that server passes on from now on is behind its question whether the session is
    /// valid, by which the leader hears of the session (`Leader.revalidateSession` of Apache's server, which
    /// followers and observers ask, and `ZooKeeperServer.revalidateSession` where the leader takes it over
    /// itself).
    ///
    /// That the session was accepted proves less: the answer to an older question may have come late, and a
    /// leader that is cut off answers as well.
    pub(super) fn taken_over(&mut self, stood: Option<Boottime>, now: Boottime) {
        self.takeover = Some(Takeover { stood, at: now });
    }

    /// Whether the server that has taken the session over may be behind what the session was told before. A
    /// client tells the server how far it has read, but not which events it has heard.
    pub(super) fn may_be_behind(&self) -> bool {
        self.takeover.is_some()
    }

    /// An answer that only the leader can have given shows that it has heard of the takeover before.
    fn note_takeover(&mut self, authority: Authority, sent: Boottime, now: Boottime) {
        let of_the_leader = match self.rule {
            ContactRule::Quorum => Authority::Quorum,
            ContactRule::Leader => Authority::Leader,
        };
        let is_behind = |takeover: &mut Takeover| sent >= takeover.at;
        if authority < of_the_leader {
            return;
        }
        let Some(Takeover { stood, .. }) = self.takeover.take_if(is_behind) else { return };
        let Some(stood) = stood else { return };
        // A session that may be ending may have been picked for its end just before.
        if now < self.known + self.timing.timeout() {
            self.known = self.known.max(stood);
        }
    }

    /// Another ephemeral znode may be created from now on.
    fn stand(&mut self) {
        if self.znodes == 0 {
            // It was enough until now. Nothing is held before a write has been answered, so a
            // leader that was wrong to answer has not vouched for any claim.
            self.newest.quorum = self.newest.quorum.max(self.newest.leader);
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

    /// When the newest answered request that counts was sent.
    pub(super) fn newest(&self) -> Boottime {
        match self.authority() {
            Authority::Quorum => self.newest.quorum,
            Authority::Leader | Authority::Server => self.newest.leader,
        }
    }

    /// Since when the session counts: since that request, unless what the leader must know of is so old
    /// that the leader may not have heard of the session for longer than the margin allows for, as
    /// after a pause of this host, of its server, or of a link between this host and the leader.
    pub(super) fn since(&self) -> Boottime {
        self.newest().min(self.known + self.timing.untold() + self.timing.heartbeat())
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
    const UNTOLD: Duration = Duration::from_secs(2);
    const HEARTBEAT: Duration = Duration::from_millis(800);

    fn at(ms: u64) -> Boottime {
        Boottime::from_nanos(1_000_000_000) + Duration::from_millis(ms)
    }

    fn opened() -> Contact {
        let timing = Timing::new(TIMEOUT);
        assert_eq!((timing.patience(), timing.heartbeat()), (PATIENCE, HEARTBEAT));
        Contact::new(timing, ContactRule::Quorum, at(0))
    }

    /// A heartbeat whose answer and that of the `sync` behind it take no time.
    fn beat(contact: &mut Contact, authority: Authority, ms: u64) {
        contact.answered(authority, at(ms), at(ms));
        contact.answered(Authority::Leader, at(ms), at(ms));
    }

    /// Heartbeats as they come, and what is believed after each.
    fn beats(contact: &mut Contact, authority: Authority, from_ms: u64, until_ms: u64) {
        for ms in (from_ms..=until_ms).step_by(800) {
            beat(contact, authority, ms);
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
        beats(&mut contact, Authority::Leader, 0, 4_000);
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
        beats(&mut contact, Authority::Leader, 0, 4_000);
    }

    #[test]
    fn heartbeats_in_time_move_the_deadline_by_as_much() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 80_000);
        let (answered, pinged) = (contact.answered.len(), contact.pinged.len());
        assert!(answered <= 6 && pinged <= 1, "{answered} {pinged}");
    }

    #[test]
    fn a_link_on_which_an_answer_takes_half_a_heartbeat_costs_nothing() {
        let mut contact = opened();
        contact.stand();
        for ms in (0..=80_000).step_by(800) {
            contact.answered(Authority::Quorum, at(ms), at(ms + 400));
            contact.answered(Authority::Leader, at(ms + 400), at(ms + 800));
            assert_eq!(contact.deadline(), at(ms) + PATIENCE);
        }
    }

    #[test]
    fn many_requests_leave_no_more_behind_than_few() {
        let mut contact = opened();
        for ms in 0..20_000 {
            contact.answered(Authority::Quorum, at(ms), at(ms));
            assert_eq!(contact.newest(), at(ms));
            assert_eq!(contact.deadline(), at(ms) + PATIENCE);
        }
        let (answered, pinged) = (contact.answered.len(), contact.pinged.len());
        assert!(answered <= 16 && pinged <= 1, "{answered} {pinged}");
    }

    #[test]
    fn the_first_answers_after_a_silence_count_as_little_as_the_leader_may_know() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        // This host is paused. Its next heartbeat is answered, but the follower that passed it on
        // may be cut off before the leader's next ping.
        beat(&mut contact, Authority::Quorum, 6_000);
        assert_eq!(contact.newest(), at(6_000), "no heartbeat is due");
        assert_eq!(contact.since(), at(1_600) + UNTOLD + HEARTBEAT, "nothing is granted on it");
        // Behind the answer to one that comes half a tick later there was a ping; what is sent then is
        // behind the answer to the ping.
        contact.answered(Authority::Quorum, at(8_200), at(8_210));
        assert_eq!(contact.since(), at(1_600) + UNTOLD + HEARTBEAT);
        contact.answered(Authority::Leader, at(8_210), at(8_220));
        assert_eq!(contact.deadline(), at(8_200) + PATIENCE);
    }

    #[test]
    fn a_leader_that_may_be_ending_the_session_is_believed_when_it_has_carried_out_a_write_a_tick_later()
     {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        // This host comes back just before its session is picked for its end, at 10,000 or a little later.
        for ms in (9_000..=12_200).step_by(800) {
            beat(&mut contact, Authority::Quorum, ms);
            assert_eq!(contact.since(), at(0) + UNTOLD + HEARTBEAT, "at {ms} ms");
        }
        // A `sync` is answered also for a session that is being ended.
        contact.answered(Authority::Leader, at(15_900), at(15_900));
        assert_eq!(contact.since(), at(0) + UNTOLD + HEARTBEAT);
        contact.answered(Authority::Quorum, at(15_900), at(15_900));
        assert!(contact.since() > at(9_000), "{:?}", contact.since());
    }

    #[test]
    fn a_session_of_which_nothing_stands_remembers_little_however_long_it_is_idle() {
        let mut contact = opened();
        for ms in (20_000..=900_000).step_by(800) {
            beat(&mut contact, Authority::Leader, ms);
            assert!(contact.pinged.len() <= MOST_PINGED && contact.answered.len() <= 8);
        }
        assert_eq!(contact.since(), at(0) + UNTOLD + HEARTBEAT);
        contact.stand();
        for ms in [900_100, 900_200] {
            contact.answered(Authority::Quorum, at(ms), at(ms));
        }
        assert_eq!(contact.since(), at(900_200));
    }

    #[test]
    fn while_pings_do_not_come_through_what_the_leader_answers_tells_nothing_of_what_it_knows() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        // After a pause of this host, what the leader sends comes to the follower for a moment, and then
        // no more; what the follower passes on goes on coming to the leader.
        beat(&mut contact, Authority::Quorum, 6_000);
        for ms in [6_800, 7_600, 8_400, 9_200] {
            contact.answered(Authority::Quorum, at(ms), at(9_500));
        }
        assert_eq!(contact.newest(), at(9_200));
        assert_eq!(contact.since(), at(1_600) + UNTOLD + HEARTBEAT);
        contact.answered(Authority::Leader, at(9_500), at(9_501));
        assert_eq!(contact.since(), at(6_000) + UNTOLD + HEARTBEAT);
    }

    #[test]
    fn what_was_held_up_on_its_way_counts_as_little_as_the_leader_may_know() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        // The link lets nothing pass, or the follower is paused: what is sent meanwhile comes to the
        // follower all at once, which is cut off from the leader before its next ping.
        for ms in (2_400..=5_600).step_by(800) {
            contact.answered(Authority::Quorum, at(ms), at(5_700));
        }
        contact.answered(Authority::Leader, at(5_700), at(5_700));
        assert_eq!(contact.newest(), at(5_600), "no heartbeat is due");
        assert_eq!(contact.since(), at(1_600) + UNTOLD + HEARTBEAT, "nothing is granted on it");
        // Half a tick after the answers, and what a leader may be late, the leader has been told.
        beat(&mut contact, Authority::Quorum, 7_800);
        assert_eq!(contact.since(), at(1_600) + UNTOLD + HEARTBEAT);
        beat(&mut contact, Authority::Quorum, 7_900);
        assert_eq!(contact.deadline(), at(7_900) + PATIENCE);
    }

    #[test]
    fn what_a_new_server_passes_on_is_behind_its_word_of_the_session_to_the_leader() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        contact.taken_over(Some(at(4_800)), at(6_000));
        assert_eq!(contact.since(), at(1_600), "that is no contact");
        // A leader that is cut off answers a `sync`; and what was sent before may have gone to the server
        // before this one.
        contact.answered(Authority::Leader, at(6_000), at(6_000));
        contact.answered(Authority::Quorum, at(5_999), at(6_000));
        // What a majority said of requests from before that server may count, but no further than this.
        assert!(contact.since() <= at(1_600) + UNTOLD + HEARTBEAT, "{:?}", contact.since());
        contact.answered(Authority::Quorum, at(6_000), at(6_000));
        assert_eq!(contact.since(), at(6_000));
        contact.answered(Authority::Quorum, at(7_800), at(7_800));
        assert_eq!(contact.since(), at(4_800) + UNTOLD + HEARTBEAT);
        // What is learned late brings nothing forward.
        contact.taken_over(Some(at(3_000)), at(7_800));
        contact.answered(Authority::Quorum, at(7_800), at(7_800));
        assert_eq!(contact.since(), at(4_800) + UNTOLD + HEARTBEAT);
    }

    #[test]
    fn a_server_that_takes_a_session_over_which_may_be_ending_says_nothing() {
        for (now, expected) in [(7_999, 7_999), (8_000, 2_800)] {
            let mut contact = opened();
            contact.stand();
            contact.taken_over(Some(at(7_000)), at(7_500));
            contact.answered(Authority::Quorum, at(now), at(now));
            assert_eq!(contact.since(), at(expected), "at {now} ms");
        }
    }

    #[test]
    fn a_read_keeps_a_session_alive_at_its_server_and_the_leader_says_that_it_knows() {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 800);
        contact.answered(Authority::Server, at(3_000), at(3_100));
        assert_eq!(contact.newest(), at(800));
        beat(&mut contact, Authority::Quorum, 5_200);
        assert_eq!(contact.since(), at(800) + UNTOLD + HEARTBEAT);
        beat(&mut contact, Authority::Quorum, 5_300);
        assert_eq!(contact.since(), at(5_300));
    }

    #[test]
    fn to_learn_the_tick_brings_no_deadline_forward_and_trusts_nobody_for_longer_than_the_leader_may()
     {
        let mut contact = opened();
        contact.stand();
        beats(&mut contact, Authority::Quorum, 0, 1_600);
        beat(&mut contact, Authority::Quorum, 6_000);
        let before = contact.deadline();
        contact.learn(TIMEOUT / 2);
        assert_eq!(contact.deadline(), before, "the leader knows no more than it did");
        beat(&mut contact, Authority::Quorum, 7_300);
        assert_eq!(contact.deadline(), at(7_300) + Duration::from_secs(6));
    }

    #[test]
    fn answers_may_be_noted_in_another_order() {
        let mut contact = opened();
        beats(&mut contact, Authority::Quorum, 0, 4_000);
        let before = contact.deadline();
        contact.answered(Authority::Quorum, at(3_900), at(3_900));
        assert_eq!((contact.newest(), contact.deadline()), (at(4_000), before));
    }
}
