//! Files that nobody wrote, or not like that.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use wok_embedded::files::{
    DataDir, FilesError, LogReader, Next, read_snapshot, recover, write_whole_snapshot,
};
use wok_embedded::protocol::Write;

use super::world::{World, create, dump};

fn samples() -> (Vec<u8>, Vec<u8>) {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    world.ask(7, Write::CreateSession { timeout_ms: 1_000 });
    for path in ["/a", "/a/b", "/c"] {
        world.ask(7, create(path, b"data", 0));
    }
    world.ask(7, create("/e", b"", 1));
    write_whole_snapshot(&world.directory, &world.replica).unwrap();
    let log = fs::read(world.directory.log(1)).unwrap();
    (log, fs::read(world.directory.snapshot(5)).unwrap())
}

static SAMPLES: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(samples);

/// Bytes out of nowhere, or a file with some of its bytes changed, and perhaps cut.
fn bytes(sample: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let edited = (edits, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        move |(edits, cut, is_cut)| {
            let mut bytes = sample.to_vec();
            for (at, byte) in edits {
                let at = at.index(bytes.len().min(600));
                bytes[at] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(sample.len()));
            }
            bytes
        },
    );
    let header = prop::collection::vec(any::<u8>(), 0..200)
        .prop_map(move |rest| [sample[..16].to_vec(), rest].concat());
    prop_oneof![3 => edited, 1 => header, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

fn read_log(path: &Path) -> Result<u64, FilesError> {
    let mut reader = LogReader::open(path)?;
    let mut count = 0;
    while let Next::Txn(..) = reader.next()? {
        count += 1;
    }
    Ok(count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_log_makes_its_reader_panic(bytes in bytes(&SAMPLES.0)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        read_log(file.path()).ok();
    }

    #[test]
    fn no_snapshot_makes_its_reader_panic_and_none_but_whole_ones_are_taken(
        bytes in bytes(&SAMPLES.1),
    ) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        // The database's number is not looked at, nor the name that ends the seal.
        let is_whole = |bytes: &[u8]| {
            let end = SAMPLES.1.len() - 5;
            bytes.get(..8) == SAMPLES.1.get(..8) && bytes.get(16..end) == SAMPLES.1.get(16..end)
        };
        if read_snapshot(file.path(), 5).is_ok() {
            prop_assert!(is_whole(&bytes));
        }
    }
}

#[test]
fn a_claimed_length_is_held_against_the_file_before_it_is_allocated() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for count in [i32::MAX, -2, 1 << 28] {
        let mut bytes = SAMPLES.1[..16].to_vec();
        bytes.extend(count.to_be_bytes());
        fs::write(file.path(), &bytes).unwrap();
        let error = read_snapshot(file.path(), 5).expect_err("a lie");
        let FilesError::DamagedSnapshot { offset: 20, .. } = error else { panic!("{error}") };
    }
}

#[test]
fn an_older_snapshot_takes_the_place_of_a_damaged_one() {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    world.ask(7, Write::CreateSession { timeout_ms: 1_000 });
    world.ask(7, create("/a", b"data", 0));
    write_whole_snapshot(&world.directory, &world.replica).unwrap();
    world.roll();
    world.ask(7, create("/b", b"data", 0));
    let (damaged, expected) = (world.directory.snapshot(2), dump(&world.replica));
    let mut bytes = fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    drop(world);

    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    let (replica, recovery) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!(dump(&replica), expected);
    assert_eq!(recovery.unreadable, std::slice::from_ref(&damaged));
    assert_eq!(recovery.replayed, 3);

    // Without the older one there is nothing to begin with.
    fs::remove_file(directory.snapshot(0)).unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("no snapshot");
    assert!(matches!(error, FilesError::DamagedSnapshot { .. }), "{error}");
}
