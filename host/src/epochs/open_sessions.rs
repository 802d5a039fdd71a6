//! The sessions that are open, and who is seated on which.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::participant::Join;
use crate::session::{Failure, Seat, Session, SessionState};

/// A session epoch: one session, from the connect to the loss or to the host's end.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// The session.
    pub session: Arc<Session>,
    /// Cancelled when the session is lost, or the host is to stop.
    pub over: CancellationToken,
}

impl Epoch {
    fn is(&self, other: &Epoch) -> bool {
        Arc::ptr_eq(&self.session, &other.session)
    }

    /// Whether newcomers are seated on it. Nothing is sent for them while it is in doubt, and if it is
    /// lost then, they have come for nothing.
    fn is_certain(&self) -> bool {
        *self.session.state().borrow() == SessionState::Connected
    }
}

/// The sessions that are open.
#[derive(Debug, Default)]
pub(super) struct OpenSessions {
    state: watch::Sender<State>,
    /// What cancels every epoch's `over`.
    stopping: CancellationToken,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first. One that was lost a moment ago may be among them, until its attendant knows.
    epochs: Vec<Epoch>,
    /// No other one comes.
    is_last: bool,
}

/// Where a newcomer is seated.
#[derive(Debug)]
pub(super) enum Seating {
    /// On this session.
    Seated(Epoch, Box<Seat>),
    /// None of the sessions has room.
    Full {
        /// How many are open.
        open: usize,
        /// What one of them said.
        reason: Failure,
    },
    /// Those that are open are in doubt.
    InDoubt,
    /// None is open.
    NoSession,
}

impl OpenSessions {
    /// Adds a session; answers how many are open then. None if no other one is wanted.
    pub(super) fn add(&self, session: &Arc<Session>) -> Option<(Epoch, usize)> {
        let epoch = Epoch { session: Arc::clone(session), over: self.stopping.child_token() };
        let mut added = None;
        self.state.send_if_modified(|state| {
            if !state.is_last {
                state.epochs.push(epoch.clone());
                added = Some((epoch, state.epochs.len()));
            }
            added.is_some()
        });
        added
    }

    /// Seats a newcomer on one of the sessions.
    ///
    /// First on one where somebody is at the same mount: they share watches there, and a waiter whose
    /// turn comes is told what its neighbour's claim knows. Else on the oldest that has room, so
    /// that the younger ones empty, and can be closed, when fewer are needed.
    pub(super) fn seat(&self, join: &Join) -> Seating {
        let mut seating = Seating::NoSession;
        // Under the lock of `dismiss`: nobody is seated on a session that is being closed.
        self.state.send_if_modified(|state| {
            seating = state.seat(join);
            false
        });
        seating
    }

    /// Those that are open, oldest first.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        self.state.borrow().epochs.iter().map(|epoch| Arc::clone(&epoch.session)).collect()
    }

    /// Strikes a session out; answers how many are open then.
    pub(super) fn remove(&self, epoch: &Epoch) -> usize {
        let mut left = 0;
        self.state.send_modify(|state| {
            state.epochs.retain(|it| !it.is(epoch));
            left = state.epochs.len();
        });
        left
    }

    /// Strikes a session out on which nobody is, unless it is the only one. Answers whether it did.
    pub(super) fn dismiss(&self, epoch: &Epoch) -> bool {
        self.state.send_if_modified(|state| {
            let is_needed = state.epochs.len() <= 1 || *epoch.session.participants().borrow() > 0;
            if !is_needed {
                state.epochs.retain(|it| !it.is(epoch));
            }
            !is_needed
        })
    }

    /// Waits until one is open that is not in doubt. False if no other one comes.
    pub(super) async fn until_one(&self) -> bool {
        let mut state = self.state.subscribe();
        let settled =
            state.wait_for(|state| state.is_last || state.certain().next().is_some()).await;
        // The sender is here, so it is not closed.
        settled.is_ok_and(|state| !state.is_last)
    }

    /// Waits until it is known of one of those that are open that it goes on, or of all that they are lost.
    pub(super) async fn until_certain(&self) {
        let is_known = |state: &State| {
            state.is_last || state.certain().next().is_some() || state.live().next().is_none()
        };
        // The sender is here, so it is not closed.
        self.state.subscribe().wait_for(is_known).await.ok();
    }

    /// Has those who wait look again, as a session is in doubt or is not any more.
    pub(super) fn look_again(&self) {
        self.state.send_modify(|_| {});
    }

    /// Waits until none is open.
    pub(super) async fn until_none(&self) {
        // The sender is here, so it is not closed.
        self.state.subscribe().wait_for(|state| state.epochs.is_empty()).await.ok();
    }

    /// No other one comes, and those that are open are to be left.
    pub(super) fn stop(&self) {
        self.state.send_modify(|state| state.is_last = true);
        self.stopping.cancel();
    }

    /// Cancelled by [`stop`](Self::stop).
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Has the attendants close what is open.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Completes when the sessions are to be closed.
    pub(super) async fn until_closing(&self) {
        self.closing.cancelled().await;
    }
}

impl State {
    /// Those that are not known to be lost.
    fn live(&self) -> impl Iterator<Item = &Epoch> {
        let is_live = |epoch: &&Epoch| !epoch.over.is_cancelled() && !epoch.session.is_lost();
        self.epochs.iter().filter(is_live)
    }

    /// Those that newcomers can be seated on.
    fn certain(&self) -> impl Iterator<Item = &Epoch> {
        self.live().filter(|epoch| epoch.is_certain())
    }

    fn seat(&self, join: &Join) -> Seating {
        let mount = join.mount.path();
        let has_company = |epoch: &&Epoch| epoch.session.has_joined_at(mount);
        let (with, without): (Vec<_>, Vec<_>) = self.certain().partition(has_company);
        let open = self.live().count();
        let mut seating = if open == 0 { Seating::NoSession } else { Seating::InDoubt };
        for epoch in with.into_iter().chain(without) {
            match epoch.session.join(mount, join.seat) {
                Ok(seat) => return Seating::Seated(epoch.clone(), Box::new(seat)),
                Err(reason) => seating = Seating::Full { open, reason },
            }
        }
        seating
    }
}
