//! Sessions: their ids, their passwords, and when they expire.

mod ids;
mod password;
mod tracker;

pub use ids::SessionIds;
pub use password::Passwords;
pub use tracker::{Owner, SessionTracker};
