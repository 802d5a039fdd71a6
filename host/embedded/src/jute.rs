//! Jute, ZooKeeper's encoding of records: big-endian numbers, counted bytes and lists.

mod reader;
mod writer;

pub use reader::{Malformed, Reader};
pub use writer::Writer;
