//! The server over its sockets, frame by frame.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod client;
mod data;
mod limits;
mod multi;
mod sessions;
mod watches;

use wok_embedded::EmbeddedZooKeeper;

fn start() -> EmbeddedZooKeeper {
    EmbeddedZooKeeper::start().expect("a server")
}
