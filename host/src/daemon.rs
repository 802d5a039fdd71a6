//! The daemon: which participants should run, and what runs while they hold.
//!
//! [`prepare`](Prepared::new) checks a config against the modules it names; [`run`] keeps sessions
//! open one after another, and on each of them one participant for every recipe with a `run`.

mod acquire;
mod backoff;
mod held_command;
mod keep;
mod prepare;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use acquire::{Acquire, Attempt, acquire};
use backoff::Backoff;
pub use held_command::{Held, HeldCommand, HeldEnd, Order, run_while_held};
use keep::keep;
pub use prepare::{Kept, PrepareError, Prepared, findings_about_modules};

use crate::config::spell_duration;
use crate::host::Host;
use crate::session::{ConnectError, Session};

/// Runs until `shutdown` is cancelled, then releases everything in order: commands are stopped,
/// participants leave, the session is closed.
///
/// A lost session is followed by a new one on which every recipe starts afresh.
///
/// # Errors
/// The servers refuse the credentials: trying again would not help.
///
/// # Cancellation
/// Do not drop it; cancel `shutdown`.
pub async fn run(prepared: &Prepared, shutdown: &CancellationToken) -> Result<(), ConnectError> {
    let host = prepared.host();
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
        epoch(prepared, host, &session, shutdown).await;
        session.close().await;
        tracing::info!(session = id, "session ended");
    }
    host.shut_down().await;
    Ok(())
}

/// One session epoch: every recipe's participant, until the session is lost or all are told to
/// stop.
async fn epoch(
    prepared: &Prepared,
    host: &Host,
    session: &Arc<Session>,
    shutdown: &CancellationToken,
) {
    let stop = shutdown.child_token();
    let recipes = prepared.kept().map(|kept| keep(host, session, kept, &stop));
    let all = async {
        futures_util::future::join_all(recipes).await;
        // With nothing to keep, the session is kept all the same.
        stop.cancelled().await;
    };
    let losing = async {
        let loss = session.until_lost().await;
        if !shutdown.is_cancelled() {
            tracing::warn!(reason = loss.as_str(), "session lost");
        }
        stop.cancel();
        std::future::pending().await
    };
    // To the end of all: what depends on a lost session ends by itself, and is waited for.
    tokio::select! {
        () = all => {}
        () = losing => {}
    }
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
