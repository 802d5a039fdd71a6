//! The recipe's WIT, bound.
#![allow(unsafe_code, missing_docs, unreachable_pub, unused, reason = "generated")]
#![allow(clippy::all, clippy::indexing_slicing, clippy::mem_forget, reason = "generated")]

use crate::TwoPhaseCommit;

wok_sdk::bind!("../../guest-sdk/wit", "wok:two-phase-commit/recipe");
// The names of the exports are none that a native linker takes.
#[cfg(target_arch = "wasm32")]
export!(TwoPhaseCommit with_types_in self);
