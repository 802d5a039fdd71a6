//! The daemon: which participants should run.
//!
//! [`prepare`](Prepared::new) checks a config against the modules it names and loads them all;
//! [`run`] keeps sessions open one after another, and for every recipe with a `run` a task that
//! keeps one participant on one of them. The tasks share nothing but the session: whatever
//! holds one of them up, a module that never stops talking or a command that cannot be killed, the
//! others go on.

mod prepare;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use prepare::{PrepareError, Prepared, findings_about_modules};

use crate::api::{Api, BindError};
use crate::descriptors;
use crate::holding::Keep;
use crate::logbook::Logbook;
use crate::session::ConnectError;
use crate::tasks::Tasks;

/// Why the daemon ended before it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Apps cannot reach it.
    #[error(transparent)]
    Api(#[from] BindError),
    /// The servers refuse it.
    #[error(transparent)]
    Refused(#[from] ConnectError),
}

/// Runs until `shutdown` is cancelled, then releases everything in order: commands are stopped,
/// participants leave, the session is closed.
///
/// A lost session is followed by a new one on which every recipe starts afresh, as soon as nothing
/// is left of its command.
///
/// # Errors
/// The API cannot be served, or the servers refuse the credentials: trying again would not help.
///
/// # Cancellation
/// Do not drop it; cancel `shutdown`.
pub async fn run(
    prepared: Prepared,
    logbook: Arc<Logbook>,
    shutdown: &CancellationToken,
) -> Result<(), RunError> {
    let Prepared { epochs, kept, api, served } = prepared;
    let epochs = Arc::new(epochs);
    let apps = Tasks::on(Handle::current());
    if let Some(config) = api {
        // Three for each app on the socket: two of its connection, one of its process. Two for each over TCP,
        // which has places of its own.
        let most = descriptors::raise();
        let each = if config.http.is_some() { 5 } else { 3 };
        let wanted = u64::from(config.connections) * each;
        if let Some(most) = most.filter(|most| *most < wanted) {
            tracing::warn!(
                open_files = most,
                wanted,
                connections = config.connections,
                "not all connections of the API can be served: raise the limit of open files"
            );
        }
        let api = Api::bind(&config).await?;
        tracing::info!(socket = %api.path().display(), "the API is served");
        let (epochs, stopping) = (Arc::clone(&epochs), epochs.stopping().clone());
        apps.spawn("api", async move { api.serve(epochs, served, logbook, &stopping).await });
    }
    let recipes = Tasks::on(Handle::current());
    for kept in kept {
        recipes.spawn("recipe", Keep::new(Arc::clone(&epochs), kept).run());
    }
    let outcome = epochs.keep_open(shutdown).await;
    // No other session comes: a recipe that has ended its part in this one is done.
    recipes.join().await;
    apps.join().await;
    epochs.close().await;
    epochs.base().shut_down().await;
    Ok(outcome?)
}
