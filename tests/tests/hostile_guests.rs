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

#[path = "hostile_guests/escapes.rs"]
mod escapes;
#[path = "hostile_guests/floods.rs"]
mod floods;
#[path = "hostile_guests/leaving.rs"]
mod leaving;
#[path = "hostile_guests/neighbours.rs"]
mod neighbours;
#[path = "hostile_guests/printing.rs"]
mod printing;
#[path = "hostile_guests/processor.rs"]
mod processor;
#[path = "hostile_guests/scene.rs"]
mod scene;
#[path = "hostile_guests/unread.rs"]
mod unread;
#[path = "hostile_guests/waking.rs"]
mod waking;
