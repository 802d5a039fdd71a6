//! The host in a Rust program: sessions, recipes, and what is held.
//!
//! ```no_run
//! # async fn work(fence: u64) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use wok::{Call, Host, Recipe};
//!
//! let host = Host::builder("zk1:2181,zk2:2181,zk3:2181")
//!     .recipe("orders", Recipe::new("lock", "/locks/orders"))
//!     .open()
//!     .await?;
//!
//! let held = host.acquire("orders", Call::new("acquire").timeout(Duration::from_secs(5))).await?;
//! tokio::select! {
//!     end = held.lost() => eprintln!("stopped in the middle: {end}"),
//!     () = work(held.fence()) => {}
//! }
//! held.release().await;
//! host.shut_down().await;
//! # Ok(()) }
//! ```
//!
//! [`Host::acquire`] joins a recipe and calls an operation until that holds a claim; [`Host::call`]
//! joins for one operation without a claim; [`Host::join`] gives a [`Participant`] that stays.
//!
//! A session that is lost ends what was held on it, and another one follows: the next call goes on
//! there. Nothing is acquired again by itself, because the program has to stop its work under the lost
//! claim first.

mod builder;
mod error;
mod held;
mod participant;
mod recipe;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub use builder::{Builder, OpenError};
pub use error::Error;
pub use held::{Held, HeldEnd};
pub use participant::Participant;
pub use recipe::Recipe;

use crate::epochs::{Epochs, JoinError};
use crate::guest::Arguments;
use crate::near::near;
use crate::participant as inner;
use crate::session::ConnectError;
use crate::tasks::Tasks;

/// The page of the guide, whose example is compiled with the other examples in documents.
#[cfg(doctest)]
#[doc = include_str!("../../docs/in-a-rust-program.md")]
struct PageOfTheGuide;

/// A host in this process: its sessions with ZooKeeper, and the recipes that can be joined on them.
///
/// When the host and all that was got from it are dropped, everything ends in the background while the
/// runtime goes on; [`shut_down`](Host::shut_down) waits for that. What ZooKeeper could not be told by
/// then goes when the session times out.
#[derive(Debug)]
pub struct Host {
    shared: Arc<Shared>,
    keeper: Tasks,
}

/// What a host and all that was got from it share. The last of them ends the host.
#[derive(Debug)]
struct Shared {
    epochs: Arc<Epochs>,
    shutdown: CancellationToken,
    /// Why no other session comes, if not because the host is to end.
    refused: Arc<OnceLock<ConnectError>>,
    participants: Mutex<BTreeMap<Arc<str>, Weak<inner::Participant>>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// One call of an operation. A text is a call without arguments.
#[derive(Debug, Clone)]
pub struct Call {
    operation: String,
    arguments: Value,
    timeout: Option<Duration>,
}

impl Call {
    /// A call of that operation, without arguments, that waits for as long as it takes.
    pub fn new(operation: impl Into<String>) -> Self {
        Call { operation: operation.into(), arguments: Value::Null, timeout: None }
    }

    /// With these arguments, a JSON object by their names. `wok inspect` tells those of a recipe.
    #[must_use]
    pub fn arguments(self, arguments: impl Into<Value>) -> Self {
        Call { arguments: arguments.into(), ..self }
    }

    /// Gives up after this time, the wait for a session included.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Call { timeout: Some(timeout), ..self }
    }

    fn deadline(&self) -> Option<Instant> {
        // One that is too far to be told never comes.
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }
}

impl From<&str> for Call {
    fn from(operation: &str) -> Self {
        Call::new(operation)
    }
}

impl Host {
    /// A host that will reach ZooKeeper at these servers: `host:port`, separated by commas.
    pub fn builder(servers: impl Into<String>) -> Builder {
        Builder::new(servers.into())
    }

    /// Joins a recipe and calls an operation until it holds a claim.
    ///
    /// # Errors
    /// Nothing is held, and nothing of the attempt stands in line. What the operation was to write for
    /// good may have been written: [`Error::is_outcome_unknown`] says so.
    ///
    /// # Cancellation
    /// Dropping the future withdraws: soon nothing of the attempt stands in line.
    pub async fn acquire(&self, recipe: &str, call: impl Into<Call>) -> Result<Held, Error> {
        let call = call.into();
        let (arguments, deadline) = (self.arguments(recipe, &call)?, call.deadline());
        self.joined(recipe, deadline).await?.acquired(arguments, deadline).await
    }

