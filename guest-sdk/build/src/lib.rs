//! Turns recipes into wok components: crates, and what is written in C or JavaScript.
//!
//! ```no_run
//! let components = wok_build::Builder::new("target/guests").guest("recipes-wasm/lock").build()?;
//! for component in &components {
//!     println!("{}: {} bytes, sha256 {}", component.name, component.wasm.len(), component.sha256());
//! }
//! # Ok::<(), wok_build::Error>(())
//! ```
//!
//! # Code map
//! [`Builder`] looks in which `language` a recipe is. For crates it asks [`Toolchain`] for a compiler that
//! knows `wasm32-unknown-unknown` and runs `cargo` once per workspace, in the `place` that all of them share;
//! `c` has clang compile the sources
//! with bindings that it makes, and `javascript` has componentize-js put them into an engine. Each module
//! is encoded as a [`Component`], and its documented WIT appended ([`append_wit`], [`wit_of`]),
//! and the workload that stands beside it ([`WORKLOAD_SECTION`]).
//! [`embed`] is the same for build scripts; [`embed_sources`] has a binary carry crates as text.
//!
//! # Invariants
//! * The nested cargo has a target directory of its own and an environment cleared of everything the
//!   outer cargo, clippy or a coverage tool set: neither deadlocks on the other's lock, nor are guests
//!   compiled with flags meant for the host.
//! * A recipe that leaves here imports nothing but `wok:recipe/*` and exports one interface; a judge
//!   imports nothing, and exports `wok:judge/judge`.

mod builder;
mod c;
mod cargo;
mod compiler;
mod component;
mod embed;
mod error;
mod javascript;
mod language;
mod place;
mod sources;
mod wit;
mod workload;

pub use builder::Builder;
pub use component::{Component, JUDGE_SECTION};
pub use embed::{Embedding, embed};
pub use error::Error;
pub use sources::embed_sources;
pub use wit::{WIT_SECTION, Wit, append_wit, wit_of};
pub use wok_toolchain::{NoToolchain, TOOLCHAIN_VARIABLE, Toolchain};
pub use workload::{WORKLOAD_FILE, WORKLOAD_SECTION};

/// Where the judge of a recipe's promise stands, from the recipe's directory.
pub const JUDGE_DIRECTORY: &str = "promise/judge";

/// The contract between host and guests, as WIT text. There is one copy of it.
pub const CONTRACT: &str = include_str!("../../wit/recipe.wit");
