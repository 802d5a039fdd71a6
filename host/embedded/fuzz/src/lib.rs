//! What hostile bytes are given to: each target is a function of bytes, without I/O, that panics at
//! whatever must not be.
//!
//! Two callers share it: the programs in `src/bin/`, which a fuzzer guides by the code that its
//! bytes reach (`cargo xtask soak fuzz`), and the test `hostile_bytes` of `wok-embedded`, which
//! plays `seeds/` and bytes by lot on every commit.

pub mod files;
pub mod frames;

mod driven;
mod input;

use std::alloc::System;

use cap::Cap;

/// What an input may have allocated at any moment: the longest frame that a server takes unless it
/// is told otherwise. Inputs are far shorter, so that a target that trusts a length they claim gets
/// past this limit.
pub const MEMORY: usize = 0xf_ffff;

/// The longest input of any use.
pub const INPUT: usize = 8 << 10;

/// Plays a target within [`MEMORY`]: one byte more ends the process, as when memory runs out.
pub fn within_limit(allocator: &Cap<System>, target: fn(&[u8]), input: &[u8]) {
    let limit = allocator.allocated() + MEMORY;
    allocator.set_limit(limit).expect("the limit is above what is allocated");
    let _lifted = Lifted(allocator);
    target(input);
}

/// Lifts the limit at the end, also that of a panic.
struct Lifted<'a>(&'a Cap<System>);

impl Drop for Lifted<'_> {
    fn drop(&mut self) {
        self.0.set_limit(usize::MAX).expect("there is no higher limit");
    }
}
