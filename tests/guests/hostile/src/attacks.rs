//! Attacks on processor, memory and stack, and on what a participant leaves behind.

use std::hint::black_box;

use wok_sdk::participant::{ContenderName, UuidForm, claim, claim_all, contend as contend_in, id};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, exists, wait};

use crate::bindings::exports::wok::hostile::hostile::Held;

/// Longer than any test; an alarm that never fires.
pub(crate) const NEVER_MS: u64 = 365 * 24 * 3600 * 1000;

pub(crate) fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

pub(crate) fn yield_loop() {
    loop {
        black_box(exists("/").is_ok());
    }
}

/// The host refuses each of them before it asks the server.
pub(crate) fn misspell() {
    loop {
        black_box(exists("no path").is_ok());
    }
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn memory_bomb() -> u32 {
    let mut pages = 0_u32;
    while std::arch::wasm32::memory_grow(0, 1) != usize::MAX {
        pages = pages.saturating_add(1);
    }
    pages
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn memory_bomb() -> u32 {
    0
}

pub(crate) fn allocate() {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    loop {
        kept.push(black_box(vec![1; 64 * 1024]));
    }
}

pub(crate) fn recurse() {
    black_box(deeper(1));
}

#[allow(unconditional_recursion, reason = "that is the attack")]
fn deeper(depth: u64) -> u64 {
    // What is done after the call keeps it from becoming a loop.
    let frame = black_box([depth; 16]);
    deeper(depth.wrapping_add(1)).wrapping_add(frame.iter().sum())
}

pub(crate) fn trap() {
    #[cfg(target_arch = "wasm32")]
    std::arch::wasm32::unreachable();
}

#[allow(clippy::panic, reason = "that is the attack")]
pub(crate) fn panic_with(message: &str) {
    panic!("{message}");
}

pub(crate) fn contend() -> Result<String, Error> {
    let name = ContenderName {
        before: "_c_".to_owned(),
        uuid: UuidForm::Hyphenated,
        after: "-lock-".to_owned(),
    };
    Ok(contend_in("/", &name, id().as_bytes())?.path)
}

pub(crate) fn hold() -> Result<Held, Error> {
    let path = contend()?;
    let fence = claim(&path)?;
    Ok(Held { path, fence })
}

pub(crate) fn hold_both() -> Result<Vec<Held>, Error> {
    let paths = [contend()?, contend()?];
    let fences = claim_all(&paths)?;
    Ok(paths.into_iter().zip(fences).map(|(path, fence)| Held { path, fence }).collect())
}

pub(crate) fn wait_for_ever() -> Result<(), Error> {
    wait(&[&alarm(NEVER_MS, 0)]).map(|_| ())
}
