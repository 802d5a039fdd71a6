//! The session that is current, and the recipes that can be joined on it.
//!
//! The daemon and the command line join a recipe through [`Epochs`]. A session epoch lasts from the
//! connect to the loss; nothing is carried over to the next one, and nobody is joined again behind
//! their back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::config::spell_duration;
use crate::host::Host;
use crate::participant::{Follower, Join, Participant};
use crate::session::{ConnectError, Failure, Session};

/// A session epoch: one session, from the connect to the loss or to the host's end.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// The session.
    pub session: Arc<Session>,
    /// Cancelled when the session is lost, or the host is to stop.
    pub over: CancellationToken,
}

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
    /// The session has no room.
    #[error(transparent)]
    Refused(#[from] Failure),
}

/// The session that is current, and the recipes that can be joined on it.
#[derive(Debug)]
pub struct Epochs {
    host: Host,
    recipes: BTreeMap<String, Join>,
    current: watch::Sender<Current>,
}

#[derive(Debug, Default)]
struct Current {
    /// Perhaps over already.
    epoch: Option<Epoch>,
    /// No other one comes.
    is_last: bool,
}

impl Current {
    fn open(&self) -> Option<&Epoch> {
        self.epoch.as_ref().filter(|epoch| !epoch.over.is_cancelled())
    }
}

impl Epochs {
    /// Without a session, and without recipes.
    pub fn new(host: Host) -> Self {
        Epochs { host, recipes: BTreeMap::new(), current: watch::Sender::default() }
    }

    /// Adds a recipe to those that can be joined, or puts it in the place of one of its name.
    pub fn load(&mut self, recipe: Join) {
        self.recipes.insert(recipe.recipe.clone(), recipe);
    }

    /// The recipes that can be joined, by name.
    pub fn recipes(&self) -> impl Iterator<Item = &Join> {
        self.recipes.values()
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Opens sessions on these servers from now on: `host:port`, separated by commas.
    pub fn connect_to(&mut self, hosts: String) {
        self.host.connect_to(hosts);
    }

    /// Opens a session, trying every server once, and makes it the current one. Its end is the
    /// caller's to see: [`close`](Self::close) it.
    ///
    /// # Errors
    /// No server could be reached, or a server refused.
    ///
    /// # Cancellation
    /// Nothing is left of a session that is being opened.
    pub async fn open(&self) -> Result<Arc<Session>, ConnectError> {
        let session = self.host.open_session().await?;
        self.begin(&session, CancellationToken::new());
        Ok(session)
    }

    /// Opens one session after another until `shutdown` is cancelled. The one that is open then
    /// stays open, for participants to leave in order: [`close`](Self::close) it.
    ///
    /// # Errors
    /// The servers refuse the credentials: trying again would not help.
    ///
    /// # Cancellation
    /// Do not drop it; cancel `shutdown`.
    pub async fn keep_open(&self, shutdown: &CancellationToken) -> Result<(), ConnectError> {
        let outcome = self.open_sessions(shutdown).await;
        self.current.send_modify(|current| current.is_last = true);
        outcome
    }

    async fn open_sessions(&self, shutdown: &CancellationToken) -> Result<(), ConnectError> {
        let mut backoff = Backoff::default();
        while !shutdown.is_cancelled() {
            let session = match shutdown.run_until_cancelled(self.host.open_session()).await {
                None => break,
                Some(Ok(session)) => session,
                Some(Err(
                    refused @ (ConnectError::AuthFailed { .. } | ConnectError::Certificate { .. }),
                )) => return Err(refused),
                Some(Err(error)) => {
                    let pause = backoff.next();
                    tracing::warn!(%error, retry_in = spell(pause), "no session");
                    shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
                    continue;
                }
            };
            backoff.reset();
            let (id, timeout) = (session.id(), session.timing().timeout());
            tracing::info!(session = format!("{id:#x}"), timeout = spell(timeout), "connected");
            let over = shutdown.child_token();
            self.begin(&session, over.clone());
            let Some(loss) = shutdown.run_until_cancelled(session.until_lost()).await else {
                break;
            };
            tracing::warn!(reason = %loss, cause = loss.kind(), "session lost");
            // Participants end by themselves. Nobody waits for that here: those who are done with
            // this session go on with the next.
            over.cancel();
            self.current.send_modify(|current| current.epoch = None);
            close(&session).await;
        }
        Ok(())
    }

    fn begin(&self, session: &Arc<Session>, over: CancellationToken) {
        let epoch = Epoch { session: Arc::clone(session), over };
        self.current.send_modify(|current| current.epoch = Some(epoch));
    }

    /// Waits until a session is open. None if no other one comes.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&self) -> Option<Epoch> {
        let mut current = self.current.subscribe();
        let settled = current.wait_for(|it| it.is_last || it.open().is_some()).await;
        // The sender is here, so it is not closed.
        settled.ok()?.open().cloned()
    }

    /// Starts a participant of a recipe on the current session.
    ///
    /// # Errors
    /// There is no such recipe, no session, or no room in it.
    pub fn join(&self, recipe: &str) -> Result<Joined, JoinError> {
        let recipe =
            self.recipes.get(recipe).ok_or_else(|| JoinError::Unknown(recipe.to_owned()))?;
        let epoch = self.current.borrow().open().cloned().ok_or(JoinError::NoSession)?;
        let joined = Participant::join(self.host.tasks(), &epoch.session, recipe.clone());
        let (participant, follower) = joined?;
        Ok(Joined { participant, follower, epoch })
    }

    /// Closes the session that is current. The participants have been asked to leave before, and
    /// have left.
    pub async fn close(&self) {
        let epoch = self.current.send_replace(Current { epoch: None, is_last: true }).epoch;
        if let Some(Epoch { session, over }) = epoch {
            over.cancel();
            close(&session).await;
        }
    }
}

async fn close(session: &Session) {
    session.close().await;
    tracing::info!(session = format!("{:#x}", session.id()), "session ended");
}

/// A duration in whole milliseconds, as the config has them.
fn spell(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    spell_duration(Duration::from_millis(millis))
}
