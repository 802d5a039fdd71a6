//! How a server is set up.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::version::ServerVersion;
use crate::words::Word;

/// How a [`super::Server`] is set up. The defaults are Apache ZooKeeper's, but for the address:
/// a port that is free, on the loopback device.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen. A port of zero is one that is free.
    pub listen: Vec<SocketAddr>,
    /// The unit of time: sessions are checked once a tick.
    pub tick_time: Duration,
    /// The shortest session timeout granted. `None`: two ticks.
    pub min_session_timeout: Option<Duration>,
    /// The longest session timeout granted. `None`: twenty ticks.
    pub max_session_timeout: Option<Duration>,
    /// How many connections one address may have; zero is no limit. Besides, there are never more
    /// than leave the process enough descriptors for the server's files.
    pub max_client_connections: usize,
    /// The longest frame a client may send.
    pub jute_max_buffer: usize,
    /// The four-letter words that are answered.
    pub whitelist: BTreeSet<Word>,
    /// Whether nodes may have a time to live. Those that a data directory has are kept either way;
    /// Apache ZooKeeper drops them when it starts there, unless it has `extendedTypesEnabled=true`.
    pub extended_types: bool,
    /// Whether what exceeds a hard quota is refused. What quotas count is counted either way.
    pub enforce_quota: bool,
    /// `super:` and the digest of `super:<password>`: who proves this name may do everything.
    pub super_digest: Option<String>,
    /// Which ZooKeeper to be like where versions differ, as in what becomes of a persistent watch
    /// when the same session reads the path and leaves another.
    pub version: ServerVersion,
    /// How often containers and nodes with a time to live are looked through.
    pub container_check_interval: Duration,
    /// Where the state outlives the process, in Apache ZooKeeper's formats: see [`crate::files`].
    /// `None`: it does not. Session passwords are then drawn by lot; with a directory they follow
    /// from the session's id as Apache ZooKeeper has it, so that sessions can be handed over.
    ///
    /// How the start went is told by [`super::Server::recovery`]. A disk that fails ends the server:
    /// await [`super::Server::stopped`], and [`super::Server::failure`] says why.
    pub data_dir: Option<PathBuf>,
    /// After how many txns a snapshot is begun.
    pub snapshot_count: u64,
    /// How many bytes the log is made longer by at a time, where the disk has them.
    pub preallocation: u64,
    /// Whether to wait for the disk before a write is answered. Without, a power cut loses what
    /// was answered, though the end of the process does not.
    pub force_sync: bool,
    /// The zxid before the first txn, unless a data directory has one. A server in memory that
    /// starts anew on an address which clients still know must start higher than they have seen,
    /// or it must refuse them.
    pub first_zxid: i64,
    /// How many requests of a connection may be unanswered before no more of it is read.
    pub max_outstanding: usize,
    /// How long a client may take for its first frame, or a four-letter word and its answer. From
    /// then on its session's timeout counts.
    pub first_frame_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            tick_time: Duration::from_secs(3),
            min_session_timeout: None,
            max_session_timeout: None,
            max_client_connections: 60,
            jute_max_buffer: 0xf_ffff,
            whitelist: BTreeSet::from([Word::Srvr]),
            extended_types: false,
            enforce_quota: false,
            super_digest: None,
            version: ServerVersion::default(),
            container_check_interval: Duration::from_secs(60),
            data_dir: None,
            snapshot_count: 100_000,
            // Written, not only claimed, so that forcing a txn does not force the file's layout.
            preallocation: 4 << 20,
            force_sync: true,
            first_zxid: 0,
            // Apache's limit for all connections together.
            max_outstanding: 1000,
            // Apache's `zookeeper.nio.sessionlessCnxnTimeout`.
            first_frame_timeout: Duration::from_secs(10),
        }
    }
}

impl ServerOptions {
    /// What tests want: ticks of a tenth of a second, no limit of connections, every four-letter
    /// word, and nodes with a time to live.
    pub fn for_tests() -> Self {
        ServerOptions {
            tick_time: Duration::from_millis(100),
            max_session_timeout: Some(Duration::from_secs(60)),
            max_client_connections: 0,
            whitelist: BTreeSet::from(Word::ALL),
            extended_types: true,
            ..ServerOptions::default()
        }
    }

    /// The tick in milliseconds, at least one.
    pub(crate) fn tick_ms(&self) -> u64 {
        u64::try_from(self.tick_time.as_millis()).unwrap_or(u64::MAX).clamp(1, MAX_MS)
    }

    pub(crate) fn min_session_timeout_ms(&self) -> i32 {
        timeout_ms(self.min_session_timeout, self.tick_ms().saturating_mul(2))
    }

    pub(crate) fn max_session_timeout_ms(&self) -> i32 {
        timeout_ms(self.max_session_timeout, self.tick_ms().saturating_mul(20))
    }
}

/// A timeout travels as a signed number of 32 bits.
const MAX_MS: u64 = 0x7fff_ffff;

fn timeout_ms(timeout: Option<Duration>, default: u64) -> i32 {
    let ms = timeout.map_or(default, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX));
    i32::try_from(ms.min(MAX_MS)).unwrap_or(i32::MAX)
}
