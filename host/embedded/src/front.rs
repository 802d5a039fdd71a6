//! The wire front: sockets, tasks and the clock around the state machine.
//!
//! One task owns the state. Every connection has one task that reads and writes; frames go to the
//! state's task in the order of arrival, and answers come back by one ordered queue.
//!
//! # A client that does not read
//! It hurts only itself. Above a few megabytes of unsent answers, or of requests without an answer,
//! it is neither served nor read, so that TCP holds it back; and behind a write, whose commit sets
//! them free at once, only so many of its reads are served. Events cannot be held back like that: if they pile up far
//! beyond, the connection is closed rather than an event dropped. The client comes back, hands in
//! its watches with the newest zxid it has seen, and is told what changed since.
//!
//! # Connections and files
//! Both take descriptors, of which a process has so many. When no more are left than the files need,
//! further connections are closed, and that is told once: a log that cannot be begun would end the
//! server.
//!
//! # Where the log goes
//! The state's task works off a batch of messages, gives what they led to to the journal, and
//! applies and answers only what the journal has kept. With a data directory, a thread of its own
//! writes and forces: what comes in meanwhile is prepared for the next round, and reads behind no
//! write of their own connection are answered at once.
//!
//! # A disk that fails
//! When the log cannot be written or forced, the server ends, and says why: what it has prepared
//! is neither applied nor answered, and nothing is tried again, for a second attempt to force a
//! file may succeed without the bytes that the first one lost. A snapshot that fails is told of and
//! no reason to end: the logs that it would have made superfluous stay, and the next one is due
//! after as many txns again.

mod actor;
mod backlog;
mod clock;
mod connection;
mod descriptors;
mod journal;
mod listener;
mod options;
mod server;
mod snapshots;
mod status;
mod tasks;

pub use options::ServerOptions;
pub use server::{Server, StartError};
pub(crate) use status::Status;
