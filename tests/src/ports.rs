//! Free TCP ports.
//!
//! ZooKeeper cannot be told to pick a port, so one is picked for it. Ports below the range from
//! which the kernel serves outgoing connections are not taken by accident while a server restarts;
//! another test process may still pick the same one, so the code that starts a server retries.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::sync::Mutex;

use anyhow::{Result, bail};

const LOWEST: u16 = 10_000;

/// A port on which nobody listens, handed out once per test process.
///
/// # Errors
/// If no free port was found.
pub fn free() -> Result<u16> {
    static GIVEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let highest = first_outgoing().max(LOWEST + 1_000);
    for attempt in 0..10_000 {
        let port = LOWEST + random_below(highest - LOWEST, attempt);
        let mut given = GIVEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !given.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            given.push(port);
            return Ok(port);
        }
    }
    bail!("no free port between {LOWEST} and {highest}")
}

fn first_outgoing() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

fn random_below(bound: u16, attempt: u32) -> u16 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(attempt);
    u16::try_from(hasher.finish() % u64::from(bound)).unwrap_or_default()
}
