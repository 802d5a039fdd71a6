//! What a recipe's promise is written with: a judge of the histories that a simulation records.
//!
//! A judge is a component without imports. It is fed the history of a run after the run, and answers
//! which of its invariants that broke:
//!
//! ```
//! use wok_judge::history::{Entry, Told, What};
//! use wok_judge::{Judge, Violation};
//!
//! /// Nobody is ever told that what it held is lost.
//! struct NothingIsLost;
//!
//! impl Judge for NothingIsLost {
//!     const INVARIANTS: &'static [(&'static str, &'static str)] =
//!         &[("N1", "nobody loses what it holds")];
//!
//!     fn begin(_config: &str) -> Result<Self, String> {
//!         Ok(NothingIsLost)
//!     }
//!
//!     fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
//!         let mut found = Vec::new();
//!         for (at, entry) in history.iter().enumerate() {
//!             if let What::Told { participant, notice: Told::Lost { reason } } = &entry.what {
//!                 let sentence = format!("participant {participant} lost it: {reason}");
//!                 found.push(Violation::new("N1", at, sentence).by([*participant]));
//!             }
//!         }
//!         found
//!     }
//! }
//!
//! wok_judge::export!(NothingIsLost);
//! ```
//!
//! # Code map
//! - [`history`]: what happened. [`Judge`], [`export!`], `raise`: how a component gets it
//! - [`Case`], [`Violation`], [`Moment`], [`Promise`]: a history, and what is said of it
//! - [`truth`], [`counter`]: the lines of contenders, by the ensemble's own log
//! - [`people`]: who asked, was told and believed what; [`faults`]: when the simulator was at it
//! - [`grants`], [`exclusion`], [`beliefs`], [`turns`], [`leftovers`], [`polling`], [`herd`]: passes over
//!   a history for recipes in which contenders stand in line for a claim
//! - [`lines`]: a pass for those of them that tell people who is in line
//! - [`departures`]: a pass for recipes that tell people who is there
//! - [`refusals`]: a pass for recipes that refuse wrong arguments, and what a participant has or lacks
//! - [`revoking`]: a pass for those of them in which one that holds can be asked to give way
//! - [`queue`]: the items of a queue by the ensemble's own log, and passes for recipes that are one
//! - [`revisions`]: a pass for recipes that tell people of revisions
//! - [`linear`]: a search for an order that explains what callers saw
//! - [`stories`]: histories made by hand, for the tests of judges; [`proofs`]: what these tests assert
//!
//! # Invariants
//! - Nothing here asks anything of a system: a judge sees the history and nothing else.
//! - A judge judges from outside: by what the ensemble committed and what people were told, never by what
//!   a component thought.
//! - A history may be cut off anywhere; what it does not show is not held against it.

#[doc(hidden)]
pub mod bindings;

pub mod history;
mod judge;
mod raise;

mod case;
pub mod counter;
pub mod faults;
pub mod people;
pub mod truth;

pub mod beliefs;
pub mod departures;
pub mod exclusion;
pub mod grants;
pub mod herd;
pub mod leftovers;
pub mod linear;
pub mod lines;
pub mod polling;
pub mod queue;
pub mod refusals;
pub mod revisions;
pub mod revoking;
pub mod turns;

pub mod proofs;
pub mod stories;

pub use case::{Case, Moment, Promise, Stay, Violation, first_of_each};
#[doc(hidden)]
pub use judge::Exported;
pub use judge::Judge;
