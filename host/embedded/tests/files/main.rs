//! Data directories without a server around them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

mod fuzzy;
mod hostile;
mod lists;
mod logs;
mod world;
