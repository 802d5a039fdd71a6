//! `wok lock` and `wok elect`: shorthands of `wok hold` for stock recipes.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, Args};

use super::exit::Failure;
use super::hold::HoldOptions;
use super::joining::Target;
use super::output::Printer;
use super::typed_text::TypedText;
use crate::modules::ModuleSource;

/// The examples of `wok lock`.
pub(super) const LOCK_EXAMPLES: &str = "Examples:\n  \
    wok lock --connect zk1:2181,zk2:2181,zk3:2181 /locks/backup -- ./backup.sh\n  \
    wok lock --connect zk1:2181 --wait 10s /locks/a -- sh -c 'echo fence $WOK_FENCE'";

/// The examples of `wok elect`.
pub(super) const ELECT_EXAMPLES: &str = "Examples:\n  \
    wok elect --connect zk1:2181,zk2:2181,zk3:2181 /election/scheduler -- ./scheduler --active\n  \
    wok elect --connect zk1:2181 /election/a -- sh -c 'echo term $WOK_FENCE; sleep 60'";

// No doc comment: each command has a help of its own, where the commands are listed.
// Nor a way through the daemon: a path is no recipe's name.
#[derive(Debug, Args)]
#[command(mut_arg("connect", |connect| connect.required(true)), mut_arg("connect_timeout", of_no_daemon))]
pub(super) struct Arguments {
    /// The recipe's znode. It is created where it is missing.
    path: String,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    options: HoldOptions,
}

/// Gives `--connect-timeout` a help that does not speak of the daemon, which these commands never use.
fn of_no_daemon(connect_timeout: Arg) -> Arg {
    connect_timeout.help(
        "How long to try while no server grants a session, for example one that is starting; `0s` tries \
         once",
    )
}

impl Arguments {
    /// Holds a stock recipe by one of its operations.
    pub(super) fn execute(
        self,
        recipe: &str,
        operation: &str,
        printer: &Printer,
    ) -> Result<ExitCode, Failure> {
        let target = Target {
            module: ModuleSource::Stock(recipe.to_owned()),
            mount: self.path,
            operation: operation.to_owned(),
            arguments: TypedText::new(serde_json::json!({}), Vec::new()),
        };
        self.options.execute(target, self.command, printer)
    }
}
