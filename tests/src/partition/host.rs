//! A host whose command says that it runs, again and again, and does not end by itself.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use crate::network::Site;
use crate::process::{OrderFile, Program, Running, wok_binary};
use crate::scratch;

/// What runs the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `wok lock`, again and again.
    Lock,
    /// `wok run`, with three recipes on its session.
    Daemon,
}

/// A host.
pub(super) struct Host {
    pub(super) running: Running,
    /// How many commands it runs.
    pub(super) commands: usize,
    _directory: TempDir,
}

/// The recipes of a daemon: those of the locks, and those that an election leads.
const RECIPES: [(&str, &str, &str); 3] = [
    ("orders", "lock", "acquire"),
    ("invoices", "lock", "acquire"),
    ("scheduler", "leader-election", "volunteer"),
];

/// What a command says of itself in the file: for which recipe it runs, with which fence, and who
/// runs it.
fn chatter(order: &OrderFile, name: &str, recipe: &str) -> String {
    let line = format!("${{EPOCHREALTIME/./}}000 {recipe} $WOK_FENCE {name}");
    let path = order.path().display();
    // Waits by reading from a pipe into which nobody writes: many of these run side by side, and none
    // of them is to start a process for each line.
    format!(
        "trap '' TERM INT HUP; exec 9<> <(:); \
         while :; do echo \"{line}\" >> '{path}'; read -rt 0.02 -u 9; done"
    )
}

impl Kind {
    pub(super) fn start(
        self,
        (site, servers): (&Site, String),
        timeout: Duration,
        path: &str,
        order: &OrderFile,
        name: &str,
    ) -> Result<Host> {
        let directory = scratch::dir()?;
        let program = match self {
            Kind::Lock => {
                let session_timeout = format!("{}s", timeout.as_secs());
                let chatter = chatter(order, name, RECIPES[0].0);
                // As users do who need it for long: a session that was lost is followed by another.
                Program::shell("until \"$0\" \"$@\"; do :; done")
                    .arg(wok_binary()?)
                    .args(["lock", "--connect", &servers, "--session-timeout", &session_timeout])
                    .args([path, "--", "bash", "-c", &chatter])
            }
            Kind::Daemon => {
                let config = config(directory.path(), &servers, timeout, path, order, name)?;
                Program::wok()?.arg("run").arg(config)
            }
        };
        let commands = if self == Kind::Lock { 1 } else { RECIPES.len() };
        Ok(Host { running: site.program(program).start()?, commands, _directory: directory })
    }
}

fn config(
    directory: &Path,
    servers: &str,
    timeout: Duration,
    path: &str,
    order: &OrderFile,
    name: &str,
) -> Result<std::path::PathBuf> {
    let seconds = timeout.as_secs();
    let mut text = format!(
        "[zookeeper]\nconnect = \"{servers}\"\nsession-timeout = \"{seconds}s\"\nacl = \"open\"\n"
    );
    for (recipe, module, call) in RECIPES {
        let script = directory.join(recipe);
        std::fs::write(&script, chatter(order, name, recipe))?;
        text += &format!(
            "[recipes.{recipe}]\nmodule = \"{module}\"\nmount = \"{path}/{recipe}\"\n\
             run = {{ call = \"{call}\" }}\nwhile-held = {{ exec = [\"bash\", \"{}\"] }}\n",
            script.display()
        );
    }
    let file = directory.join("wok.toml");
    std::fs::write(&file, text)?;
    Ok(file)
}
