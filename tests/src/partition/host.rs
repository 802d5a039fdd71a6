//! A host whose command says that it runs, again and again, and does not end by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Handle;
use wok::client::{Client, Socket};
use wok::tasks::Tasks;

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
    /// `wok run` with the same recipes, and an app for each of them, again and again: a program that
    /// holds a stream, a script with a lease, and `wok hold`.
    Apps,
}

/// A host.
pub(super) struct Host {
    pub(super) running: Running,
    /// How many commands it runs.
    pub(super) commands: usize,
    /// Where its daemon is asked who waits; without, what it prints says so.
    socket: Option<PathBuf>,
    _directory: TempDir,
}

impl Host {
    /// Whether it has come to wait for all that it wants to hold. On a slow link, or a busy machine, it
    /// may hold some of that already.
    pub(super) async fn is_in_line(&self) -> Result<bool> {
        let in_line = match &self.socket {
            Some(socket) => {
                let client =
                    Client::new(Socket::new(Some(socket.clone())), Tasks::on(Handle::current()));
                // Until the daemon is there, nobody waits.
                let listed = client.get::<Value>("/v1/participants").await.unwrap_or_default();
                let listed = listed["participants"].as_array().cloned().unwrap_or_default();
                let is_in_line = |one: &&Value| one["state"] == "waiting" || one["state"] == "held";
                listed.iter().filter(is_in_line).count()
            }
            None => {
                let lines = self.running.lines();
                lines.iter().filter(|line| line.text.contains("standing in line")).count()
            }
        };
        Ok(in_line >= self.commands)
    }
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
            Kind::Daemon | Kind::Apps => {
                for (recipe, ..) in RECIPES {
                    fs::write(directory.path().join(recipe), chatter(order, name, recipe))?;
                }
                let config = self.config(directory.path(), &servers, timeout, path)?;
                match self {
                    Kind::Apps => apps(directory.path(), &config, order, name)?,
                    _ => Program::wok()?.arg("run").arg(config),
                }
            }
        };
        Ok(Host {
            running: site.program(program).start()?,
            commands: if self == Kind::Lock { 1 } else { RECIPES.len() },
            socket: (self == Kind::Apps).then(|| directory.path().join(SOCKET)),
            _directory: directory,
        })
    }

    fn config(
        self,
        directory: &Path,
        servers: &str,
        timeout: Duration,
        path: &str,
    ) -> Result<PathBuf> {
        let seconds = timeout.as_secs();
        let mut text = format!(
            "[zookeeper]\nconnect = \"{servers}\"\nsession-timeout = \"{seconds}s\"\nacl = \"open\"\n"
        );
        if self == Kind::Apps {
            text += &format!("[api]\nsocket = \"{}\"\n", directory.join(SOCKET).display());
        }
        for (recipe, module, call) in RECIPES {
            text += &format!(
                "[recipes.{recipe}]\nmodule = \"{module}\"\nmount = \"{path}/{recipe}\"\n"
            );
            if self == Kind::Daemon {
                text += &format!(
                    "run = {{ call = \"{call}\" }}\nwhile-held = {{ exec = [\"bash\", \"{}\"] }}\n",
                    directory.join(recipe).display()
                );
            }
        }
        let file = directory.join("wok.toml");
        fs::write(&file, text)?;
        Ok(file)
    }
}

/// Of the daemon that serves apps, in its directory.
const SOCKET: &str = "wok.sock";

/// What an app of the examples does while it holds.
const STEP: &str = "print(f\"step {step} with fence {lock.fence}\", flush=True)";

/// A daemon and the apps that it serves: the example in Python, which writes its own lines, the example
/// of a lock in a script, and `wok hold`.
fn apps(directory: &Path, config: &Path, order: &OrderFile, name: &str) -> Result<Program> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/clients");
    let example = fs::read_to_string(clients.join("lock.py"))?;
    ensure!(example.contains(STEP), "lock.py does another step than {STEP}");
    let write = format!(
        "open('{}', 'a').write(f'{{time.time_ns()}} {} {{lock.fence}} {name}\\n')",
        order.path().display(),
        RECIPES[0].0
    );
    fs::write(directory.join("lock.py"), example.replace(STEP, &write))?;
    let [streamed, leased, guarded] = RECIPES.map(|(recipe, ..)| recipe);
    let script = format!(
        r#"
        exec 9<> <(:)
        cd "$1"
        export WOK_SOCKET="$1/{SOCKET}"
        . "$3/with-lock.sh"
        again() {{ until "$@"; do read -rt 0.2 -u 9; done; }}
        again python3 lock.py {streamed} &
        again with_lock {leased} bash {leased} &
        again "$0" hold {guarded} volunteer -- bash {guarded} &
        exec "$0" run "$2"
        "#
    );
    let bash = Program::new("bash").args(["-c", &script]);
    Ok(bash.arg(wok_binary()?).arg(directory).arg(config).arg(clients))
}
