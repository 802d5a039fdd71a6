//! wok beside Apache Curator and kazoo, in the same znodes of a real server.
//!
//! Every client is the real one: `wok` is the program as its users run it, the others are peers of
//! `wok_tests::peers`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod barrier;
mod counter;
mod election;
mod line;
mod lock;
mod multi_lock;
mod party;
mod queue;
mod read_write_lock;
mod revoking;
mod semaphore;
