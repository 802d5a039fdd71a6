//! Logs that end, or are not, as they were written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use wok_embedded::files::{DataDir, FilesError, encode_entry, recover};
use wok_embedded::protocol::{OpCode, Write};
use wok_embedded::txn::{CreateTxn, SubTxn, Txn};

use super::world::{World, create, dump, restart};

/// The log of three txns after the session's, its bytes without the zeros behind, and where each
/// entry begins.
struct Log {
    scratch: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    entries: Vec<usize>,
}

fn log() -> Log {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    let mut entries = vec![16];
    let writes = [
        Write::CreateSession { timeout_ms: 1_000 },
        create("/a", b"first", 0),
        create("/b", b"second", 0),
        create("/c", b"third", 0),
    ];
    for write in writes {
        let path = world.directory.log(1);
        world.ask(7, write);
        let bytes = fs::read(path).unwrap();
        entries.push(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    }
    let path = world.directory.log(1);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 4096, "zeros are written ahead");
    bytes.truncate(*entries.last().unwrap());
    Log { scratch, path, bytes, entries }
}

/// So many zeros stay behind the last txn.
const ROOM: usize = 16;

#[test]
fn a_torn_end_is_cut_and_told_of_at_every_byte() {
    let log = log();
    let last = log.entries[3];
    let mut bytes = log.bytes[..last].to_vec();
    bytes.resize(last + ROOM, 0);
    fs::write(&log.path, &bytes).unwrap();
    let (before, recovery) = restart(log.scratch.path());
    assert_eq!((recovery.replayed, recovery.torn.len()), (3, 0));
    for end in last + 1..log.bytes.len() {
        // There is room for the txn before it is written.
        for length in [log.bytes.len() + ROOM, 4096] {
            let mut bytes = log.bytes[..end].to_vec();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            bytes.resize(length, 0);
            fs::write(&log.path, &bytes).unwrap();
            let (replica, recovery) = restart(log.scratch.path());
            assert_eq!(dump(&replica), dump(&before));
            let torn: Vec<_> = recovery.torn.iter().map(|t| (t.offset, t.bytes)).collect();
            // The first bytes of an entry are zeros: they are not told from room for more.
            let expected = (last as u64, used.saturating_sub(last) as u64);
            let expected = if used > last { vec![expected] } else { Vec::new() };
            assert_eq!(torn, expected, "torn at {end} of {length}");
            if !torn.is_empty() {
                assert_eq!(fs::metadata(&log.path).unwrap().len(), (last + ROOM) as u64);
                let (_, recovery) = restart(log.scratch.path());
                assert_eq!(recovery.torn, [], "it is cut once");
            }
        }
    }
}

/// What a start says that is refused, and the directory is as it was.
#[track_caller]
fn refusal(log: &Log) -> FilesError {
    let before = fs::read(&log.path).unwrap();
    let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
    let error = recover(&directory, 0, u64::MAX).expect_err("a log that lost something");
    assert_eq!(fs::read(&log.path).unwrap(), before, "nothing is touched");
    assert!(error.to_string().contains(&log.path.display().to_string()), "{error}");
    error
}

/// A server leaves none like that: what it answered is gone.
#[test]
fn a_log_that_was_cut_is_refused_at_every_byte_and_its_remedy_gives_up_no_more_than_it_says() {
    let log = log();
    let mut whole = log.bytes.clone();
    whole.resize(log.bytes.len() + ROOM, 0);
    for length in 16..whole.len() {
        fs::write(&log.path, &whole[..length]).unwrap();
        let error = refusal(&log);
        let FilesError::DamagedLog { offset, after_zxid, .. } = error else { panic!("{error}") };
        let begin = log.entries.iter().rposition(|begin| *begin <= length).unwrap();
        // Cut within an entry's first zeros, or behind it, it is that entry's end that is lost.
        assert_eq!(offset, log.entries[begin] as u64, "cut to {length}");
        assert_eq!(usize::try_from(after_zxid).unwrap(), begin, "cut to {length}");
        if [log.entries[1], log.entries[2] - 1].contains(&length) {
            let error = error.to_string();
            let remedy = error.split('`').nth(1).unwrap();
            let status = Command::new("sh").args(["-c", remedy]).status().unwrap();
            assert!(status.success(), "{remedy}");
            let (_, recovery) = restart(log.scratch.path());
            assert_eq!((recovery.last_zxid, recovery.torn), (after_zxid, vec![]), "{remedy}");
        }
    }
    fs::write(&log.path, &whole).unwrap();
    assert_eq!(restart(log.scratch.path()).1.last_zxid, 4);
}

