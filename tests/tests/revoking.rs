//! The stock locks that can be asked for, as their users have them, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

#[path = "revoking/commands.rs"]
mod commands;
#[path = "revoking/example.rs"]
mod example;
#[path = "revoking/forced.rs"]
mod forced;
#[path = "revoking/readers.rs"]
mod readers;
#[path = "revoking/requests.rs"]
mod requests;
#[path = "revoking/scene.rs"]
mod scene;