    /// Joins a recipe for one operation, and leaves when that has answered.
    ///
    /// # Errors
    /// The operation's own error is [`Error::Refused`]. What is held when the operation answers is given
    /// back: use [`acquire`](Self::acquire) for that.
    ///
    /// # Cancellation
    /// Dropping the future withdraws the call.
    pub async fn call(&self, recipe: &str, call: impl Into<Call>) -> Result<Value, Error> {
        let call = call.into();
        let (arguments, deadline) = (self.arguments(recipe, &call)?, call.deadline());
        let participant = self.joined(recipe, deadline).await?;
        let answer = participant.answered(arguments, deadline).await;
        participant.leave().await;
        answer
    }

    /// Joins a recipe for as long as the participant is kept.
    ///
    /// # Errors
    /// There is no such recipe, or no room, or the host ends. Without a session it waits for one.
    ///
    /// # Cancellation
    /// Nothing is left.
    pub async fn join(&self, recipe: &str) -> Result<Participant, Error> {
        self.joined(recipe, None).await
    }

    /// Ends everything in order: all participants leave, whatever they hold, and the sessions are
    /// closed. Who still holds is told so by [`Held::lost`]: drop the [`Held`] then. A host waits for that
    /// for one session timeout at most; then it closes the session, and others may hold the claim.
    ///
    /// # Cancellation
    /// It goes on in the background.
    pub async fn shut_down(&self) {
        self.shared.shutdown.cancel();
        self.keeper.join().await;
    }

    fn known(&self, recipe: &str) -> Result<&inner::Join, Error> {
        let epochs = &self.shared.epochs;
        epochs.recipe(recipe).ok_or_else(|| {
            let names = || epochs.recipes().map(|known| known.recipe.as_str());
            Error::UnknownRecipe {
                name: recipe.to_owned(),
                near: near(recipe, names()).map(str::to_owned),
                known: names().collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn arguments(&self, recipe: &str, call: &Call) -> Result<Arguments, Error> {
        let module = &self.known(recipe)?.module;
        module.arguments(&call.operation, &call.arguments).map_err(Error::Arguments)
    }

    /// Joins the recipe on an open session, and waits until one is open.
    async fn joined(&self, recipe: &str, deadline: Option<Instant>) -> Result<Participant, Error> {
        let module = self.known(recipe)?.module.clone();
        let epochs = &self.shared.epochs;
        let servers = || epochs.base().servers().to_owned();
        loop {
            match in_time(deadline, epochs.until_open()).await {
                Some(true) => {}
                Some(false) => {
                    return Err(match self.shared.refused.get() {
                        Some(error) => Error::Connect(error.clone()),
                        None => Error::Ending,
                    });
                }
                None => return Err(Error::NoSession { servers: servers() }),
            }
            match in_time(deadline, epochs.join(recipe)).await {
                Some(Ok(joined)) => return Ok(Participant::of(&self.shared, joined, module)),
                // The session has gone in this moment.
                Some(Err(JoinError::NoSession)) => {}
                Some(Err(error)) => return Err(Error::Join(error)),
                // Who waits has found all sessions full, and waits for another one. Only in the moment since
                // the look above can all have come to be in doubt.
                None => {
                    let servers = servers();
                    return Err(match epochs.sessions().len() {
                        0 => Error::NoSession { servers },
                        open => Error::NoRoom { open, servers },
                    });
                }
            }
        }
    }
}

/// What the future answers; nothing if the deadline passes first.
async fn in_time<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(future.await),
        // That the time is over is all that its error says.
        Some(deadline) => timeout_at(deadline, future).await.ok(),
    }
}

impl Shared {
    fn enter(&self, participant: &Arc<inner::Participant>) {
        self.participants().insert(participant.id().into(), Arc::downgrade(participant));
        // Those who come while all are asked to leave are asked as well.
        if self.shutdown.is_cancelled() {
            participant.leave();
        }
    }

    fn strike_out(&self, participant: &inner::Participant) {
        self.participants().remove(participant.id());
    }

    fn participants(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Weak<inner::Participant>>> {
        self.participants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
