//! Who plays: the daemon and the contenders, each a `wok` process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use super::with_log;
use crate::process::{self, Group};
use crate::progress;
use crate::stop;
use crate::zookeeper::ZooKeeper;

/// What a holder runs: it says what it holds and then keeps it.
const HOLD: &str = "echo \"holding $WOK_CLAIM_PATH with fence $WOK_FENCE\"; exec sleep 3600";

/// What a leader runs says this first.
const LEAD: &str = "echo \"leading with fence $WOK_FENCE\"";

/// What everyone plays on.
pub(super) struct Stage {
    pub(super) wok: PathBuf,
    pub(super) directory: TempDir,
    pub(super) zookeeper: ZooKeeper,
}

impl Stage {
    /// The configuration of the daemon.
    pub(super) fn config(&self) -> PathBuf {
        self.directory.path().join("wok.toml")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.log"))
    }

    fn start(&self, name: &str, command: &mut Command) -> Result<Group> {
        let log = std::fs::File::create(self.log(name)).context("create a log")?;
        progress::say!("  $ {}", spell(command));
        Group::start(name, command.stderr(log))
    }
}

/// `wok run` with one recipe of its own.
pub(super) struct Daemon {
    group: Group,
    /// The command of the leader writes its fence here.
    fence: PathBuf,
    log: PathBuf,
}

impl Daemon {
    pub(super) fn start(stage: &Stage, mount: &str) -> Result<Self> {
        let fence = stage.directory.path().join("leader");
        std::fs::write(stage.config(), config_text(stage, mount, &fence))
            .context("write the configuration of the daemon")?;
        let mut command = Command::new(&stage.wok);
        command.arg("run").arg(stage.config()).stdout(Stdio::null());
        let group = stage.start("daemon", &mut command)?;
        Ok(Self { group, fence, log: stage.log("daemon") })
    }

    /// Waits until the daemon leads.
    pub(super) fn fence(&mut self, limit: Duration) -> Result<u64> {
        let outcome = stop::until("the daemon leads", limit, || {
            is_playing("the daemon", &mut self.group)?;
            let text = std::fs::read_to_string(&self.fence).unwrap_or_default();
            // Without its end the line may be half written.
            text.strip_suffix('\n').map(fence_in).transpose()
        });
        with_log(outcome, &self.log)
    }

    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
        self.group.signal(signal)
    }

    pub(super) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        with_log(self.group.wait(limit), &self.log)
    }
}

fn config_text(stage: &Stage, mount: &str, fence: &Path) -> String {
    format!(
        "[zookeeper]\n\
         connect = \"{connect}\"\n\
         session-timeout = \"4s\"\n\
         acl = \"open\"\n\
         \n\
         [recipes.scheduler]\n\
         module = \"leader-election\"\n\
         mount = \"{mount}\"\n\
         run = {{ call = \"volunteer\" }}\n\
         while-held = {{ exec = [\"sh\", \"-c\", '{LEAD} > {fence}; exec sleep 3600'], \
         stop-timeout = \"1s\" }}\n",
        connect = stage.zookeeper.connect(),
        fence = fence.display(),
    )
}

/// `wok lock` around a command that says what it holds.
pub(super) struct Contender {
    name: &'static str,
    group: Group,
    said: Receiver<(Instant, Option<String>)>,
    log: PathBuf,
    speaking_since: Option<Instant>,
    silent_since: Option<Instant>,
}

impl Contender {
    pub(super) fn start(stage: &Stage, name: &'static str, path: &str) -> Result<Self> {
        let mut command = Command::new(&stage.wok);
        command
            .args(["lock", "--connect", &stage.zookeeper.connect()])
            .args(["--session-timeout", "4s", path, "--", "sh", "-c", HOLD])
            .stdout(Stdio::piped());
        let mut group = stage.start(name, &mut command)?;
        let stdout = group.child().stdout.take().context("standard output is piped")?;
        let (sender, said) = mpsc::channel();
        process::follow(stdout, move |line| {
            // The play may be over.
            let _unheard = sender.send((Instant::now(), line));
        })?;
        let log = stage.log(name);
        Ok(Self { name, group, said, log, speaking_since: None, silent_since: None })
    }

    /// Waits until the command of this contender says which fence it holds.
    pub(super) fn fence(&mut self, limit: Duration) -> Result<u64> {
        let name = self.name;
        let outcome = stop::until(&format!("{name} holds the lock"), limit, || {
            let word = self.said.try_recv();
            if word.is_err() {
                self.is_playing()?;
            }
            let Ok((at, Some(line))) = word else {
                return Ok(None);
            };
            progress::say!("  {name} │ {line}");
            self.speaking_since = Some(at);
            fence_in(&line).map(Some)
        });
        with_log(outcome, &self.log)
    }

    /// Fails if this contender has ended.
    pub(super) fn is_playing(&mut self) -> Result<()> {
        with_log(is_playing(self.name, &mut self.group), &self.log)
    }

    /// Whether its command has said anything that nobody has read yet.
    pub(super) fn has_spoken(&mut self) -> bool {
        self.said.try_recv().is_ok()
    }

    /// When its command first spoke.
    pub(super) fn speaking_since(&self) -> Option<Instant> {
        self.speaking_since
    }

    /// When the last process that could speak for it ended, if all have.
    pub(super) fn silent_since(&mut self) -> Option<Instant> {
        while let Ok((at, word)) = self.said.try_recv() {
            if word.is_none() {
                self.silent_since = Some(at);
            }
        }
        self.silent_since
    }

    /// Signals the `wok` process alone.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
        self.group.signal(signal)
    }
}

fn is_playing(name: &str, group: &mut Group) -> Result<()> {
    match group.ended()? {
        Some(status) => bail!("{name} ended too early: {}", process::describe(status)),
        None => Ok(()),
    }
}

/// The fence is the last word of what a holder's command says.
fn fence_in(line: &str) -> Result<u64> {
    let word = line.split_whitespace().next_back().unwrap_or_default();
    word.parse().with_context(|| format!("no fence in {line:?}"))
}

/// A command as one would type it.
fn spell(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=".contains(letter);
        text.push(' ');
        match argument.chars().all(plain) {
            true => text.push_str(&argument),
            false => text.push_str(&format!("'{argument}'")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_the_last_word_and_must_be_a_number() {
        assert_eq!(fence_in("holding /a with fence 4294967297").unwrap(), 4_294_967_297);
        assert!(fence_in("holding /a with fence").is_err());
        assert!(fence_in("").is_err());
    }

    #[test]
    fn a_command_is_spelled_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/wok");
        command.args(["lock", "/demo/lock", "--", "sh", "-c", "echo $WOK_FENCE"]);
        assert_eq!(spell(&command), "wok lock /demo/lock -- sh -c 'echo $WOK_FENCE'");
    }
}
