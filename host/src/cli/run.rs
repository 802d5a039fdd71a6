//! `wok run`: the daemon.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use rustix::process::Signal;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wok_embedded::{Server, ServerOptions};

use super::exit::{self, Failure};
use super::output::Printer;
use super::signals;
use crate::api::BindError;
use crate::config::{Config, ConfigErrors, Connect, Loaded};
use crate::daemon::{self, PrepareError, Prepared, RunError};
use crate::guardian;
use crate::logbook::Logbook;

/// Run the daemon: keep a participant in every recipe that has a `run`.
///
/// SIGTERM or SIGINT releases everything in order: commands are stopped, apps told to stop, claims
/// released, the session closed. So does the end of the terminal that it was started in. Without a
/// terminal SIGHUP changes nothing: a daemon does not reload its config, restart it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok run wok.toml\n  WOK_LOG=debug wok run wok.toml")]
pub(super) struct Arguments {
    /// The config.
    #[arg(default_value = "wok.toml")]
    config: PathBuf,
}

/// What is logged unless `WOK_LOG` says otherwise. The client crate is told of the servers in another
/// spelling than the config's (`session/hosts.rs`), and its trouble is told by wok as well.
const LOG: &str = "info,zookeeper_client=error";

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        printer.never_wait();
        let logbook = Arc::new(Logbook::default());
        let kept = Some(Arc::clone(&logbook));
        super::log::log_to_stderr_and(kept, LOG, printer);
        guardian::adopt_orphans()
            .map_err(|error| Failure::Module(format!("cannot become a subreaper: {error}")))?;
        let runtime = runtime()?;
        let _entered = runtime.enter();
        let loading = load(&self.config, printer);
        let Some((loaded, mut prepared)) = runtime.block_on(loading)? else {
            return Ok(ExitCode::from(exit::CONFIG));
        };
        for name in prepared.idle().filter(|_| !prepared.serves_apps()) {
            printer.warning(&format!(
                "recipe {name} has no `run`, so nothing is done for it; with a table [api] apps can \
                 use it"
            ));
        }
        runtime.block_on(async {
            match loaded.config.zookeeper.connect {
                Connect::Servers(_) => serve(prepared, logbook).await,
                Connect::Embedded => {
                    let server = embedded(&loaded.config).await?;
                    prepared.connect_to(server.connect_string());
                    let outcome = serve(prepared, logbook).await;
                    server.stop().await;
                    outcome
                }
            }
        })
    }
}

/// A server of this process's own, on a free port of the loopback device.
async fn embedded(config: &Config) -> Result<Server, Failure> {
    let options = ServerOptions {
        // Whatever the config asks for is granted.
        max_session_timeout: Some(config.zookeeper.session_timeout.get()),
        ..ServerOptions::for_tests()
    };
    let server = super::zookeeper::start(options).await?;
    let address = server.connect_string();
    tracing::warn!(address, "embedded ZooKeeper: its state ends with this process");
    Ok(server)
}

async fn serve(prepared: Prepared, logbook: Arc<Logbook>) -> Result<ExitCode, Failure> {
    let shutdown = CancellationToken::new();
    let watchers = crate::tasks::Tasks::on(tokio::runtime::Handle::current());
    let mut signals = signals::receive(&watchers)
        .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
    let stopping = shutdown.clone();
    // Looked for now, because a terminal that has closed cannot be opened when its signal comes.
    let has_terminal = File::open("/dev/tty").is_ok();
    watchers.spawn("shutdown", async move {
        while let Some(signal) = signals.recv().await {
            if signal == Signal::HUP && !has_terminal {
                // An operator who has other daemons reload by SIGHUP does not want this one to end.
                tracing::warn!(
                    "SIGHUP changes nothing: there is no reload, restart the daemon for that"
                );
            } else if signals::ends(signal) {
                tracing::info!("stopping");
                stopping.cancel();
            }
        }
    });
    let outcome = daemon::run(prepared, logbook, &shutdown).await;
    watchers.cancel();
    watchers.join().await;
    outcome.map(|()| ExitCode::SUCCESS).map_err(|error| match error {
        RunError::Api(BindError::NoSocket(_) | BindError::Open(_) | BindError::Tls(_)) => {
            Failure::Config(error.to_string())
        }
        // An address that is taken, or is not there yet, may be free when a supervisor starts again.
        RunError::Api(BindError::InUse(_) | BindError::Io { .. } | BindError::Tcp { .. })
        | RunError::Refused(_) => Failure::Unreachable(error.to_string()),
    })
}

/// The daemon's runtime.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Module(format!("cannot start: {error}")))
}

/// Loads and checks a config; none if it has errors, which are printed.
///
/// # Cancellation
/// Nothing is left.
pub(super) async fn load(
    path: &Path,
    printer: &Printer,
) -> Result<Option<(Loaded, Prepared)>, Failure> {
    let loaded = match Config::load(path) {
        Ok(loaded) => loaded,
        Err(damaged) => {
            let more = daemon::findings_about_modules(&damaged)
                .await
                .map_err(|error| Failure::Config(error.to_string()))?;
            print_findings(printer, &damaged.errors.and(more));
            return Ok(None);
        }
    };
    for warning in &loaded.warnings {
        printer.warning(&warning.to_string());
    }
    match Prepared::new(&loaded).await {
        Ok(prepared) => Ok(Some((loaded, prepared))),
        Err(PrepareError::Config(errors)) => {
            print_findings(printer, &errors);
            Ok(None)
        }
        Err(PrepareError::Host(error)) => Err(Failure::Config(error.to_string())),
    }
}

fn print_findings(printer: &Printer, errors: &ConfigErrors) {
    let findings = json!({ "valid": false, "errors": errors.findings() });
    printer.report_failure(&errors.to_string(), &findings);
}