#[test]
fn a_log_without_its_beginning_is_refused() {
    let log = log();
    for bytes in [&log.bytes[..0], &log.bytes[..7], &log.bytes[..15], &[0; 4096]] {
        fs::write(&log.path, bytes).unwrap();
        let error = refusal(&log);
        let FilesError::NoLog { length, .. } = error else { panic!("{error}") };
        assert_eq!(length, bytes.len() as u64);
        assert!(error.to_string().contains("put back a copy of the file"), "{error}");
    }
    // Its remedy.
    fs::remove_file(&log.path).unwrap();
    assert_eq!(restart(log.scratch.path()).1.last_zxid, 0);
}

/// Apache ZooKeeper does not keep room behind every txn, and mostly has some.
#[test]
fn a_log_of_apaches_may_be_torn_where_zeros_follow_and_nowhere_else() {
    let log = log();
    let last = log.entries[3];
    let mut apaches = log.bytes.clone();
    apaches[8..16].fill(0);
    let write = |end: usize, length: usize| {
        let mut bytes = apaches[..end].to_vec();
        bytes.resize(length, 0);
        fs::write(&log.path, bytes).unwrap();
    };
    write(last + 40, last + 40);
    let error = refusal(&log);
    assert!(matches!(error, FilesError::DamagedLog { after_zxid: 3, .. }), "{error}");
    write(last + 40, 4096);
    assert_eq!(restart(log.scratch.path()).1.torn.len(), 1);
    write(last, last);
    let (_, recovery) = restart(log.scratch.path());
    assert_eq!((recovery.last_zxid, recovery.torn), (3, vec![]));
}

#[test]
fn every_flipped_byte_before_the_last_txn_is_refused() {
    let log = log();
    let good = log.bytes.clone();
    for at in (0..8).chain(16..log.entries[3]) {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            bytes.resize(4096, 0);
            fs::write(&log.path, &bytes).unwrap();
            let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
            let error = recover(&directory, 0, u64::MAX).expect_err("a flipped byte");
            if at < 8 {
                assert!(matches!(error, FilesError::NoLog { .. }), "{error}");
            } else {
                let FilesError::DamagedLog { path, offset, .. } = &error else { panic!("{error}") };
                assert_eq!(path, &log.path);
                let begin = log.entries.iter().rev().find(|begin| **begin <= at).copied();
                assert_eq!(*offset, begin.unwrap() as u64, "byte {at}");
                assert!(error.to_string().contains("truncate -s"), "{error}");
            }
            assert_eq!(fs::read(&log.path).unwrap(), bytes, "nothing is touched");
        }
    }
}

#[test]
fn a_wrong_byte_in_a_whole_last_txn_is_refused() {
    let log = log();
    // In its data: the txn is whole and may have been answered.
    let mut bytes = log.bytes.clone();
    let length = bytes.len();
    bytes[length - 45] ^= 1;
    fs::write(&log.path, &bytes).unwrap();
    let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
    let error = recover(&directory, 0, u64::MAX).expect_err("a flipped byte");
    assert!(matches!(error, FilesError::DamagedLog { after_zxid: 3, .. }), "{error}");
}

