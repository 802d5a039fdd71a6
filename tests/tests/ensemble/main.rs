//! Three servers of Apache ZooKeeper, started once for all that is asked of them here: whether the
//! simulation's three say the same, and whether the session's rules hold on more than one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod connecting;
mod model;
mod rules;

use std::sync::Arc;

use anyhow::Result;
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};
use wok_tests::zookeeper::{Ensemble, Options};

/// How long a follower that is held may hear nothing before it and its leader give each other up,
/// in ticks: longer than any test holds one.
const SYNC_LIMIT: &str = "240";

/// The ensemble, for one test at a time: they stop its servers.
async fn ensemble() -> Result<OwnedMutexGuard<Ensemble>> {
    static ENSEMBLE: OnceCell<Arc<Mutex<Ensemble>>> = OnceCell::const_new();
    let start = async || {
        // The simulation's servers grant sessions of 1 s to 40 s.
        let options = Options::default()
            .setting("minSessionTimeout", "1000")
            .setting("maxSessionTimeout", "40000")
            .setting("syncLimit", SYNC_LIMIT);
        anyhow::Ok(Arc::new(Mutex::new(Ensemble::start_with(3, options).await?)))
    };
    let ensemble = Arc::clone(ENSEMBLE.get_or_try_init(start).await?);
    Ok(ensemble.lock_owned().await)
}
