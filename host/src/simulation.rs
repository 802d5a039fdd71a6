//! Recipes in simulation: the release `.wasm` of any module, on several hosts, over an ensemble
//! that loses connections, falls behind, changes its leader and expires sessions. One seed decides
//! everything, so that a run that broke an invariant breaks it again.
//!
//! Everything above the [`Ensemble`](crate::session::Ensemble) trait is the host's own code: the
//! session's rules, the sandbox, the participants. Beneath it is a `client` in zookeeper-client's
//! place, a `network`, and `servers` made of the embedded server's state machine.
//!
//! # Code map
//! - [`subject`], `survey`, [`workload`], [`plan`], [`scenario`], `references`: what is run, what its
//!   users do, and the plan of a seed or of a file
//! - [`world`], `executor`, `process`, `application`, `nemesis`: a run and who takes part in it
//! - `network`, `servers`, `client`, `frames`: the ensemble and the way to it
//! - [`ensemble`]: the ensemble by itself, to be compared with Apache ZooKeeper
//! - [`history`], `recorder`: what happened
//! - [`judges`], [`invariants`], [`verdict`], [`called`], [`coverage`]: whether that was right, and
//!   what it is worth
//! - [`search`], [`exhaustive`], [`shrink`]: many runs, and the smallest one that fails
//! - [`timeline`], [`picture`]: a run as people read it
//! - [`chance`], `clock`: all randomness and time
//!
//! # Invariants
//! - The same module and the same plan give the same history, on every machine: one thread,
//!   simulated time, no randomness but from [`Chance`](chance::Chance). Every wait in here is of
//!   simulated time and passes at once.
//! - Nothing here is used by a host outside of simulations.

mod application;
pub mod called;
pub mod chance;
mod client;
mod clock;
pub mod coverage;
pub mod ensemble;
mod executor;
pub mod exhaustive;
mod frames;
pub mod invariants;
pub mod judges;
mod nemesis;
mod network;
pub mod picture;
pub mod plan;
mod process;
mod recorder;
mod references;
pub mod scenario;
pub mod search;
mod servers;
pub mod shrink;
pub mod subject;
mod survey;
pub mod timeline;
pub mod verdict;
pub mod workload;
pub mod world;

pub use wok_judge::history;
