//! The stock queue as its users have it, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code, where a panic is a failed test, and what is printed are the \
              figures of a soak"
)]

#[path = "queue/commands.rs"]
mod commands;
#[path = "queue/fire.rs"]
mod fire;
#[path = "queue/lost.rs"]
mod lost;
#[path = "queue/requests.rs"]
mod requests;
