//! One session, from connect to its end: a session epoch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::contact::ContactRule;
use super::core::Core;
use super::ensemble::Ensemble;
use super::failure::Failure;
use super::janitor;
use super::monitor;
use super::omission::Omission;
use super::request::Acl;
use super::seat::{Seat, SeatLimits};
use super::state::{SessionLoss, SessionState};
use super::tick;
use super::timing::Timing;
use crate::clock::{Boottime, Clock};
use crate::tasks::Tasks;

/// One session, from connect to its end. It is never replaced by another under the same value:
/// after a loss, a caller that wants to go on opens a new one.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
    tasks: Tasks,
}

impl Session {
    /// Takes charge of a session that was opened by a request sent at `contact`. Its tasks run on
    /// `tasks`, which is this session's alone.
    pub fn new(
        ensemble: Box<dyn Ensemble>,
        acl: Acl,
        clock: Arc<dyn Clock>,
        contact: Boottime,
        tasks: Tasks,
    ) -> Self {
        Session::omitting(None, ensemble, acl, clock, contact, tasks)
    }

    /// As [`Session::new`], without one of the rules where debug assertions are on: so that a
    /// simulation can show that it would notice.
    pub fn omitting(
        omission: Option<Omission>,
        ensemble: Box<dyn Ensemble>,
        acl: Acl,
        clock: Arc<dyn Clock>,
        contact: Boottime,
        tasks: Tasks,
    ) -> Self {
        let (janitor, jobs) = mpsc::unbounded_channel();
        let core = Core::new(ensemble, acl, clock, contact, janitor).omitting(omission);
        let core = Arc::new(core);
        tasks.spawn("session monitor", monitor::run(Arc::clone(&core)));
        tasks.spawn("servers' tick", tick::learn(Arc::clone(&core)));
        tasks.spawn("janitor", janitor::run(Arc::clone(&core), jobs));
        Session { core, tasks }
    }

    /// The same session, believed in on the word that this rule asks for.
    #[must_use]
    pub fn ruled_by(self, rule: ContactRule) -> Self {
        self.core.contact().rule(rule);
        self
    }

    /// The session's id, as in `ephemeralOwner`.
    pub fn id(&self) -> i64 {
        self.core.id()
    }

    /// The times that it is judged by: once something has been held for a while, those that what is
    /// known of the servers' tick allows for.
    pub fn timing(&self) -> Timing {
        self.core.timing()
    }

    /// The clock that it goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.core.clock()
    }

    /// Follows its state. A lost session stays lost.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.core.state()
    }

    /// Until when the host may believe in the session without hearing more; moves with contact.
    pub fn deadline(&self) -> Boottime {
        self.core.deadline()
    }

    /// Completes when the session is lost.
    pub async fn until_lost(&self) -> SessionLoss {
        let mut state = self.core.state();
        loop {
            if let SessionState::Lost(loss) = *state.borrow_and_update() {
                return loss;
            }
            if state.changed().await.is_err() {
                return SessionLoss::Closed;
            }
        }
    }

    /// Whether it is lost. A deadline that has passed is noticed here at the latest, so that who was
    /// told of it does not join on this session once more.
    pub fn is_lost(&self) -> bool {
        // Notices it. A session on which nothing is held may come back after its deadline, so that it
        // is not live now does not mean that it is lost.
        self.core.is_live();
        self.core.lost().is_cancelled()
    }

    /// Gives a participant a seat, for work below `mount`.
    ///
    /// # Errors
    /// `OverLimit` when the session is full: the watch budget has no room for another participant.
    pub fn join(&self, mount: &str, limits: SeatLimits) -> Result<Seat, Failure> {
        Seat::new(Arc::clone(&self.core), mount, limits)
    }

    /// Follows how many participants there are.
    pub fn participants(&self) -> watch::Receiver<usize> {
        self.core.budget.participants()
    }

    /// Whether a participant has joined at this mount and has not ended.
    pub fn has_joined_at(&self, mount: &str) -> bool {
        self.core.budget.has_joined_at(mount)
    }

    /// Completes when the session is lost, and its participants have ended or nothing can be left of what
    /// depended on their claims. Closing it earlier would hand the claims on.
    pub async fn until_let_go(&self) {
        self.core.lost().cancelled().await;
        let mut participants = self.participants();
        // Both are cancel-safe: they are states.
        tokio::select! {
            biased;
            none = participants.wait_for(|participants| *participants == 0) => drop(none),
            () = self.core.until_spent() => {}
        }
    }

    /// Ends the session in order: the server deletes what is left of it. The caller has ended the
    /// participants first.
    ///
    /// Waits for the server's word, but not for long where there is no contact: the server will
    /// expire the session by itself.
    pub async fn close(&self) {
        let patience = match self.core.is_live() {
            true => self.timing().timeout(),
            false => LAST_WORD,
        };
        let closed = self.core.ensemble().close();
        // Ends the requests under way, which keep the session open.
        self.core.lose(SessionLoss::Closed);
        self.tasks.cancel();
        self.tasks.join().await;
        if tokio::time::timeout(patience, closed).await.is_err() {
            tracing::warn!("the session's end was not confirmed; the server will expire it");
        }
    }
}

/// How long the close of a session that is out of contact may take. It is tried, because the server
/// may still be there and others wait for what the session held.
const LAST_WORD: Duration = Duration::from_millis(500);

impl Drop for Session {
    fn drop(&mut self) {
        self.core.lose(SessionLoss::Closed);
        self.tasks.cancel();
        // Begins to close without waiting for the reply.
        drop(self.core.ensemble().close());
    }
}
