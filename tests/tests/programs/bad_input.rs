//! Whatever is wrong with what a user gives wok: one clear error that names the place and what to
//! do, the exit code of its kind, and nothing done.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod arguments;
mod config;
mod inspecting;
mod modules;
