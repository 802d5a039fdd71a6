//! Has a connection send what it is given at once.
//!
//! The crate leaves Nagle's algorithm on (RFC 9293, section 3.7.4): a small request that follows
//! another one waits in this host until the server has acknowledged the first, which a server does
//! with its answer. What the session room sends back to back would take a round trip each. The crate
//! shows nobody its connection, so this process looks for it among its own descriptors.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::{getpeername, sockopt};

/// Where the descriptors of this process are listed.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The port of a host that is given without one.
const DEFAULT_PORT: u16 = 2181;

/// The ports of the hosts in a connect string.
pub(super) fn ports(hosts: &str) -> Vec<u16> {
    let port = |host: &str| host.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    hosts.split(',').map(|host| port(host).unwrap_or(DEFAULT_PORT)).collect()
}

/// Turns Nagle's algorithm off for every connection of this process to one of these ports. Without
/// it a session is right, and slower: a failure is told to those who debug.
pub(super) fn turn_off_nagle(ports: &[u16]) {
    if let Err(error) = try_turn_off(ports) {
        tracing::debug!(%error, "the connection collects what it sends");
    }
}

fn try_turn_off(ports: &[u16]) -> io::Result<()> {
    for entry in fs::read_dir(DESCRIPTORS)? {
        let name = entry?.file_name();
        if let Some(descriptor) = name.to_str().and_then(|name| name.parse().ok()) {
            turn_off(descriptor, ports)?;
        }
    }
    Ok(())
}

fn turn_off(descriptor: RawFd, ports: &[u16]) -> io::Result<()> {
    #[allow(
        unsafe_code,
        reason = "the crate keeps its connection to itself, and there is no other way to it"
    )]
    // SAFETY: The descriptor is not kept, nothing is read from it or written to it, and it is not
    // closed here. Should its owner close it meanwhile, the calls fail, or they find another
    // connection, which the option does no harm.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    // What is no socket, or not connected, has no peer.
    let peer = getpeername(socket).ok().flatten();
    match peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
        Some(peer) if ports.contains(&peer.port()) => Ok(sockopt::set_tcp_nodelay(socket, true)?),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_to_the_port_send_at_once_and_no_others_do() {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (server, other) = (listen(), listen());
        let connect = |to: &TcpListener| TcpStream::connect(to.local_addr().unwrap()).unwrap();
        let (ours, others) = (connect(&server), connect(&other));
        assert!(!ours.nodelay().unwrap());
        turn_off_nagle(&[server.local_addr().unwrap().port()]);
        assert!(ours.nodelay().unwrap());
        assert!(!others.nodelay().unwrap());
    }

    #[test]
    fn a_host_without_a_port_is_at_zookeepers() {
        assert_eq!(ports("a:1,b,10.0.1:65535,[::1%0]:3"), [1, 2181, 65535, 3]);
    }
}
