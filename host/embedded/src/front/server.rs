//! A server on sockets.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::actor::{Actor, Keeping};
use super::clock::Clock;
use super::connection::Wires;
use super::descriptors::most_connections;
use super::journal::{FileJournal, Journal, Opened};
use super::listener::{self, Census};
use super::options::ServerOptions;
use super::snapshots::Snapshots;
use super::status::Status;
use super::tasks::Tasks;
use crate::files::{FilesError, Recovery};
use crate::prepare::LeaderOptions;
use crate::replica::Replica;
use crate::serve::MemberOptions;
use crate::session::{Passwords, SessionIds};
use crate::standalone::Standalone;
use crate::words::Settings;

/// Messages between the connections and the state's task. When it is full, connections wait.
const INBOX: usize = 1024;

/// Why a server does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no address to listen on.
    #[error("no address to listen on")]
    NoAddress,
    /// An address cannot be listened on.
    #[error("listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system gave no random bytes for session passwords.
    #[error("draw the secret of session passwords: {0}")]
    Secret(getrandom::Error),
    /// The data directory cannot be used.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// No thread or runtime could be had.
    #[error("start a runtime")]
    Runtime(#[source] io::Error),
}

impl StartError {
    /// Whether the server may start another time with the same options.
    pub fn may_pass(&self) -> bool {
        match self {
            StartError::NoAddress => false,
            StartError::Files(error) => error.may_pass(),
            StartError::Listen { .. } | StartError::Secret(_) | StartError::Runtime(_) => true,
        }
    }
}

/// A running server. Its state ends with it, unless it has a data directory.
///
/// Dropping it asks its tasks to end; [`Server::stop`] also waits until they have.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    tasks: Tasks,
    status: Status,
}

impl Server {
    /// Starts a server in the current runtime, and returns once it accepts connections.
    ///
    /// # Errors
    /// See [`StartError`].
    ///
    /// # Cancellation
    /// Nothing is left running; a data directory may be free a moment later only.
    pub async fn start(options: ServerOptions) -> Result<Server, StartError> {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for address in options.listen.iter().copied() {
            let failed = |source| StartError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            addresses.push(listener.local_addr().map_err(failed)?);
            listeners.push(listener);
        }
        let Some(first) = addresses.first() else { return Err(StartError::NoAddress) };
        let clock = Clock::start();
        let opened = match &options.data_dir {
            Some(root) => Some(FileJournal::open(root, &options).await?),
            None => None,
        };
        let (journal, replica, recovery) = match opened {
            Some(Opened { journal, replica, recovery }) => {
                (Journal::Files(journal), replica, Some(recovery))
            }
            None => (Journal::Memory, Replica::new(), None),
        };
        let state = state(&options, replica, clock)?;
        let last_zxid = state.member().replica().last_zxid();
        let snapshots = Snapshots::new(options.snapshot_count, last_zxid);
        let tasks = Tasks::default();
        let status = Status::new(recovery, tasks.stop().clone());
        let keeping = Keeping { journal, snapshots, status: status.clone() };
        let settings = Settings::new(&options, first.port(), clock.now());
        let (inbox, messages) = mpsc::channel(INBOX);
        let actor = Actor::new(state, keeping, clock, settings, options.max_outstanding.max(1));
        let stop = tasks.stop().clone();
        tasks.start(actor.run(messages, options.container_check_interval, stop.clone()));
        let census = Census::new(options.max_client_connections, most_connections());
        for listener in listeners {
            let wires = Wires {
                inbox: inbox.clone(),
                jute_max_buffer: options.jute_max_buffer,
                max_outstanding: options.max_outstanding.max(1),
                first_frame_timeout: options.first_frame_timeout,
                clock,
                stop: stop.clone(),
            };
            tasks.start(listener::run(listener, census.clone(), wires, tasks.clone()));
        }
        Ok(Server { addresses, tasks, status })
    }

    /// Where it listens, in the order of the options.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it listens, as clients want it: `host:port`, separated by commas.
    pub fn connect_string(&self) -> String {
        self.addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
    }

    /// What the start made of the data directory: what it read, and what it had to cut off. `None`
    /// without one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.status.recovery()
    }

    /// Why the server ended by itself: its log could not be written or forced. `None` while it
    /// runs, and if it was stopped.
    pub fn failure(&self) -> Option<&FilesError> {
        self.status.failure()
    }

    /// Why the newest snapshot could not be written. `None` if it could, or there was none yet. The
    /// server goes on: its logs are longer, and are read at the next start.
    pub fn snapshot_failure(&self) -> Option<String> {
        self.status.snapshot_failure()
    }

    /// Ends once the server does, by itself or by [`Server::stop`].
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn stopped(&self) {
        self.status.stopped().await;
    }

    pub(crate) fn status(&self) -> &Status {
        &self.status
    }

    /// Closes all connections and waits until every task has ended.
    ///
    /// # Cancellation
    /// It still ends, but nobody has waited for it.
    pub async fn stop(self) {
        self.tasks.join().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.stop().cancel();
    }
}

fn state(
    options: &ServerOptions,
    replica: Replica,
    clock: Clock,
) -> Result<Standalone, StartError> {
    let passwords = if options.data_dir.is_some() {
        Passwords::LikeApache
    } else {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(StartError::Secret)?;
        Passwords::Secret(secret)
    };
    let now = clock.now();
    let leader = LeaderOptions {
        tick_ms: options.tick_ms(),
        extended_types: options.extended_types,
        never_used_container_ms: None,
        enforce_quota: options.enforce_quota,
    };
    let member = MemberOptions {
        server_id: 0,
        min_session_timeout_ms: options.min_session_timeout_ms(),
        max_session_timeout_ms: options.max_session_timeout_ms(),
        version: options.version,
        super_digest: options.super_digest.clone(),
        passwords,
        session_ids: replica
            .sessions()
            .keys()
            .fold(SessionIds::new(0, now.wall_ms), |ids, session_id| ids.past(*session_id)),
    };
    // A gap in the log would look as if txns were missing.
    let zxid = if options.data_dir.is_some() { 0 } else { options.first_zxid };
    Ok(Standalone::new(leader, member, replica, zxid, now))
}