#[test]
fn missing_txns_are_refused_unless_a_new_epoch_begins() {
    let log = log();
    let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
    let mut world_txn = {
        let scratch = tempfile::tempdir().unwrap();
        let mut other = World::open(scratch.path());
        other.prepare(7, Write::CreateSession { timeout_ms: 1 })
    };
    let mut write = |zxid: i64| {
        world_txn.header.zxid = zxid;
        let mut bytes = log.bytes[..16].to_vec();
        encode_entry(&world_txn.header, &world_txn.txn, &mut bytes);
        bytes.extend([0; ROOM]);
        let path = directory.log(zxid);
        fs::write(&path, bytes).unwrap();
        path
    };
    let path = write(6);
    let error = recover(&directory, 0, u64::MAX).expect_err("a gap");
    let FilesError::MissingTxns { after_zxid: 4, found: 6, .. } = error else { panic!("{error}") };
    fs::remove_file(path).unwrap();
    // A new epoch's first txn has the number 1.
    let path = write((1 << 32) + 2);
    let error = recover(&directory, 0, u64::MAX).expect_err("an epoch without its beginning");
    assert!(matches!(error, FilesError::MissingTxns { after_zxid: 4, .. }), "{error}");
    fs::remove_file(path).unwrap();
    write((1 << 32) + 1);
    let (replica, _) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!(replica.last_zxid(), (1 << 32) + 1);
}

/// Those of a server whose snapshots are lost, or compressed, would be replayed over an empty tree.
#[test]
fn logs_without_the_snapshot_that_they_follow_are_refused() {
    let log = log();
    let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
    let snapshots = directory.snapshots().unwrap();
    // The plain one and the logs have all that the compressed one shows.
    let compressed = directory.snapshot(2).with_extension("2.gz");
    fs::write(&compressed, b"unreadable").unwrap();
    let (_, recovery) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!(recovery.unreadable, std::slice::from_ref(&compressed));
    let is_refused = |compressed: &Path| {
        let error = recover(&directory, 0, u64::MAX).expect_err("a compressed snapshot");
        let FilesError::CompressedSnapshot { path } = error else { panic!("{error}") };
        assert_eq!(path, compressed);
    };
    // The logs end before it.
    let beyond = directory.snapshot(9).with_extension("9.gz");
    fs::write(&beyond, b"unreadable").unwrap();
    is_refused(&beyond);
    fs::remove_file(beyond).unwrap();
    for zxid in snapshots {
        fs::remove_file(directory.snapshot(zxid)).unwrap();
    }
    is_refused(&compressed);
    fs::remove_file(compressed).unwrap();
    // The log has all that there ever was.
    recover(&directory, 0, u64::MAX).unwrap();
    fs::remove_file(directory.snapshot(4)).unwrap();
    let late = directory.log(3);
    fs::rename(directory.log(1), &late).unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("no snapshot");
    let FilesError::NoSnapshot { path } = error else { panic!("{error}") };
    assert_eq!(path, late);
}

/// A server that went on from there would count past the highest number.
#[test]
fn zxids_that_no_server_gives_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    let mut proposal = world.prepare(7, Write::CreateSession { timeout_ms: 1 });
    for zxid in [i64::MAX, i64::MAX - (1 << 32) + 1] {
        proposal.header.zxid = zxid;
        let mut bytes = log().bytes[..16].to_vec();
        encode_entry(&proposal.header, &proposal.txn, &mut bytes);
        let path = world.directory.log(zxid);
        fs::write(&path, bytes).unwrap();
        let error = recover(&world.directory, 0, u64::MAX).expect_err("a zxid too high");
        assert!(matches!(error, FilesError::DamagedLog { offset: 16, .. }), "{error}");
        fs::remove_file(path).unwrap();
        let snapshot = world.directory.snapshot(zxid);
        fs::copy(world.directory.snapshot(0), &snapshot).unwrap();
        let (_, recovery) = recover(&world.directory, 0, u64::MAX).unwrap();
        assert_eq!(recovery.unreadable, std::slice::from_ref(&snapshot));
        fs::remove_file(snapshot).unwrap();
    }
}

