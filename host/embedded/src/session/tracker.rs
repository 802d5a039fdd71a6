//! When sessions expire. Only the leader knows.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::ErrorCode;
use crate::time::Now;

/// The server that a session's client is connected to.
pub type Owner = u64;

#[derive(Debug)]
struct Session {
    timeout_ms: i32,
    owner: Owner,
    is_closing: bool,
    expires_ms: u64,
}

/// All sessions, in buckets of one tick by when they expire: a session never expires early, and
/// at most one tick late.
#[derive(Debug)]
pub struct SessionTracker {
    tick_ms: u64,
    sessions: BTreeMap<i64, Session>,
    buckets: BTreeMap<u64, BTreeSet<i64>>,
}

impl SessionTracker {
    /// No sessions yet.
    pub fn new(tick_ms: u64) -> Self {
        SessionTracker {
            tick_ms: tick_ms.max(1),
            sessions: BTreeMap::new(),
            buckets: BTreeMap::new(),
        }
    }

    /// The length of a tick.
    pub fn tick_ms(&self) -> u64 {
        self.tick_ms
    }

    fn bucket(&self, now: Now, timeout_ms: i32) -> u64 {
        let end = now.elapsed_ms + u64::try_from(timeout_ms).unwrap_or(0);
        (end / self.tick_ms + 1) * self.tick_ms
    }

    fn move_to(&mut self, session_id: i64, expires_ms: u64) {
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        let before = std::mem::replace(&mut session.expires_ms, expires_ms);
        if before == expires_ms {
            return;
        }
        leave(&mut self.buckets, before, session_id);
        self.buckets.entry(expires_ms).or_default().insert(session_id);
    }

    /// Begins to track a session, or gives it a whole timeout again.
    pub fn track(&mut self, session_id: i64, timeout_ms: i32, owner: Owner, now: Now) {
        let session = Session { timeout_ms, owner, is_closing: false, expires_ms: 0 };
        if let Some(old) = self.sessions.insert(session_id, session) {
            leave(&mut self.buckets, old.expires_ms, session_id);
        }
        let bucket = self.bucket(now, timeout_ms);
        self.move_to(session_id, bucket);
    }

    /// Notes a sign of life. False if the session is unknown or being closed: what it asks is to
    /// be dropped.
    pub fn touch(&mut self, session_id: i64, now: Now) -> bool {
        let Some(session) = self.sessions.get(&session_id).filter(|session| !session.is_closing)
        else {
            return false;
        };
        let bucket = self.bucket(now, session.timeout_ms);
        self.move_to(session_id, bucket);
        true
    }

    /// Gives a session to the server its client is now connected to, with a new timeout. False if
    /// the session is gone.
    pub fn attach(&mut self, session_id: i64, timeout_ms: i32, owner: Owner, now: Now) -> bool {
        let Some(session) = self.sessions.get_mut(&session_id).filter(|s| !s.is_closing) else {
            return false;
        };
        session.timeout_ms = timeout_ms;
        session.owner = owner;
        self.touch(session_id, now)
    }

    /// Whether a session may write, through this server.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownSession`], [`ErrorCode::SessionExpired`] if it is being closed,
    /// [`ErrorCode::SessionMoved`] if its client has gone to another server since.
    pub fn check(&self, session_id: i64, owner: Owner) -> Result<(), ErrorCode> {
        let session = self.sessions.get(&session_id).ok_or(ErrorCode::UnknownSession)?;
        if session.is_closing {
            Err(ErrorCode::SessionExpired)
        } else if session.owner != owner {
            Err(ErrorCode::SessionMoved)
        } else {
            Ok(())
        }
    }

    /// Refuses everything further of a session.
    pub fn set_closing(&mut self, session_id: i64) {
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.is_closing = true;
        }
    }

    /// Forgets a session.
    pub fn remove(&mut self, session_id: i64) {
        if let Some(session) = self.sessions.remove(&session_id) {
            leave(&mut self.buckets, session.expires_ms, session_id);
        }
    }

    /// Takes out the sessions whose time is over; they stay known until they are removed.
    pub fn expired(&mut self, now: Now) -> Vec<i64> {
        let mut expired = Vec::new();
        while let Some(bucket) = self.buckets.first_entry().filter(|b| *b.key() <= now.elapsed_ms) {
            let ids = bucket.remove();
            expired.extend(
                ids.into_iter()
                    .filter(|id| self.sessions.get(id).is_some_and(|session| !session.is_closing)),
            );
        }
        expired
    }

    /// The sessions by when they expire.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (u64, &BTreeSet<i64>)> {
        self.buckets.iter().map(|(expires_ms, ids)| (*expires_ms, ids))
    }

    /// How many sessions are known.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no sessions are known.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

fn leave(buckets: &mut BTreeMap<u64, BTreeSet<i64>>, expires_ms: u64, session_id: i64) {
    if let Some(ids) = buckets.get_mut(&expires_ms) {
        ids.remove(&session_id);
        if ids.is_empty() {
            buckets.remove(&expires_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(elapsed_ms: u64) -> Now {
        Now { elapsed_ms, wall_ms: 0 }
    }

    #[test]
    fn a_session_expires_within_one_tick_after_its_timeout() {
        for start in [0, 1, 250, 499] {
            let mut tracker = SessionTracker::new(500);
            tracker.track(1, 1000, 0, at(start));
            assert_eq!(tracker.expired(at(start + 1000)), []);
            assert_eq!(tracker.expired(at(start + 1500)), [1]);
        }
    }

    #[test]
    fn a_sign_of_life_puts_the_end_off() {
        let mut tracker = SessionTracker::new(500);
        tracker.track(1, 1000, 0, at(0));
        assert!(tracker.touch(1, at(1000)));
        assert_eq!(tracker.expired(at(1999)), []);
        assert_eq!(tracker.expired(at(2500)), [1]);
        tracker.set_closing(1);
        assert!(!tracker.touch(1, at(2500)));
    }

    #[test]
    fn a_session_belongs_to_the_server_it_was_last_attached_to() {
        let mut tracker = SessionTracker::new(500);
        tracker.track(1, 1000, 10, at(0));
        assert!(tracker.attach(1, 2000, 20, at(0)));
        assert_eq!(tracker.check(1, 10), Err(ErrorCode::SessionMoved));
        assert_eq!(tracker.check(1, 20), Ok(()));
        assert_eq!(tracker.check(2, 20), Err(ErrorCode::UnknownSession));
    }
}
