//! A private ZooKeeper: `wok zookeeper` on a free port, gone with its owner.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{self, Group};
use crate::stop;

/// On a busy machine.
const START: Duration = Duration::from_secs(60);

/// A reply of an idle server on this machine.
const REPLY: Duration = Duration::from_secs(5);

/// What comes before the address in what the server says.
const SERVING: &str = "serving ZooKeeper on ";

/// A running server.
pub(crate) struct ZooKeeper {
    _server: Group,
    address: SocketAddr,
}

impl ZooKeeper {
    /// Starts a server and waits until it serves.
    pub(crate) fn start(wok: &Path) -> Result<Self> {
        let mut command = Command::new(wok);
        command.args(["zookeeper", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut server = Group::start("wok zookeeper", &mut command)?;
        let stderr = server.child().stderr.take().context("standard error is piped")?;
        let (sender, said) = mpsc::channel();
        process::follow(stderr, move |line| {
            // Only the beginning is listened to.
            let _unheard = sender.send(line);
        })?;
        let mut last = String::new();
        let address = stop::until("the server serves", START, || {
            let Ok(Some(line)) = said.try_recv() else {
                return match server.ended()? {
                    Some(status) => {
                        bail!("wok zookeeper: {}: {last}", process::describe(status))
                    }
                    None => Ok(None),
                };
            };
            last.clone_from(&line);
            address_in(&line)
        })?;
        Ok(Self { _server: server, address })
    }

    /// Where clients connect.
    pub(crate) fn connect(&self) -> String {
        self.address.to_string()
    }

    /// The ephemeral znodes of all sessions below `parent`, by the server's own account.
    pub(crate) fn ephemerals(&self, parent: &str) -> Result<Vec<String>> {
        Ok(ephemerals(&self.ask("dump")?, parent))
    }

    /// The reply to a four-letter command.
    fn ask(&self, command: &str) -> Result<String> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&self.address, REPLY)?;
            stream.set_read_timeout(Some(REPLY))?;
            stream.write_all(command.as_bytes())?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply)?;
            Ok(reply)
        };
        ask().with_context(|| format!("ask the server for `{command}`"))
    }
}

/// The address in a line that tells it.
fn address_in(line: &str) -> Result<Option<SocketAddr>> {
    let Some((_, rest)) = line.split_once(SERVING) else {
        return Ok(None);
    };
    let address = rest.split(';').next().unwrap_or_default();
    address.parse().map(Some).with_context(|| format!("no address in {line:?}"))
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
    fn the_address_is_read_from_the_line_that_tells_it() {
        let line = "wok: serving ZooKeeper on 127.0.0.1:4711; the state is in memory";
        assert_eq!(address_in(line).unwrap(), Some("127.0.0.1:4711".parse().unwrap()));
        assert_eq!(address_in("wok: something else").unwrap(), None);
        assert!(address_in("wok: serving ZooKeeper on somewhere").is_err());
    }

    #[test]
    fn only_the_ephemerals_below_the_parent_are_listed() {
        let dump = "SessionTracker dump:\nephemeral nodes dump:\nSessions with Ephemerals (2):\n\
                    0x1:\n\t/demo/lock/a\n\t/demo/lockers/b\n0x2:\n\t/demo/lock/c\n\
                    Connections dump:\n";
        assert_eq!(ephemerals(dump, "/demo/lock"), ["/demo/lock/a", "/demo/lock/c"]);
    }
}
