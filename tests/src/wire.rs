//! One script on two servers, frame by frame: what they say must be the same.
//!
//! In reading order:
//! - [`Pair`]: Apache ZooKeeper and the embedded server, set up alike, and their comparison.
//! - [`Trio`]: three servers of Apache ZooKeeper and the three of the simulation, and the same.
//! - [`Run`]: a script's sessions on one server, and the transcript of all that is said.
//! - [`message`]: what a client can ask, valid or not.
//!
//! What may differ between two runs is spelled relative to the run: zxids count from its start,
//! sessions have names, times are told only to lie within it, passwords only to be there, and
//! children are a set. Everything else is compared to the last byte.

mod connection;
mod ground;
pub mod message;
mod pair;
mod run;
mod seeded;
mod socket;
mod spelling;
mod transcript;
mod trio;

pub use connection::{Hello, Lost, ReadOnlyByte};
pub use ground::{At, Real};
pub use message::Message;
pub use pair::{ExtendedTypes, Pair};
pub use run::{Reply, Run, Who};
pub use seeded::Seeded;
pub use trio::Trio;
