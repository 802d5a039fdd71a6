//! `wok zookeeper`: a server for development and tests.

mod recovered;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use wok_embedded::{Server, ServerOptions, ServerVersion, StartError};

use super::connect::duration;
use super::exit::Failure;
use super::output::Printer;
use super::signals;
use crate::tasks::Tasks;

/// Serve ZooKeeper to any client, for development and tests. Nothing else needs to be installed.
///
/// It is one server. It cannot show what an ensemble does: stale reads, sessions that move to
/// another server, a leader that is lost, service that goes on when a machine does not. Move to an
/// ensemble of three when anything depends on the claims.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  wok zookeeper\n  wok zookeeper --listen 127.0.0.1:0\n  wok zookeeper --data-dir ./zookeeper\n  \
    wok lock --connect 127.0.0.1:2181 /locks/a -- ./job.sh\n  echo mntr | nc 127.0.0.1 2181\n\n\
    Without --data-dir the state is in memory and ends with the process. SIGTERM or SIGINT ends it \
    in order."
)]
pub(super) struct Arguments {
    /// Where to listen; port 0 is one that is free. Give it again for more addresses.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2181", value_parser = address)]
    listen: Vec<SocketAddr>,

    /// Keep the state here, in Apache ZooKeeper's own formats: forced to the disk before any reply.
    /// Apache ZooKeeper starts on that directory, too, which is the way to an ensemble.
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,

    /// The unit of time, 50ms at least. Sessions are granted timeouts of 2 to 20 ticks.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = tick)]
    tick_time: Duration,

    /// Which Apache ZooKeeper to be like where they differ. 3.9 tells the zxid of every event, and
    /// has the watches of one session on one path side by side, where in 3.8 the last one takes the
    /// place of the one before.
    #[arg(long, value_name = "VERSION", value_enum, default_value = "3.8")]
    like: Like,

    /// Let nodes have a time to live, as Apache ZooKeeper does with `extendedTypesEnabled=true`.
    /// Without that it drops such nodes when it takes the directory over.
    #[arg(long)]
    extended_types: bool,

    /// Refuse what exceeds a hard quota, as Apache ZooKeeper does with `enforceQuota=true`.
    /// Nodes and bytes are counted either way.
    #[arg(long)]
    enforce_quota: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Like {
    #[value(name = "3.8")]
    V3_8,
    #[value(name = "3.9")]
    V3_9,
}

impl From<Like> for ServerVersion {
    fn from(like: Like) -> Self {
        match like {
            Like::V3_8 => ServerVersion::V3_8,
            Like::V3_9 => ServerVersion::V3_9,
        }
    }
}

/// Of a shorter one, no session lasts long enough for a client to keep it.
const LEAST_TICK: Duration = Duration::from_millis(50);

fn tick(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        tick if tick < LEAST_TICK => Err(format!("{text} is too short; give 50ms or more")),
        tick => Ok(tick),
    }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as 127.0.0.1:2181 or [::1]:2181; 0.0.0.0:2181 is open to the \
         network"
    })
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        printer.never_wait();
        super::log::log_to_stderr("info", printer);
        // The state is one task: more threads would only hand it around.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Module(format!("cannot start: {error}")))?;
        runtime.block_on(self.serve(printer))
    }

    async fn serve(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let watchers = Tasks::on(tokio::runtime::Handle::current());
        let mut signals = signals::receive(&watchers)
            .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
        let is_open = self.listen.iter().any(|address| !address.ip().is_loopback());
        let options = ServerOptions {
            listen: self.listen,
            tick_time: self.tick_time,
            max_session_timeout: None,
            data_dir: self.data_dir.clone(),
            version: self.like.into(),
            extended_types: self.extended_types,
            enforce_quota: self.enforce_quota,
            ..ServerOptions::for_tests()
        };
        let state = match &self.data_dir {
            Some(directory) => format!("the state is in {}", directory.display()),
            None => "the state is in memory and ends with me".to_owned(),
        };
        let server = start(options).await?;
        let address = server.connect_string();
        if is_open {
            printer.warning("all who reach that address may read and write: it asks for no name");
        }
        if let (Some(directory), Some(recovery)) = (&self.data_dir, server.recovery()) {
            recovered::tell(directory, recovery, printer);
        }
        printer.event(
            "listening",
            &[("address", json!(address))],
            &format!("serving ZooKeeper on {address}; {state}"),
        );
        loop {
            // Cancel-safe: signals stay queued, a stopped server stays stopped.
            tokio::select! {
                Some(signal) = signals.recv() => {
                    if signals::ends(signal) {
                        break;
                    }
                }
                () = server.stopped() => {
                    let why = server.failure().map(|error| format!(": {error}"));
                    let text = format!("the server stopped by itself{}", why.unwrap_or_default());
                    return Err(Failure::Unreachable(text));
                }
            }
        }
        server.stop().await;
        watchers.cancel();
        watchers.join().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Starts a server.
pub(super) async fn start(options: ServerOptions) -> Result<Server, Failure> {
    Server::start(options).await.map_err(|error| {
        let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        let remedy = match &error {
            StartError::Listen { .. } => "; give another address with --listen, or port 0",
            _ => "",
        };
        let text = format!("cannot serve ZooKeeper: {error}{cause}{remedy}");
        match error.may_pass() {
            true => Failure::Unreachable(text),
            false => Failure::Config(text),
        }
    })
}
