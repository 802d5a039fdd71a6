//! The stock queue as its users have it, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code, where a panic is a failed test, and what is printed are the \
              figures of a soak"
)]

mod commands;
mod fire;
mod lost;
mod requests;
