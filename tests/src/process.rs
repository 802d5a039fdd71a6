//! Runs the `wok` binary and other programs, and judges what they did and in which order.

mod binary;
mod order;
mod running;
mod tree;

pub use binary::wok_binary;
pub use order::{Entry, OrderFile};
pub use running::{Ended, Line, Program, Running, Stream};
pub use rustix::process::Signal;
pub use tree::{is_there, pause, signal};
