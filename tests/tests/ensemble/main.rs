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

/// What servers make of it when they hear nothing of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// They bear it for longer than any test holds one.
    Borne,
    /// They give each other up after four seconds.
    Noticed,
}

impl Silence {
    /// In ticks: for how long one that follows is borne, and one that begins to.
    fn limits(self) -> (u32, u32) {
        match self {
            Silence::Borne => (240, 20),
            // Those that look for a leader follow the one that is cut off first, and find out.
            Silence::Noticed => (8, 4),
        }
    }
}

/// An ensemble, for one test at a time: they stop its servers.
async fn ensemble(silence: Silence) -> Result<OwnedMutexGuard<Ensemble>> {
    type Shared = OnceCell<Arc<Mutex<Ensemble>>>;
    static BEARING: Shared = OnceCell::const_new();
    static NOTICING: Shared = OnceCell::const_new();
    let shared = match silence {
        Silence::Borne => &BEARING,
        Silence::Noticed => &NOTICING,
    };
    let start = async || {
        let (sync_limit, init_limit) = silence.limits();
        let options = Options::as_simulated(sync_limit, init_limit);
        anyhow::Ok(Arc::new(Mutex::new(Ensemble::start_with(3, options).await?)))
    };
    let ensemble = Arc::clone(shared.get_or_try_init(start).await?);
    Ok(ensemble.lock_owned().await)
}
