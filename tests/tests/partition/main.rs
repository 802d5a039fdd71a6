//! Three real servers and two hosts in network namespaces of their own, cut off from each other: the
//! holder's command has written its last line before the next holder's writes its first, always.
//!
//! `WOK_PARTITION_ROUNDS` asks for so many rounds of every cut, timeout and kind of host; without it
//! the two plainest cuts are played once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod ground;
mod host;
mod links;
mod rounds;
mod slow;
