//! What the stock recipes do while something breaks on three real servers: one participant of each
//! play is struck in the middle of an operation. What is exclusive stays so, what was acknowledged
//! is there once, nobody waits for ever, and nothing is left.

mod asking;
mod claiming;
mod gathering;
mod ground;
mod judging;
mod party;
mod plays;
mod repertoire;
mod stage;
mod transacting;

pub use self::ground::{Fault, Ground};
pub use self::plays::{play, struck};
