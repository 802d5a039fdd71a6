//! Joining a recipe, on another session if those that are open are full.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::open_sessions::{Epoch, Seating};
use super::{Epochs, Joined};
use crate::backoff::Backoff;
use crate::base::Base;
use crate::participant::{Join, Participant};
use crate::registry::{By, Member};
use crate::session::{ConnectError, Failure, LeftBehind, Seat, Session};

/// Why a recipe cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No recipe of that name is loaded.
    #[error("there is no recipe {0:?}")]
    Unknown(String),
    /// No session is open.
    #[error("there is no session with ZooKeeper")]
    NoSession,
    /// No session has room, and there may be no other.
    #[error(
        "all {open} sessions that there may be are full: {reason}; raise `sessions` in [zookeeper] (in a \
         program, `Builder::sessions`), use shorter mounts, or run a second wok"
    )]
    Full {
        /// How many are open.
        open: usize,
        /// What one of them said.
        reason: Failure,
    },
    /// No session has room, and another cannot be opened now.
    #[error(
        "all {open} open sessions are full, and another cannot be opened: {source}{}",
        remedy(source)
    )]
    NotWidened {
        /// How many are open.
        open: usize,
        /// What came of the last attempt.
        source: ConnectError,
    },
}

/// Where servers are there, since other sessions are open, and do not let another in.
fn remedy(refused: &ConnectError) -> &'static str {
    match refused {
        ConnectError::Unreachable { .. } => {
            "; a server takes 60 connections from one address unless its `maxClientCnxns` says \
             otherwise: raise it there, or run fewer clients at this address"
        }
        _ => "",
    }
}

/// What is known of the last attempt to open another session.
#[derive(Debug, Default)]
pub(super) struct Widening {
    backoff: Backoff,
    /// Until when nobody tries again: thousands may ask at the same time, and an attempt takes a
    /// server a connection.
    refused: Option<(ConnectError, Instant)>,
}

impl Widening {
    async fn open_session(&mut self, base: &Base) -> Result<Arc<Session>, ConnectError> {
        if let Some((error, until)) = &self.refused
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        match base.open_session().await {
            Ok(session) => {
                *self = Widening::default();
                Ok(session)
            }
            Err(error) => {
                self.refused = Some((error.clone(), Instant::now() + self.backoff.next()));
                Err(error)
            }
        }
    }
}

impl Epochs {
    /// Starts a participant of a recipe for the host itself, as [`join_for`](Self::join_for).
    ///
    /// # Errors
    /// As [`join_for`](Self::join_for).
    ///
    /// # Cancellation
    /// As [`join_for`](Self::join_for).
    pub async fn join(&self, recipe: &str) -> Result<Joined, JoinError> {
        self.join_for(recipe, By::Host, None).await
    }

    /// As [`join`](Self::join), for a participant that takes the place of one that has ended.
    ///
    /// # Errors
    /// As [`join_for`](Self::join_for).
    ///
    /// # Cancellation
    /// As `join_for`.
    pub async fn join_again(
        &self,
        recipe: &str,
        earlier: &LeftBehind,
    ) -> Result<Joined, JoinError> {
        let (recipe, epoch, seat) = self.seat(recipe).await?;
        Ok(self.start(recipe.clone(), epoch, seat.in_place_of(earlier), By::Host))
    }

    /// Starts a participant of a recipe on one of the sessions. If all of them are full, another one
    /// is opened first; if all of them are in doubt, it waits until one is not, or they are lost. Its
    /// room is reserved before anything of it is created, so that it is not refused in the middle of an
    /// operation. `owner` is what other contenders are told of it.
    ///
    /// # Errors
    /// There is no such recipe, or no session; or all sessions are full, and no other may or can be
    /// opened. Who is on a session already notices nothing of that.
    ///
    /// # Cancellation
    /// Nothing is left of a session that is being opened.
    pub async fn join_for(
        &self,
        recipe: &str,
        by: By,
        owner: Option<String>,
    ) -> Result<Joined, JoinError> {
        let (recipe, epoch, seat) = self.seat(recipe).await?;
        let mut join = recipe.clone();
        if let Some(owner) = owner {
            join.owner = owner;
        }
        Ok(self.start(join, epoch, seat, by))
    }

    /// A seat for a participant of a recipe, on one of the sessions.
    async fn seat(&self, recipe: &str) -> Result<(&Join, Epoch, Seat), JoinError> {
        let recipe =
            self.recipes.get(recipe).ok_or_else(|| JoinError::Unknown(recipe.to_owned()))?;
        let (epoch, seat) = match self.open.seat(recipe) {
            Seating::Seated(epoch, seat) => (epoch, *seat),
            Seating::NoSession => return Err(JoinError::NoSession),
            // Boxed, as it is rare: a future has room for every branch.
            Seating::InDoubt | Seating::Full { .. } => Box::pin(self.seat_later(recipe)).await?,
        };
        Ok((recipe, epoch, seat))
    }

    fn start(&self, join: Join, epoch: Epoch, seat: Seat, by: By) -> Joined {
        let tasks = self.base.tasks();
        let (recipe, owner) = (join.recipe.clone(), join.owner.clone());
        let (participant, follower) = Participant::start(tasks, &epoch.session, seat, join);
        let since = SystemTime::now();
        let presence = participant.presence();
        self.registry.enter(Member { presence, recipe, owner, by, since });
        Joined { participant, follower, epoch }
    }

    /// Waits until the sessions that are open are not in doubt any more, and opens another one if they are
    /// full.
    async fn seat_later(&self, recipe: &Join) -> Result<(Epoch, Seat), JoinError> {
        let seated = async {
            // Before the lock: while it lasts, nobody else is kept from opening another one.
            self.open.until_certain().await;
            // One at a time: those who wait here find room on the session that is opened meanwhile.
            let mut widening = self.widening.lock().await;
            loop {
                let (open, reason) = match self.open.seat(recipe) {
                    Seating::Seated(epoch, seat) => return Ok((epoch, *seat)),
                    Seating::NoSession => return Err(JoinError::NoSession),
                    Seating::InDoubt => {
                        self.open.until_certain().await;
                        continue;
                    }
                    Seating::Full { open, reason } => (open, reason),
                };
                if open >= self.base.sessions().most as usize {
                    return Err(JoinError::Full { open, reason });
                }
                let opened = widening.open_session(&self.base).await;
                self.begin(&opened.map_err(|source| JoinError::NotWidened { open, source })?);
            }
        };
        // When the host is to stop there is no session any more, for newcomers.
        let seated = self.stopping().run_until_cancelled(seated).await;
        seated.unwrap_or(Err(JoinError::NoSession))
    }
}
