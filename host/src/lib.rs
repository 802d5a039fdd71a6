//! wok: ZooKeeper recipes as sandboxed WebAssembly components.
//!
//! [`Host`] embeds it in a Rust program.
//!
//! One host holds the ZooKeeper sessions. A recipe is a component; a participant is one component
//! instance that takes part in a recipe.
//!
//! # Code map
//! In the order of dependence, lowest first:
//! - [`session`]: the way to ZooKeeper, and the rules that no guest can break.
//! - [`guest`]: components in their sandboxes.
//! - [`participant`]: one component instance with its task, its mailbox and its followers.
//! - [`guardian`]: a process that ends a command with its claim.
//! - [`config`]: TOML to validated types.
//! - [`base`]: an engine for modules, and the way to ZooKeeper.
//! - [`registry`]: who takes part in what.
//! - [`epochs`]: the sessions that are open, and the recipes that can be joined on them.
//! - [`holding`]: from "held" to a running command and back.
//! - [`host`]: the host in a Rust program, [`Host`].
//! - `api`: HTTP over a Unix socket, for apps of any language.
//! - `daemon`: which participants should run.
//! - `client`: a client of the daemon's local API.
//! - `simulation`: the same participants over a simulated ensemble.
//! - `scaffold`: recipe crates that stand alone, for `wok new`.
//! - `cli`: one file per command.
//!
//! # Features
//! Without any the library is what a program embeds. `daemon` adds `api`, `daemon` and `client`;
//! `simulation` the simulator; `command-line` all of that, and the program `wok`.
//!
//! # Invariants
//! - No recipe is named outside `cli`: a stock recipe is only a component with a name.
//! - Only `session` knows zookeeper-client, only `guest` knows wasmtime.
//! - Tasks start in [`tasks`] only, so that every one of them is joined.
//! - Only `session` judges whether a session and its claims still stand, by [`clock`], which counts the
//!   time that a machine sleeps. Callers' deadlines and apps' leases are tokio's, and stand still then.
//! - No room knows one that stands below it in this file.
//!
//! The tidy tests look after all of them.

pub mod clock;
mod descriptors;
mod digest;
mod named_file;
mod near;
mod plain_text;
pub mod tasks;
pub mod znode_path;

mod backoff;

pub mod session;

pub mod guest;
pub mod modules;

pub mod participant;

pub mod guardian;

pub mod config;

pub mod base;

pub mod registry;

pub mod epochs;

pub mod holding;

pub mod host;

#[cfg(feature = "daemon")]
pub mod logbook;

#[cfg(feature = "daemon")]
pub mod api;

#[cfg(feature = "daemon")]
pub mod daemon;

#[cfg(feature = "daemon")]
pub mod client;

#[cfg(feature = "simulation")]
pub mod simulation;

#[cfg(feature = "command-line")]
pub mod scaffold;

#[cfg(feature = "command-line")]
pub mod cli;

pub use host::{Call, Held, Host, Recipe};
