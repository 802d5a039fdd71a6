//! The wire front: sockets, tasks and the clock around the state machine.
//!
//! One task owns the state. Every connection has one task that reads and writes; frames go to the
//! state's task in the order of arrival, and answers come back by one ordered queue.

mod actor;
mod backlog;
mod clock;
mod connection;
mod frames;
mod journal;
mod listener;
mod options;
mod server;
mod tasks;

pub use options::ServerOptions;
pub use server::{Server, StartError};
