//! `wok lock`: shorthand for holding the stock lock.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::exit::Failure;
use super::hold::Holding;
use super::joining::Target;
use super::output::Printer;
use crate::modules::ModuleSource;

/// Run a command while a lock is held.
///
/// Waits in line, runs the command with WOK_FENCE and WOK_CLAIM_PATH in its environment, and
/// releases the lock when it ends. The command, with everything it started, is killed before the
/// lock can be somebody else's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok lock --connect zk1:2181,zk2:2181,zk3:2181 /locks/backup -- ./backup.sh\n  \
    wok lock --connect zk1:2181 --wait 10s /locks/a -- sh -c 'echo fence $WOK_FENCE'")]
pub(super) struct Arguments {
    /// The lock's znode. It is created where it is missing.
    path: String,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    holding: Holding,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let target = Target {
            module: ModuleSource::Stock("lock".to_owned()),
            mount: self.path,
            operation: "acquire".to_owned(),
            arguments: serde_json::json!({}),
        };
        self.holding.execute(target, self.command, printer)
    }
}
