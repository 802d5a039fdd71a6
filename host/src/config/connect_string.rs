//! The servers of an ensemble.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::quantity::BadValue;
use crate::near::near;

/// ZooKeeper's customary client port.
const DEFAULT_PORT: u16 = 2181;

/// Ensembles have a handful of servers; the client tries them one after another.
const MAX_HOSTS: usize = 64;

const REMEDY: &str = "list servers as \"host:port\", separated by commas";

/// One or more servers, each with its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectString(String);

impl ConnectString {
    /// `host:port` pairs separated by commas, as the client takes them.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a host's ZooKeeper is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connect {
    /// In this process, for development and tests: it begins empty and ends with the process.
    Embedded,
    /// An ensemble.
    Servers(ConnectString),
}

/// How the first is written.
const EMBEDDED: &str = "embedded";

fn is_nearly_embedded(text: &str) -> bool {
    text != EMBEDDED && near(text, std::iter::once(EMBEDDED)).is_some()
}

impl FromStr for Connect {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            EMBEDDED => Ok(Connect::Embedded),
            // Read as a server, it would be looked for in vain for as long as the daemon runs.
            text if is_nearly_embedded(text) => Err(BadValue::new(
                format!("{text:?} is neither \"embedded\" nor a server with its port"),
                format!("did you mean \"embedded\"? a server is \"{text}:{DEFAULT_PORT}\""),
            )),
            servers => servers.parse().map(Connect::Servers),
        }
    }
}

impl FromStr for ConnectString {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text == EMBEDDED || is_nearly_embedded(text) {
            let message = "a server within a command would serve nobody else";
            return Err(BadValue::new(message, "start one with `wok zookeeper`, and name it here"));
        }
        if text.trim().is_empty() {
            return Err(BadValue::new("no server is named", REMEDY));
        }
        let mut servers: Vec<String> = Vec::new();
        let mut begins = 0;
        for part in text.split(',') {
            let server = part.trim();
            let start = begins + (part.len() - part.trim_start().len());
            // An empty part is marked by the comma that ends it, or by the one before it.
            let marked = if server.is_empty() {
                let comma = (begins + part.len()).min(text.len() - 1);
                comma..comma + 1
            } else {
                start..start + server.len()
            };
            let server = read_server(server).map_err(|bad| bad.at(marked.clone()))?;
            if servers.contains(&server) {
                let message = format!("{server} is listed twice");
                return Err(BadValue::new(message, "list each server once").at(marked));
            }
            servers.push(server);
            begins += part.len() + 1;
        }
        if servers.len() > MAX_HOSTS {
            let message = format!("{} servers are listed", servers.len());
            return Err(BadValue::new(message, format!("list at most {MAX_HOSTS}")));
        }
        Ok(ConnectString(servers.join(",")))
    }
}

fn read_server(text: &str) -> Result<String, BadValue> {
    if text.is_empty() {
        return Err(BadValue::new("a server's name is empty", REMEDY));
    }
    if text.contains("://") {
        let remedy =
            "leave the scheme out; for TLS give `tls = { ca-file = \"…\" }`, or --tls-ca-file";
        return Err(BadValue::new(format!("{text:?} has a scheme"), remedy));
    }
    if let Some((_, chroot)) = text.split_once('/') {
        let remedy = match chroot {
            "" => "leave the `/` out".to_owned(),
            _ => format!(
                "give it as `root = {:?}` in a config, and on the command line begin each path with it",
                format!("/{chroot}")
            ),
        };
        return Err(BadValue::new(format!("{text:?} has a chroot"), remedy));
    }
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']').unwrap_or((bracketed, "?"));
        let address: Ipv6Addr = address.parse().map_err(|_| {
            BadValue::new(format!("{text:?} is not an IPv6 address"), "write \"[::1]:2181\"")
        })?;
        return Ok(format!("[{address}]:{}", read_port(port, text)?));
    }
    let (host, port) = match text.find(':') {
        Some(colon) => text.split_at(colon),
        None => (text, ""),
    };
    if text.parse::<Ipv6Addr>().is_ok() {
        let remedy = format!("put the address into brackets: \"[{text}]:{DEFAULT_PORT}\"");
        return Err(BadValue::new(format!("{text:?} has no brackets"), remedy));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if host.is_empty() || !host.chars().all(allowed) {
        return Err(BadValue::new(format!("{host:?} is not a host name"), REMEDY));
    }
    Ok(format!("{host}:{}", read_port(port, text)?))
}

