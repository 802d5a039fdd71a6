//! The guest room from outside: built components in their sandboxes, over an ensemble in memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

#[path = "guest/calls.rs"]
mod calls;
#[path = "guest/contending.rs"]
mod contending;
#[path = "guest/docs.rs"]
mod docs;
#[path = "guest/echo.rs"]
mod echo;
#[path = "guest/ensemble.rs"]
mod ensemble;
#[path = "guest/escapes.rs"]
mod escapes;
#[path = "guest/limits.rs"]
mod limits;
#[path = "guest/sandbox.rs"]
mod sandbox;
#[path = "guest/waking.rs"]
mod waking;
