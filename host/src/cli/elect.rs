//! `wok elect`: shorthand for holding the stock election.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::exit::Failure;
use super::hold::Holding;
use super::joining::Target;
use super::output::Printer;
use crate::modules::ModuleSource;

/// Run a command while this process is the leader.
///
/// Volunteers, runs the command once elected with WOK_FENCE and WOK_CLAIM_PATH in its environment, and
/// resigns when it ends. The command, with everything it started, is killed before the
/// leadership can be somebody else's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok elect --connect zk1:2181,zk2:2181,zk3:2181 /election/scheduler -- ./scheduler --active\n  \
    wok elect --connect zk1:2181 /election/a -- sh -c 'echo term $WOK_FENCE; sleep 60'")]
pub(super) struct Arguments {
    /// The election's znode. It is created where it is missing.
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
            module: ModuleSource::Stock("leader-election".to_owned()),
            mount: self.path,
            operation: "volunteer".to_owned(),
            arguments: serde_json::json!({}),
        };
        self.holding.execute(target, self.command, printer)
    }
}
