//! One server for all the tests of a binary that need nothing special.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

use super::options::Options;
use super::server::Server;

/// The test binary's own standalone server, started at the first call. Tests on it stay apart by
/// [`unique_path`] and never stop it; it ends with the process.
///
/// # Panics
/// If it does not start: without it no test that asks for it can pass.
#[allow(clippy::panic, reason = "this is test code, and the remedy is in the message")]
pub async fn shared() -> &'static Server {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    let started = SERVER.get_or_try_init(|| Server::start(Options::default())).await;
    started.unwrap_or_else(|error| panic!("start the shared ZooKeeper: {error:#}"))
}

/// A path that no other test uses, named after the calling test. It does not exist yet.
pub fn unique_path() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed").replace("::", "-");
    format!("/{test}-{}-{count}", std::process::id())
}
