//! From "held" to a running command and back.
//!
//! [`acquire`](acquire()) calls an operation until it holds a claim; [`run_while_held`] has a
//! guardian run a command for as long as the claim is held, and not a moment longer; [`run_guarded`]
//! does so for a claim of another process, which says until when it holds. [`Keep`] does both again
//! and again, for a recipe that the config tells to run.

mod acquire;
mod command;
mod guarded;
mod keep;
mod leave;
mod told;

pub use acquire::{Acquire, Attempt, Seen, acquire};
pub use command::{CommandEnd, run_while_held};
pub use guarded::{EndsBy, Instruction, Terms, run_guarded};
pub use keep::{Keep, Kept};
pub use leave::leave;
pub(crate) use leave::until_overdue;
