//! The fuzzer of `frames`.

#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use wok_embedded_fuzz::{frames, within_limit};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

fuzz_target!(|input: &[u8]| within_limit(&ALLOCATOR, frames::play, input));