/// The root would be its own child, and a server that counts what lies below it would never end.
#[test]
fn nodes_of_paths_that_no_server_takes_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    world.ask(7, Write::CreateSession { timeout_ms: 1_000 });
    let proposal = world.prepare(7, create("/a", b"", 0));
    let Txn::Create(wanted) = proposal.txn else { panic!("{:?}", proposal.txn) };
    for path in ["//", "/", "/a/", "a", ""] {
        let txn = Txn::Create(CreateTxn { path: path.to_owned(), ..wanted.clone() });
        let several = Txn::Multi(vec![SubTxn { op: OpCode::Create, txn: txn.clone() }]);
        for txn in [txn, several] {
            let mut bytes = log().bytes[..16].to_vec();
            encode_entry(&proposal.header, &txn, &mut bytes);
            let log = world.directory.log(proposal.header.zxid);
            fs::write(&log, bytes).unwrap();
            let error = recover(&world.directory, 0, u64::MAX).expect_err("no such path");
            // Also where the log itself has nothing before: that is what a remedy begins with.
            let is_damaged =
                matches!(error, FilesError::DamagedLog { offset: 16, after_zxid: 1, .. });
            assert!(is_damaged, "{path}: {error}");
            fs::remove_file(log).unwrap();
        }
    }
}

#[test]
fn a_snapshot_that_cannot_be_written_at_the_start_is_told_and_the_logs_are_kept() {
    let log = log();
    let directory = Arc::new(DataDir::take(log.scratch.path()).unwrap());
    for name in ["nodes", "snapshot"] {
        let unfinished = directory.version_dir().join(format!("unfinished.{name}"));
        symlink("/dev/full", &unfinished).unwrap();
        let (replica, recovery) = recover(&directory, 0, 1).unwrap();
        assert_eq!((replica.last_zxid(), recovery.replayed), (4, 4));
        let why = recovery.snapshot_failure.unwrap_or_default();
        assert!(why.contains("No space left on device"), "{why}");
        assert_eq!(directory.snapshots().unwrap(), [0]);
        fs::symlink_metadata(&unfinished).expect_err("it takes no room");
    }
    let (_, recovery) = recover(&directory, 0, 1).unwrap();
    assert_eq!((recovery.replayed, recovery.snapshot_failure), (4, None));
    assert_eq!(directory.snapshots().unwrap(), [0, 4]);
}

/// As two servers leave it that had the directory at once.
#[test]
fn logs_that_tell_different_txns_of_one_zxid_are_refused() {
    let written = |rolls: bool| {
        let scratch = tempfile::tempdir().unwrap();
        let mut world = World::open(scratch.path());
        world.ask(7, Write::CreateSession { timeout_ms: 1_000 });
        world.ask(7, create("/a", b"both", 0));
        if rolls {
            world.roll();
        }
        world.ask(7, create("/b", b"one of them", 0));
        let paths = [1, 3].map(|zxid| world.directory.log(zxid));
        (scratch, paths)
    };
    let ((one, [first, second]), (_other, [longer, _])) = (written(true), written(false));
    assert_eq!(restart(one.path()).0.last_zxid(), 3);
    fs::copy(longer, &first).unwrap();
    let directory = Arc::new(DataDir::take(one.path()).unwrap());
    let error = recover(&directory, 0, u64::MAX).expect_err("two txns of zxid 3");
    let FilesError::LogsOverlap { path, found: 3, next } = &error else { panic!("{error}") };
    assert_eq!((path, next), (&first, &second));
    // As the error says.
    fs::remove_file(&second).unwrap();
    assert_eq!(recover(&directory, 0, u64::MAX).unwrap().0.last_zxid(), 3);
}

#[test]
fn a_directory_of_logs_is_no_data_directory_and_nothing_is_made_in_it() {
    let log = log();
    let within = log.path.parent().unwrap();
    let files = || fs::read_dir(within).unwrap().count();
    let before = files();
    let error = DataDir::take(within).expect_err("it is `version-2` itself");
    let FilesError::WithinData { path, above } = &error else { panic!("{error}") };
    assert_eq!((path.as_path(), above), (within, &log.scratch.path().canonicalize().unwrap()));
    assert_eq!(files(), before);
    // Another program may keep its logs beside `version-2`.
    fs::write(log.scratch.path().join("log.1"), "a line").unwrap();
    DataDir::take(log.scratch.path()).unwrap();
}
