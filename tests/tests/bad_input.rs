//! Whatever is wrong with what a user gives wok: one clear error that names the place and what to
//! do, the exit code of its kind, and nothing done.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

#[path = "bad_input/arguments.rs"]
mod arguments;
#[path = "bad_input/config.rs"]
mod config;
#[path = "bad_input/inspecting.rs"]
mod inspecting;
#[path = "bad_input/modules.rs"]
mod modules;
