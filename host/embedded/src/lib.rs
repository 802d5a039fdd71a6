//! A ZooKeeper server in process: it speaks ZooKeeper's protocol to any client and needs nothing
//! installed. Its state is in memory; with a data directory it outlives the process.
//!
//! ```
//! let zookeeper = wok_embedded::EmbeddedZooKeeper::start()?;
//! println!("clients connect to {}", zookeeper.connect_string());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Code map
//! The state machine has three parts, without I/O, clock or randomness, so that a simulator can
//! run several servers from one seed:
//! * [`prepare`]: the leader turns requests into txns, seeing what is prepared but not applied.
//! * [`replica`]: every server applies the txns, in order, to its copy of the [`tree`].
//! * [`serve`]: one server's connections, reads, watches and answers; its copy may be behind.
//!
//! Around them: [`standalone`] is one leader and one server in one; [`files`] is its log and its
//! snapshots; [`front`] gives it sockets, a clock and the disk; [`words`] answers operators;
//! [`embedded`] puts all of it into a thread.
//! Beneath them: [`jute`] is the encoding, [`protocol`] the requests and answers, [`txn`] what
//! the leader decides, [`access`] who may do what, [`session`] ids, passwords and expiry.
//!
//! # Invariants
//! * Txns are applied in the order of their zxids; a request that fails has a zxid, too.
//! * Applying a txn again over a newer copy changes nothing.
//! * With a data directory, nothing is answered, and nothing is read by anybody, before it is in
//!   the log and the log on disk. A disk that fails ends the server: see [`Server::failure`].
//! * An event is on its way before the answer to the write that caused it, and before any later
//!   answer of that server.
//! * A connection's requests are answered in order.
//! * Nothing a client sends makes the server panic. What it claims allocates nothing, only what it
//!   has sent, and the answer.
//!
//! # Moving to an ensemble
//! A data directory ([`ServerOptions::data_dir`]) is in Apache ZooKeeper's own formats, see
//! [`files`]. Stop this server, start Apache ZooKeeper 3.8 with `dataDir` set to the
//! directory, and it goes on with the same nodes, access lists and sessions; so does this server
//! with Apache's directory, unless only compressed snapshots show a part of it. If nodes have a time to
//! live, Apache ZooKeeper must be told `extendedTypesEnabled=true`, or it takes them for ephemerals of
//! sessions that have ended.
//!
//! # What is not here
//! TLS, SASL and `reconfig`. One server cannot show what an ensemble
//! does: stale reads, sessions that move, lost leaders, read-only mode. Programs that must live
//! with those are tested on an ensemble.

pub mod access;
pub mod embedded;
pub mod files;
pub mod front;
pub mod jute;
pub mod path;
pub mod prepare;
pub mod protocol;
pub mod replica;
pub mod serve;
pub mod session;
pub mod standalone;
pub mod time;
pub mod tree;
pub mod txn;
pub mod version;
pub mod words;

pub use embedded::EmbeddedZooKeeper;
pub use front::{Server, ServerOptions, StartError};
pub use version::ServerVersion;
