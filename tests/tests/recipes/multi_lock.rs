//! The stock locks of which several are taken at once, as their users have them, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod commands;
mod places;
mod requests;
