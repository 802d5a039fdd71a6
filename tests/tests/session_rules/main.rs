//! The session room's rules on a real server, most of them through the fault proxy. One file for
//! each rule, one sentence for each test.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod bounds;
mod cancelled;
mod claiming_multis;
mod claims;
mod deadline;
mod ensure;
mod epochs;
mod identity;
mod late_contact;
mod lost_replies;
mod names;
mod reachability;
mod room;
mod settled;
mod used_up;
mod watch_budget;
mod watches;
