//! Session epochs, and the recipes that can be joined on them.
//!
//! The daemon and the command line join a recipe through [`Epochs`]. A session epoch lasts from the
//! connect to the loss; nothing is carried over to another one, and nobody is joined again behind
//! their back.
//!
//! A session that is full is no reason to refuse: the host opens another one, up to
//! [`Sessions::most`](crate::base::Sessions). Each is an epoch of its own, with heartbeats, a
//! deadline and a janitor of its own, and each participant belongs to exactly one. To ZooKeeper
//! participants on two sessions of a host are what participants on two hosts are.
//!
//! | question | file |
//! |---|---|
//! | which sessions are open, and who is seated where? | `open_sessions.rs` |
//! | how is the first one opened, while servers start? | `opening.rs` |
//! | what happens when all of them are full? | `joining.rs` |
//! | when does a session end? | `attendant.rs` |

mod attendant;
mod joining;
mod open_sessions;
mod opening;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub use joining::JoinError;
pub use open_sessions::Epoch;

use crate::backoff::Backoff;
use crate::base::Base;
use crate::config::spell_duration;
use crate::participant::{Follower, Join, Participant};
use crate::registry::Registry;
use crate::session::{ConnectError, Session};
use crate::tasks::Tasks;
use joining::Widening;
use open_sessions::OpenSessions;

/// A participant, and where it lives.
#[derive(Debug)]
pub struct Joined {
    /// The participant.
    pub participant: Participant,
    /// What it tells.
    pub follower: Follower,
    /// The epoch that it belongs to.
    pub epoch: Epoch,
}

/// The sessions that are open, and the recipes that can be joined on them.
#[derive(Debug)]
pub struct Epochs {
    base: Base,
    recipes: BTreeMap<String, Join>,
    open: Arc<OpenSessions>,
    /// Locked by who opens another session, so that those who find all of them full at the same
    /// time do not open one each.
    widening: Mutex<Widening>,
    /// One for each session.
    attendants: Tasks,
    registry: Arc<Registry>,
}

impl Epochs {
    /// Without a session, and without recipes. Sessions will live on the runtime that this is called
    /// in.
    pub fn new(base: Base) -> Self {
        Epochs {
            base,
            recipes: BTreeMap::new(),
            open: Arc::default(),
            widening: Mutex::default(),
            attendants: Tasks::on(Handle::current()),
            registry: Arc::default(),
        }
    }

    /// Adds a recipe to those that can be joined, or puts it in the place of one of its name.
    pub fn load(&mut self, recipe: Join) {
        self.recipes.insert(recipe.recipe.clone(), recipe);
    }

    /// The recipes that can be joined, by name.
    pub fn recipes(&self) -> impl Iterator<Item = &Join> {
        self.recipes.values()
    }

    /// The recipe of that name.
    pub fn recipe(&self, name: &str) -> Option<&Join> {
        self.recipes.get(name)
    }

    /// Who takes part in what.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The sessions that are open.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.open.sessions()
    }

    /// What the host is built on.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Opens sessions on these servers from now on: `host:port`, separated by commas.
    pub fn connect_to(&mut self, hosts: String) {
        self.base.connect_to(hosts);
    }

    /// Opens a session, trying every server once. Its end is the caller's to see:
    /// [`close`](Self::close) it.
    ///
    /// # Errors
    /// No server could be reached, or a server refused.
    ///
    /// # Cancellation
    /// Nothing is left of a session that is being opened.
    pub async fn open(&self) -> Result<Arc<Session>, ConnectError> {
        let session = self.base.open_session().await?;
        self.begin(&session);
        Ok(session)
    }

    /// Sees to it that a session is open until `shutdown` is cancelled: opens the first, and another
    /// one when none is left. Those that are open in the end stay open, for participants to leave in
    /// order: [`close`](Self::close) them.
    ///
    /// # Errors
    /// The servers refuse the credentials: trying again would not help.
    ///
    /// # Cancellation
    /// Do not drop it; cancel `shutdown`.
    pub async fn keep_open(&self, shutdown: &CancellationToken) -> Result<(), ConnectError> {
        let outcome = self.open_sessions(shutdown).await;
        self.open.stop();
        outcome
    }

    async fn open_sessions(&self, shutdown: &CancellationToken) -> Result<(), ConnectError> {
        let mut backoff = Backoff::default();
        while shutdown.run_until_cancelled(self.open.until_none()).await.is_some() {
            match shutdown.run_until_cancelled(self.base.open_session()).await {
                None => break,
                Some(Ok(session)) => {
                    backoff.reset();
                    self.begin(&session);
                }
                Some(Err(error @ ConnectError::Unreachable { .. })) => {
                    let pause = backoff.next();
                    tracing::warn!(%error, retry_in = spell(pause), "no session");
                    shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
                }
                // It refuses us, and would again.
                Some(Err(refused)) => return Err(refused),
            }
        }
        Ok(())
    }

    /// Counts a session among those that are open, and has it attended to. One that comes too late,
    /// when no other is wanted, ends when it is dropped.
    fn begin(&self, session: &Arc<Session>) {
        let Some((epoch, open)) = self.open.add(session) else { return };
        let (id, timeout) = (session.id(), spell(session.timing().timeout()));
        tracing::info!(session = format!("{id:#x}"), timeout, open, "connected");
        let attendant = attendant::attend(Arc::clone(&self.open), epoch, self.base.sessions().idle);
        self.attendants.spawn("session's attendant", attendant);
    }

    /// Waits until a session is open that is not in doubt. False if no other one comes.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn until_open(&self) -> bool {
        self.open.until_one().await
    }

    /// Waits until it is known of a session that it goes on, or of all that they are lost. Completes at once
    /// where none is open.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn until_certain(&self) {
        self.open.until_certain().await;
    }

    /// Cancelled when no other session comes, and those that are open are to be left.
    pub fn stopping(&self) -> &CancellationToken {
        self.open.stopping()
    }

    /// Closes all sessions. The participants have been asked to leave before, and have left.
    pub async fn close(&self) {
        self.open.stop();
        self.open.close();
        self.attendants.join().await;
    }
}

/// A duration in whole milliseconds, as the config has them.
fn spell(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    spell_duration(Duration::from_millis(millis))
}
