//! What a host is built on: an engine for modules, and the way to ZooKeeper.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::guest::{
    CompileCache, Engine, EngineError, EngineOptions, Limits, Module, ModuleError, Pace,
};
use crate::modules::{ModuleSource, SourceError};
use crate::session::{self, ConnectError, ConnectOptions, Session};
use crate::tasks::Tasks;

/// What a host sets aside, and how it reaches ZooKeeper.
#[derive(Debug, Clone)]
pub struct BaseOptions {
    /// Participants at a time.
    pub participants: u32,
    /// Bytes of memory of the largest participant.
    pub memory: u64,
    /// Where compiled modules are kept.
    pub cache: CompileCache,
    /// How to reach ZooKeeper.
    pub connect: ConnectOptions,
    /// How many sessions to keep there.
    pub sessions: Sessions,
}

/// How many sessions a host keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    /// Open at a time: another one is opened when those that are open are full.
    pub most: u32,
    /// How long one stays open that nobody uses, beside others.
    pub idle: Duration,
}

/// To open a session and to close it are two transactions; an idle one costs a `sync` in every tenth
/// of its timeout, and one of the server's connections. A minute bridges the pauses of work that
/// comes in waves, and gives the connection back soon after.
const IDLE: Duration = Duration::from_secs(60);

impl Sessions {
    /// So many at a time.
    pub fn at_most(most: u32) -> Self {
        Sessions { most, idle: IDLE }
    }
}

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It is no module for this host.
    #[error(transparent)]
    Module(#[from] ModuleError),
}

/// What a host is built on: an engine for modules, the way to ZooKeeper, and its tasks.
#[derive(Debug)]
pub struct Base {
    engine: Engine,
    connect: ConnectOptions,
    sessions: Sessions,
    tasks: Tasks,
}

impl Base {
    /// Sets a host up, on the runtime it is called in. Nothing connects yet.
    ///
    /// # Errors
    /// The engine or a thread cannot be had; the error names the config key to change.
    pub fn new(options: BaseOptions) -> Result<Self, EngineError> {
        let BaseOptions { participants, memory, cache, connect, sessions } = options;
        Ok(Base {
            engine: Engine::new(&EngineOptions {
                participants,
                memory,
                table_elements: Limits::default().table_elements,
                cache,
                pace: Pace::Clock,
            })?,
            connect,
            sessions,
            tasks: Tasks::on(Handle::current()),
        })
    }

    /// Loads a module, compiling it unless it is in the cache.
    ///
    /// # Errors
    /// It cannot be had, or it is no module for this host.
    pub fn load(&self, source: &ModuleSource, pin: Option<&[u8; 32]>) -> Result<Module, LoadError> {
        load(&self.engine, source, pin)
    }

    /// Opens a session, trying every server once. It lives on the runtime that this is called in.
    ///
    /// # Errors
    /// No server could be reached, or a server refused.
    pub async fn open_session(&self) -> Result<Arc<Session>, ConnectError> {
        session::open(&self.connect).await.map(Arc::new)
    }

    /// The host's tasks: participants, and what is done on their behalf.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// How many sessions it keeps.
    pub fn sessions(&self) -> Sessions {
        self.sessions
    }

    /// The servers that sessions are opened on.
    pub fn servers(&self) -> &str {
        &self.connect.hosts
    }

    /// Opens sessions on these servers from now on: `host:port`, separated by commas.
    pub fn connect_to(&mut self, hosts: String) {
        self.connect.hosts = hosts;
    }

    /// Waits until all participants have ended, which their owners have asked them to.
    pub async fn shut_down(&self) {
        self.tasks.join().await;
    }
}

/// Loads a module, compiling it unless it is in the engine's cache.
///
/// # Errors
/// It cannot be had, or it is no module for this host.
pub fn load(
    engine: &Engine,
    source: &ModuleSource,
    pin: Option<&[u8; 32]>,
) -> Result<Module, LoadError> {
    let bytes = source.read(pin)?;
    Ok(Module::load(engine, &source.name(), &bytes)?)
}

/// Where a user's compiled modules are kept: where `WOK_CACHE_DIR` says, else `wok` in the cache
/// directory of the XDG base directory specification. Nowhere for a user without a home.
pub fn user_cache() -> CompileCache {
    if let Some(directory) = std::env::var_os("WOK_CACHE_DIR").filter(|it| !it.is_empty()) {
        return CompileCache::In(PathBuf::from(directory));
    }
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    match given.or_else(home) {
        Some(directory) => CompileCache::In(directory.join("wok")),
        None => CompileCache::Off,
    }
}

/// Who keeps a participant of that recipe, in words for other contenders.
pub(crate) fn owner(recipe: &str) -> String {
    let host = rustix::system::uname();
    format!("{recipe}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}