/// Reads `:port`, or nothing.
fn read_port(text: &str, server: &str) -> Result<u16, BadValue> {
    if text.is_empty() {
        return Ok(DEFAULT_PORT);
    }
    let digits = text.strip_prefix(':').filter(|port| port.chars().all(|c| c.is_ascii_digit()));
    let port = digits.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
    port.ok_or_else(|| {
        let message = format!("{server:?} has no valid port");
        BadValue::new(message, "write a port from 1 to 65535 after one colon")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_their_port_and_lose_spaces() {
        let read = |text: &str| text.parse().map(|hosts: ConnectString| hosts.0);
        assert_eq!(read("zk1"), Ok("zk1:2181".to_owned()));
        assert_eq!(read("zk1:1, zk_2.x:65535"), Ok("zk1:1,zk_2.x:65535".to_owned()));
        assert_eq!(
            read("[::1]:7,[::0001]:8,127.0.0.1"),
            Ok("[::1]:7,[::1]:8,127.0.0.1:2181".into())
        );
    }

    #[test]
    fn each_mistake_is_named_and_marked() {
        let cases = [
            ("", "no server is named", None),
            (" ", "no server is named", None),
            ("embedded", "a server within a command would serve nobody else", None),
            ("embeded", "a server within a command would serve nobody else", None),
            ("zk1:2181,", "a server's name is empty", Some(8..9)),
            (",zk1", "a server's name is empty", Some(0..1)),
            ("zk1,,zk2", "a server's name is empty", Some(4..5)),
            ("zk1, tcp://zk2", "\"tcp://zk2\" has a scheme", Some(5..14)),
            ("zk1:2181/wok", "\"zk1:2181/wok\" has a chroot", Some(0..12)),
            ("zk1:0", "\"zk1:0\" has no valid port", Some(0..5)),
            ("zk1:65536", "\"zk1:65536\" has no valid port", Some(0..9)),
            ("zk1:+1", "\"zk1:+1\" has no valid port", Some(0..6)),
            ("zk1:", "\"zk1:\" has no valid port", Some(0..4)),
            ("zk1:1:2", "\"zk1:1:2\" has no valid port", Some(0..7)),
            ("::1", "\"::1\" has no brackets", Some(0..3)),
            ("[::1", "\"[::1\" has no valid port", Some(0..4)),
            ("[zk1]:1", "\"[zk1]:1\" is not an IPv6 address", Some(0..7)),
            ("z k", "\"z k\" is not a host name", Some(0..3)),
            (":2181", "\"\" is not a host name", Some(0..5)),
            ("zk1,zk1:2181", "zk1:2181 is listed twice", Some(4..12)),
        ];
        for (text, message, within) in cases {
            let bad = text.parse::<ConnectString>().unwrap_err();
            assert_eq!((bad.message.as_str(), bad.within), (message, within), "{text:?}");
        }
    }

    #[test]
    fn a_slip_in_embedded_is_no_server_unless_it_has_a_port() {
        for slip in ["embeded", "imbedded", "Embedded", "embeddet"] {
            let bad = slip.parse::<Connect>().unwrap_err();
            assert!(bad.remedy.contains("did you mean \"embedded\"?"), "{slip}: {bad}");
            assert!(bad.remedy.contains(&format!("\"{slip}:2181\"")), "{slip}: {bad}");
        }
        for server in ["embeded:2181", "embedding", "zk", "bed"] {
            assert!(matches!(server.parse(), Ok(Connect::Servers(_))), "{server}");
        }
    }

    #[test]
    fn a_chroot_is_told_to_become_the_root() {
        let bad = "zk1:2181/wok/a".parse::<ConnectString>().unwrap_err();
        assert!(
            bad.remedy.starts_with("give it as `root = \"/wok/a\"` in a config"),
            "{}",
            bad.remedy
        );
    }
}
