//! What a host is opened with.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Host, Recipe, Shared};
use crate::base::{Base, BaseOptions, LoadError, Sessions, user_cache};
use crate::config::{BadValue, ConnectString, DEFAULT_SESSIONS, Engine, SessionTimeout};
use crate::epochs::Epochs;
use crate::guest::values::ValueErrors;
use crate::guest::{CompileCache, EngineError};
use crate::session::{ConnectError, ConnectOptions};
use crate::tasks::Tasks;

/// For how long a server is looked for at first: an election takes seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a host is opened with.
#[derive(Debug, Clone)]
pub struct Builder {
    connect: ConnectOptions,
    connect_timeout: Duration,
    participants: u32,
    sessions: u32,
    cache: CompileCache,
    recipes: Vec<(String, Recipe)>,
}

/// Why a host cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The engine for modules cannot be had.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// There is no such module, or this host cannot run it.
    #[error("recipe {recipe:?}: {source}")]
    Module {
        /// The recipe.
        recipe: String,
        /// Why.
        source: LoadError,
    },
    /// A setting would not be good in a config file either.
    #[error("{what}: {source}")]
    Setting {
        /// The setting.
        what: String,
        /// What is wrong with it.
        source: BadValue,
    },
    /// A recipe's mount is no path of a znode, or is the whole ensemble.
    #[error("recipe {recipe:?}: the mount {mount:?}: {source}")]
    Mount {
        /// The recipe.
        recipe: String,
        /// The mount.
        mount: String,
        /// Why.
        source: BadValue,
    },
    /// A module does not take its configuration.
    #[error("recipe {recipe:?}: {source}")]
    Config {
        /// The recipe.
        recipe: String,
        /// Why.
        source: ValueErrors,
    },
    /// There is no session: nobody answered in time, or a server refuses this host.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Builder {
    pub(super) fn new(servers: String) -> Self {
        Builder {
            connect: ConnectOptions::new(servers, SessionTimeout::default().get()),
            connect_timeout: CONNECT_TIMEOUT,
            participants: Engine::default().participants,
            sessions: DEFAULT_SESSIONS,
            cache: user_cache(),
            recipes: Vec::new(),
        }
    }

    /// Adds a recipe under a name of your choice, which stands in logs.
    #[must_use]
    pub fn recipe(mut self, name: impl Into<String>, recipe: Recipe) -> Self {
        self.recipes.push((name.into(), recipe));
        self
    }

    /// For how long the servers keep the session of a host that they do not hear of: 10 s, if nothing is
    /// said. Who holds and is cut off stops before.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.connect.session_timeout = timeout;
        self
    }

    /// Connects with these options: credentials, TLS, and the ACL of what is created.
    #[must_use]
    pub fn connect(self, connect: ConnectOptions) -> Self {
        Builder { connect, ..self }
    }

    /// For how long [`open`](Self::open) tries to reach a server: 10 s, if nothing is said. Without any
    /// time it tries each server once.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Builder { connect_timeout, ..self }
    }

    /// How many participants there can be at a time: 10,000, if nothing is said. Each takes address space
    /// from the start.
    #[must_use]
    pub fn participants(self, participants: u32) -> Self {
        Builder { participants, ..self }
    }

    /// How many sessions there can be at a time: 16, if nothing is said. Another one is opened when those
    /// that are open are full.
    #[must_use]
    pub fn sessions(self, sessions: u32) -> Self {
        Builder { sessions, ..self }
    }

    /// Where compiled modules are kept: in the user's cache directory, if nothing is said.
    #[must_use]
    pub fn cache(self, cache: CompileCache) -> Self {
        Builder { cache, ..self }
    }

    /// Loads the recipes and opens a session, on the runtime that this is called in. A module that is not
    /// in the cache is compiled first, which keeps the thread for tenths of a second.
    ///
    /// # Errors
    /// A recipe is wrong, or there is no session in time.
    ///
    /// # Cancellation
    /// Nothing is left.
    pub async fn open(self) -> Result<Host, OpenError> {
        let Builder { connect, connect_timeout, participants, sessions, cache, recipes } =
            self.checked()?;
        let memory = recipes.iter().map(|(_, recipe)| recipe.memory()).max().unwrap_or(0);
        let sessions = Sessions::at_most(sessions);
        let base = Base::new(BaseOptions { participants, memory, cache, connect, sessions })?;
        let joins = recipes.into_iter().map(|(name, recipe)| recipe.load(&name, &base));
        let joins = joins.collect::<Result<Vec<_>, _>>()?;
        let mut epochs = Epochs::new(base);
        joins.into_iter().for_each(|join| epochs.load(join));
        epochs.open_within(connect_timeout, |_| {}).await?;
        let shared = Arc::new(Shared {
            epochs: Arc::new(epochs),
            shutdown: CancellationToken::new(),
            refused: Arc::default(),
            participants: Mutex::default(),
        });
        let keeper = Tasks::on(Handle::current());
        keeper.spawn("host", keep(&shared));
        Ok(Host { shared, keeper })
    }

    /// The same, with the servers as the client takes them.
    fn checked(mut self) -> Result<Self, OpenError> {
        let wrong = |what: &str| {
            let what = what.to_owned();
            move |source| OpenError::Setting { what, source }
        };
        let servers: ConnectString = self.connect.hosts.parse().map_err(wrong("servers"))?;
        servers.as_str().clone_into(&mut self.connect.hosts);
        let timeout = SessionTimeout::of(self.connect.session_timeout);
        timeout.map_err(wrong("session timeout"))?;
        for (what, count) in [("participants", self.participants), ("sessions", self.sessions)] {
            if count == 0 {
                let none = BadValue::new("there can be none", "allow one at least");
                return Err(wrong(what)(none));
            }
        }
        let mut names = BTreeSet::new();
        if let Some((name, _)) = self.recipes.iter().find(|(name, _)| !names.insert(name)) {
            let twice = BadValue::new("there are two of that name", "give each a name of its own");
            return Err(wrong(&format!("recipe {name:?}"))(twice));
        }
        Ok(self)
    }
}

/// Keeps a session open until the host is to end, and ends everything in order then, or without those
/// who do not let go of what they hold in time. It keeps nothing alive that ends the host.
fn keep(shared: &Arc<Shared>) -> impl Future<Output = ()> + Send + 'static {
    let (epochs, refused) = (Arc::clone(&shared.epochs), Arc::clone(&shared.refused));
    let (shutdown, shared) = (shared.shutdown.clone(), Arc::downgrade(shared));
    async move {
        if let Err(error) = epochs.keep_open(&shutdown).await {
            tracing::error!(%error, "no session any more");
            // It is set here alone.
            drop(refused.set(error));
            shutdown.cancelled().await;
        }
        // Where nothing is shared any more, every participant was asked to leave when it was dropped.
        if let Some(shared) = shared.upgrade() {
            shared.participants().values().filter_map(|it| it.upgrade()).for_each(|it| it.leave());
        }
        let base = epochs.base();
        // Of the timeouts that the servers have granted, which may be others than was asked for.
        let granted = epochs.sessions().into_iter().map(|session| session.timing().timeout());
        let patience = granted.max().unwrap_or_default();
        if timeout(patience, base.shut_down()).await.is_err() {
            tracing::warn!(
                "not all have let go of what they hold in time: the sessions are closed"
            );
        }
        epochs.close().await;
        base.shut_down().await;
    }
}
