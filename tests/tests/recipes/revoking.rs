//! The stock locks that can be asked for, as their users have them, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod commands;
mod example;
mod forced;
mod readers;
mod requests;
mod scene;
