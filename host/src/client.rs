//! A client of the daemon's local API, for the commands that go through it.
//!
//! | file | what it is about |
//! |---|---|
//! | `socket` | where a client looks for the daemon |
//! | `http` | one request, and its answer as JSON or as lines |
//! | `lines` | a stream of lines, each of them bounded |
//! | `event` | what a line says |
//! | `listed` | participants as they are listed |
//! | `joined` | a participant that lives as long as its stream is open |
//! | `tenure` | until when what it holds may be relied on |
//! | `error` | what goes wrong |
//!
//! A daemon may be newer than its client: keys and events that are not known are passed over.

mod error;
mod event;
mod http;
mod joined;
mod lines;
mod listed;
#[cfg(test)]
mod peer;
mod socket;
mod tenure;

pub use error::{ClientError, HostError};
pub use event::{Event, LossTold, Told, Whole};
pub use http::{Client, path};
pub use joined::{Join, Joined, Keeping, Purpose};
pub use lines::Lines;
pub use listed::{Behind, HeldThere, Listed, Participants, Waiting};
pub use socket::Socket;
pub use tenure::Tenure;
