//! Waiting for facts. The bounds here stop a hang; they say nothing about how long anything should
//! take.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// How long a fact may keep a test waiting: far beyond what a loaded machine needs, also to compile a
/// recipe; short enough to fail before a user who runs the tests gives up.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// What is promised at once takes less than this on a busy machine, too. wok waits for longer
/// wherever it waits by default.
pub const AT_ONCE: Duration = Duration::from_secs(10);

/// How often a fact is looked for that nothing announces.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Awaits `future`, at most [`PATIENCE`].
///
/// # Errors
/// If it takes longer; `what` completes the sentence "waited in vain for ...".
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(PATIENCE, future).await.map_err(|_| in_vain(what))
}

/// Looks again and again until `look` answers with a value, at most [`PATIENCE`]. For facts that
/// nothing announces: a line in a file, a process that is gone.
///
/// # Errors
/// If it takes longer, or if `look` fails.
pub async fn eventually<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        // A look may itself hang, for instance on a server that accepts and never answers.
        if let Some(fact) = within(what, look()).await?? {
            return Ok(fact);
        }
        if start.elapsed() > PATIENCE {
            return Err(in_vain(what));
        }
    }
}

fn in_vain(what: &str) -> anyhow::Error {
    anyhow!("waited in vain for {what}, for {} s", PATIENCE.as_secs())
}
