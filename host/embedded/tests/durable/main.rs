//! Servers with a data directory, that end in every way.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

#[path = "../wire/client.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;
mod failing;
mod killed;
mod mounts;
mod process;
mod restarts;
