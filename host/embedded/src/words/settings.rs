//! What the words tell of how the server is set up.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Word;
use crate::files;
use crate::front::ServerOptions;
use crate::time::Now;
use crate::version::ServerVersion;

/// How the server is set up, for those who ask.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(super) whitelist: BTreeSet<Word>,
    pub(super) started: Now,
    version_dir: Option<PathBuf>,
    version: ServerVersion,
    port: u16,
    tick_ms: u64,
    max_client_connections: usize,
    min_session_timeout_ms: i32,
    max_session_timeout_ms: i32,
}

impl Settings {
    pub(crate) fn new(options: &ServerOptions, port: u16, started: Now) -> Self {
        Settings {
            whitelist: options.whitelist.clone(),
            started,
            version_dir: options.data_dir.as_deref().map(files::version_dir),
            version: options.version,
            port,
            tick_ms: options.tick_ms(),
            max_client_connections: options.max_client_connections,
            min_session_timeout_ms: options.min_session_timeout_ms(),
            max_session_timeout_ms: options.max_session_timeout_ms(),
        }
    }

    /// Clients take the first word, up to the comma, for the version.
    pub(super) fn version_text(&self) -> String {
        format!("{}, built on 1970-01-01 00:00 UTC", self.version.text())
    }

    pub(super) fn dirs(&self) -> String {
        let size = self.data_size();
        format!("datadir_size: {size}\nlogdir_size: {size}\n")
    }

    fn data_size(&self) -> u64 {
        self.version_dir.as_deref().map_or(0, files::size_of)
    }

    pub(super) fn conf(&self) -> String {
        let directory = self.version_dir.as_deref().unwrap_or(Path::new("")).display();
        let size = self.data_size();
        format!(
            "clientPort={}\n\
             secureClientPort=-1\n\
             dataDir={directory}\n\
             dataDirSize={size}\n\
             dataLogDir={directory}\n\
             dataLogSize={size}\n\
             tickTime={}\n\
             maxClientCnxns={}\n\
             minSessionTimeout={}\n\
             maxSessionTimeout={}\n\
             clientPortListenBacklog=-1\n\
             serverId=0\n",
            self.port,
            self.tick_ms,
            self.max_client_connections,
            self.min_session_timeout_ms,
            self.max_session_timeout_ms
        )
    }

    pub(super) fn envi(&self) -> String {
        let mut text = "Environment:\n".to_owned();
        let facts = [
            ("zookeeper.version", self.version_text()),
            ("os.name", std::env::consts::OS.to_owned()),
            ("os.arch", std::env::consts::ARCH.to_owned()),
        ];
        for (name, value) in facts {
            // A string takes everything.
            writeln!(text, "{name}={value}").ok();
        }
        text
    }
}
