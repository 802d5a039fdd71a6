//! What the benchmarks stand on: one warm server that syncs to the disk, and a runtime for each of
//! the contenders.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wok::base::{Base, BaseOptions, Sessions};
use wok::guest::CompileCache;
use wok::session::{ConnectOptions, Session};
use wok_tests::scratch;
use wok_tests::zookeeper::{Fsync, Options, Server};

use crate::native;

/// The same for all contenders.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Memory of a participant, the default of `limits.memory`.
const MEMORY: u64 = 16 << 20;

/// Cycles that a fresh server serves before anything is measured: its compiler has settled then.
const WARM_UP_TASKS: usize = 16;
const WARM_UP_CYCLES: usize = 1_000;

/// What the benchmarks stand on.
pub(crate) struct Ground {
    pub(crate) server: Server,
    /// As the daemon's.
    pub(crate) wok: Runtime,
    /// As `#[tokio::main]` makes it.
    pub(crate) native: Runtime,
    cache: TempDir,
}

impl Ground {
    /// Starts a server and warms it up.
    pub(crate) fn new() -> Result<Self> {
        let (wok, native) = (Runtime::new()?, Runtime::new()?);
        let server = native.block_on(Server::start(server_options()))?;
        let ground = Ground { server, wok, native, cache: scratch::dir()? };
        ground.warm_up()?;
        Ok(ground)
    }

    /// A host that keeps compiled modules where all hosts of this run find them.
    pub(crate) fn host(&self, participants: u32) -> Result<Base> {
        host(&self.wok, self.server.address(), self.cache(), participants)
    }

    pub(crate) fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// A session of the host's.
    pub(crate) fn session(&self, host: &Base) -> Result<Arc<Session>> {
        Ok(self.wok.block_on(host.open_session())?)
    }

    /// One of the server's own counters.
    pub(crate) fn counter(&self, name: &str) -> Result<f64> {
        self.native.block_on(self.server.counter(name))
    }

    fn warm_up(&self) -> Result<()> {
        let address = self.server.address().to_owned();
        self.native.block_on(async move {
            let client = native::connect(&address).await?;
            let lines = (0..WARM_UP_TASKS).map(|task| {
                let client = client.clone();
                async move {
                    let lock = native::Lock::new(client, &format!("/warm-up-{task}")).await?;
                    for _ in 0..WARM_UP_CYCLES {
                        lock.cycle_alone().await?;
                    }
                    anyhow::Ok(())
                }
            });
            try_join_all(lines).await.map(drop)
        })
    }
}

/// A server as in production, but for its address: it syncs, and its compiler is not held back.
pub(crate) fn server_options() -> Options {
    Options::default()
        .fsync(Fsync::On)
        .property("zookeeper.preAllocSize", "65536")
        .jvm_option("-Xmx1g")
        .jvm_option("-Xms1g")
        .jvm_option("-XX:TieredStopAtLevel=4")
}

/// A host on this runtime.
pub(crate) fn host(
    runtime: &Runtime,
    address: &str,
    cache: &Path,
    participants: u32,
) -> Result<Base> {
    let _on_this_runtime = runtime.enter();
    let cache = CompileCache::In(cache.to_owned());
    let connect = ConnectOptions::new(address, SESSION_TIMEOUT);
    let sessions = Sessions::at_most(1);
    Ok(Base::new(BaseOptions { participants, memory: MEMORY, cache, connect, sessions })?)
}
