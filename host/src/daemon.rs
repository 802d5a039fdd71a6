//! The daemon: which participants should run.
//!
//! [`prepare`](Prepared::new) checks a config against the modules it names and loads them all;
//! [`run`] keeps sessions open one after another, and for every recipe with a `run` a task that
//! keeps one participant on the newest of them. The tasks share nothing but the session: whatever
//! holds one of them up, a module that never stops talking or a command that cannot be killed, the
//! others go on.

mod prepare;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use prepare::{PrepareError, Prepared, findings_about_modules};

use crate::holding::Keep;
use crate::session::ConnectError;
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
pub async fn run(prepared: Prepared, shutdown: &CancellationToken) -> Result<(), ConnectError> {
    let Prepared { epochs, kept } = prepared;
    let epochs = Arc::new(epochs);
    let recipes = Tasks::on(Handle::current());
    for kept in kept {
        recipes.spawn("recipe", Keep::new(Arc::clone(&epochs), kept).run());
    }
    let outcome = epochs.keep_open(shutdown).await;
    // No other session comes: a recipe that has ended its part in this one is done.
    recipes.join().await;
    epochs.close().await;
    epochs.host().shut_down().await;
    outcome
}

/// Who keeps a participant, in words for other contenders.
fn owner(recipe: &str) -> String {
    let host = rustix::system::uname();
    format!("{recipe}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}
