//! A private Apache ZooKeeper: a free port, a temporary data directory, gone with its owner.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::{self, Group};
use crate::setup::{CLASS_PATH, SERVER_CLASS};
use crate::{progress, stop};

/// A Java server on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A reply of an idle server on this machine.
const REPLY: Duration = Duration::from_secs(5);

/// Somebody else may take the free port before the server has it.
const ATTEMPTS: u32 = 3;

/// A running server.
pub(crate) struct ZooKeeper {
    // Before the directory: it is stopped before its data are removed.
    server: Group,
    directory: TempDir,
    port: u16,
}

impl ZooKeeper {
    /// Starts a server and waits until it answers.
    pub(crate) fn start() -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::try_start() {
                Err(error) if attempt < ATTEMPTS && !error.is::<stop::Stopped>() => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn try_start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("wok-zookeeper-").tempdir()?;
        let port = free_port()?;
        let config = directory.path().join("zoo.cfg");
        std::fs::write(&config, config_text(directory.path(), port))?;
        let log = std::fs::File::create(directory.path().join("log"))?;
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", CLASS_PATH, SERVER_CLASS]);
        command.arg(&config).stdout(log.try_clone()?).stderr(log);
        let mut work = progress::Work::begin("starting Apache ZooKeeper");
        let server = Group::start("Apache ZooKeeper", &mut command)?;
        let mut started = Self { server, directory, port };
        let outcome = stop::until("Apache ZooKeeper answers", START, || {
            work.tick();
            started.look()
        });
        work.end(if outcome.is_ok() { "done" } else { "failed" });
        outcome?;
        Ok(started)
    }

    fn look(&mut self) -> Result<Option<()>> {
        if let Some(status) = self.server.ended()? {
            let log = process::tail(&self.directory.path().join("log"));
            bail!("Apache ZooKeeper: {}\n{log}", process::describe(status));
        }
        Ok(self.ask("ruok").is_ok_and(|reply| reply == "imok").then_some(()))
    }

    /// Where clients connect.
    pub(crate) fn connect(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The ephemeral znodes of all sessions below `parent`, by the server's own account.
    pub(crate) fn ephemerals(&self, parent: &str) -> Result<Vec<String>> {
        Ok(ephemerals(&self.ask("dump")?, parent))
    }

    /// The reply to a four-letter command.
    fn ask(&self, command: &str) -> Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&address, REPLY)?;
            stream.set_read_timeout(Some(REPLY))?;
            stream.write_all(command.as_bytes())?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply)?;
            Ok(reply)
        };
        ask().with_context(|| format!("ask Apache ZooKeeper for `{command}`"))
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

fn config_text(directory: &Path, port: u16) -> String {
    // Nothing here outlives the play, so nothing is forced to the disk.
    format!(
        "tickTime=500\n\
         dataDir={}/data\n\
         clientPort={port}\n\
         clientPortAddress=127.0.0.1\n\
         forceSync=no\n\
         admin.enableServer=false\n\
         4lw.commands.whitelist=ruok,dump\n",
        directory.display()
    )
}

/// Reads the paths below `parent` from what the command `dump` prints: one per line, indented
/// below their session.
fn ephemerals(dump: &str, parent: &str) -> Vec<String> {
    dump.lines()
        .filter(|line| line.starts_with('\t'))
        .map(str::trim)
        .filter(|path| path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/')))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ephemerals_below_the_parent_are_listed() {
        let dump = "SessionTracker dump:\nephemeral nodes dump:\nSessions with Ephemerals (2):\n\
                    0x1:\n\t/demo/lock/a\n\t/demo/lockers/b\n0x2:\n\t/demo/lock/c\n\
                    Connections dump:\n";
        assert_eq!(ephemerals(dump, "/demo/lock"), ["/demo/lock/a", "/demo/lock/c"]);
    }
}
