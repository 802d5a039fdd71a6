//! A participant as others of this host see it.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use super::line::{Follower, Line, Listener, Standing};
use crate::clock::Boottime;
use crate::session::{Ahead, Held, Seat};

/// A participant as others of this host see it. It keeps nothing of the participant alive.
#[derive(Debug, Clone)]
pub struct Presence {
    id: Arc<str>,
    line: Line,
    seat: Weak<Seat>,
    session: i64,
}

impl Presence {
    pub(super) fn new(id: Arc<str>, line: Line, seat: Weak<Seat>, session: i64) -> Self {
        Presence { id, line, seat, session }
    }

    /// The participant's id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The session that it belongs to, as in `ephemeralOwner`.
    pub fn session(&self) -> i64 {
        self.session
    }

    /// Where it stands, by what it has told.
    pub fn standing(&self) -> Standing {
        self.line.standing()
    }

    /// Notes why it leaves, for all who follow it. Of several reasons the first one stays.
    pub fn leaves_because(&self, why: impl Into<Cow<'static, str>>) {
        self.line.leaves_because(why.into());
    }

    /// Why it leaves, where that has been noted.
    pub fn why(&self) -> Option<Cow<'static, str>> {
        self.line.why()
    }

    /// What it holds at this very moment, as far as anyone can know.
    pub fn held(&self) -> Option<Held> {
        let seat = self.seat.upgrade()?;
        let held = seat.held()?;
        seat.is_live().then_some(held)
    }

    /// Until when what it holds may be relied on without hearing more; none while nothing is held, or while
    /// nobody knows whether it is.
    pub fn tenure(&self) -> Option<Boottime> {
        let seat = self.seat.upgrade().filter(|seat| seat.is_relied_on())?;
        Some(seat.deadline())
    }

    /// Whom it waits behind, while it stands in line and the host has seen it.
    pub fn ahead(&self) -> Option<Ahead> {
        self.seat.upgrade()?.ahead()
    }

    /// Follows it, from where it stands on.
    pub fn follow(&self) -> Follower {
        self.line.follower(Weak::clone(&self.seat))
    }

    /// Has all that it tells heard, from where it stands on. There is one listener.
    pub(crate) fn attach(&self, listener: Box<dyn Listener>) {
        self.line.attach(listener);
    }
}
