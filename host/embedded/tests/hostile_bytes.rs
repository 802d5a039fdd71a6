//! What the fuzzer does for hours, for a moment: the seeds that it once found, and bytes by lot.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

use std::alloc::System;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap::Cap;
use proptest::prelude::*;

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "it is a library to the fuzzer's programs")]
mod fuzz;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

type Target = fn(&[u8]);

/// The allocator's limit is for one input, and the process has one allocator.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays an input. Running out of memory ends the process, and then the input stays behind; the
/// fuzzer's program plays it again: `target/fuzz/<host>/release/<target> <file>`.
fn play(name: &str, target: Target, input: &[u8]) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}"));
    fs::write(&kept, input).unwrap();
    fuzz::within_limit(&ALLOCATOR, target, input);
    fs::remove_file(kept).unwrap();
}

#[track_caller]
fn play_seeds(name: &str, target: Target) {
    let _alone = alone();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let seeds: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(seeds.len() >= 50, "{} has {} seeds", directory.display(), seeds.len());
    for seed in seeds {
        let input = fs::read(&seed).unwrap();
        assert!(input.len() <= fuzz::INPUT, "{}", seed.display());
        play(name, target, &input);
    }
}

#[test]
fn the_seeds_of_frames_do_no_harm() {
    play_seeds("frames", fuzz::frames::play);
}

#[test]
fn the_seeds_of_files_do_no_harm() {
    play_seeds("files", fuzz::files::play);
}

/// Bytes that are mostly small numbers, as lengths, kinds and counts are.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => 0..32_u8, 1 => any::<u8>(), 1 => Just(b'/'), 1 => Just(0xff)];
    prop::collection::vec(byte, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_frames_by_lot_do_harm(bytes in bytes()) {
        let _alone = alone();
        play("frames", fuzz::frames::play, &bytes);
    }

    #[test]
    fn no_files_by_lot_do_harm(bytes in bytes()) {
        let _alone = alone();
        play("files", fuzz::files::play, &bytes);
    }
}

/// The process ends where the limit is passed, so this one is played by a process of its own.
#[test]
fn a_byte_beyond_the_limit_ends_the_process() {
    const GREEDY: &str = "WOK_GREEDY";
    if std::env::var_os(GREEDY).is_some() {
        fuzz::within_limit(&ALLOCATOR, |_| drop(vec![1_u8; fuzz::MEMORY + 1]), &[]);
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(own);
    child.args(["--exact", "a_byte_beyond_the_limit_ends_the_process"]).env(GREEDY, "1");
    let output = child.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it went on: {told}");
    assert!(told.contains("memory allocation of 1048576 bytes failed"), "{told}");
}
