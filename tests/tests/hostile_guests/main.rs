//! Components that misbehave, each beside a neighbour on the same session, on a real server.
//!
//! Whatever they try, they end alone or get an error: the neighbour's lock never fails, and the
//! session keeps its one connection. What the guest room does with each attack in detail is tested
//! there; here it is what the rest of the process and the ensemble see of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod escapes;
mod floods;
mod leaving;
mod neighbours;
mod printing;
mod processor;
mod scene;
mod unread;
mod waking;
