//! The embedded server beside Apache ZooKeeper: the same scripts, the same answers.
//!
//! What the two may differ in is what `wok_tests::wire` spells relative to the run. Differences on
//! purpose are not asked for by any script: a node with a time to live whose time is -1 stops
//! Apache's server, as does a count of a quota that is no number; a limit that is none is no limit,
//! where Apache's refuses all that is below; a client's own `createSession` is refused; and the order
//! of `whoAmI`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod access;
mod burst;
mod errors;
mod frames;
mod kazoo;
mod multi;
mod nodes;
mod quotas;
mod random;
mod sessions;
mod sweeps;
mod watches;

use std::sync::OnceLock;

use anyhow::Result;
use wok_tests::wire::{ExtendedTypes, Pair, Run};

/// Runs a script on both servers of this test binary.
#[track_caller]
fn check(script: impl Fn(&mut Run) -> Result<()> + Sync) {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    let pair = PAIR.get_or_init(|| Pair::start(ExtendedTypes::On).unwrap());
    compare(pair, script);
}

#[track_caller]
fn compare(pair: &Pair, script: impl Fn(&mut Run) -> Result<()> + Sync) {
    if let Err(error) = pair.compare(script) {
        panic!("{error:#}");
    }
}
