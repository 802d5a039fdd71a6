//! What the proxy has seen.

use std::time::Instant;

use crate::frames::Opcode;

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The connection it came on, counted from 1.
    pub connection: u64,
    /// The client's number for it.
    pub xid: i32,
    /// What it asks for.
    pub opcode: Opcode,
    /// The path it is about, if it has one; of a `multi` the first.
    pub path: Option<String>,
    /// Its length in bytes, without the frame's.
    pub length: usize,
    /// When it came.
    pub at: Instant,
    /// What the server answered, once it has; the client may not have got it.
    pub answer: Option<Answer>,
}

/// The server's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The newest transaction that the server had applied.
    pub zxid: i64,
    /// 0, or ZooKeeper's number of an error.
    pub error: i32,
    /// When it came.
    pub at: Instant,
}
