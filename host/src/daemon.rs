//! The daemon: which participants should run, and what runs while they hold.
//!
//! [`prepare`](Prepared::new) checks a config against the modules it names; [`run`] keeps sessions
//! open one after another, and for every recipe with a `run` a task that keeps one participant on
//! the newest of them. The tasks share nothing but the session: whatever holds one of them up, a
//! module that never stops talking or a command that cannot be killed, the others go on.

mod acquire;
mod backoff;
mod epoch;
mod held_command;
mod keep;
mod prepare;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use acquire::{Acquire, Attempt, acquire};
use backoff::Backoff;
use epoch::Epoch;
pub use held_command::{Held, HeldCommand, HeldEnd, Order, run_while_held};
use keep::Keep;
pub use prepare::{Kept, PrepareError, Prepared, findings_about_modules};

use crate::config::spell_duration;
use crate::host::Host;
use crate::session::{ConnectError, Session};
use crate::tasks::Tasks;

/// Runs until `shutdown` is cancelled, then releases everything in order: commands are stopped,
/// participants leave, the session is closed.
///
/// A lost session is followed by a new one on which every recipe starts afresh, as soon as nothing
/// is left of its command.
///
/// # Errors
/// The servers refuse the credentials: trying again would not help.
///
/// # Cancellation
/// Do not drop it; cancel `shutdown`.
pub async fn run(prepared: &Prepared, shutdown: &CancellationToken) -> Result<(), ConnectError> {
    let host = prepared.host();
    let recipes = Tasks::on(Handle::current());
    let (epochs, newest) = watch::channel(None);
    for kept in prepared.kept() {
        let keep = Keep::new(host.tasks().clone(), kept.clone());
        recipes.spawn("recipe", keep.through(newest.clone()));
    }
    let last = open_sessions(host, &epochs, shutdown).await;
    // No other session comes: a recipe that has ended its part in this one is done.
    drop(epochs);
    recipes.join().await;
    if let Ok(Some(session)) = &last {
        close(session).await;
    }
    host.shut_down().await;
    last.map(drop)
}

/// Opens one session after another until it is told to stop; answers the one that is open then.
async fn open_sessions(
    host: &Host,
    epochs: &watch::Sender<Option<Epoch>>,
    shutdown: &CancellationToken,
) -> Result<Option<Arc<Session>>, ConnectError> {
    let mut backoff = Backoff::default();
    while !shutdown.is_cancelled() {
        let session = match shutdown.run_until_cancelled(host.open_session()).await {
            None => break,
            Some(Ok(session)) => session,
            Some(Err(
                refused @ (ConnectError::AuthFailed { .. } | ConnectError::Certificate { .. }),
            )) => {
                return Err(refused);
            }
            Some(Err(error)) => {
                let pause = backoff.next();
                tracing::warn!(%error, retry_in = spell(pause), "no session");
                shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
                continue;
            }
        };
        backoff.reset();
        let id = format!("{:#x}", session.id());
        tracing::info!(session = id, timeout = spell(session.timing().timeout()), "connected");
        let epoch = Epoch { session: Arc::clone(&session), over: shutdown.child_token() };
        epochs.send_replace(Some(epoch.clone()));
        let Some(loss) = shutdown.run_until_cancelled(session.until_lost()).await else {
            return Ok(Some(session));
        };
        tracing::warn!(reason = loss.as_str(), "session lost");
        // What depends on it ends by itself. Nobody waits for that here: the recipes that are done
        // with it go on with the next.
        epoch.over.cancel();
        close(&session).await;
    }
    Ok(None)
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

/// Who keeps a participant, in words for other contenders.
fn owner(recipe: &str) -> String {
    let host = rustix::system::uname();
    format!("{recipe}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}
