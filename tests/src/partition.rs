//! Three real servers and two hosts in network namespaces of their own, cut off from each other: the
//! holder's command has written its last line before the next holder's writes its first, always.

#![allow(clippy::indexing_slicing, reason = "a panic is a failed test")]

mod ground;
mod host;
mod rounds;

pub use self::ground::{Cut, Ground};
pub use self::host::Kind;
pub use self::rounds::{HandOver, round};
