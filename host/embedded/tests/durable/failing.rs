//! Servers whose disk fails.
//!
//! The causes are the system's own: a limit for files that comes into force at a byte of one's
//! choice, a disk that is full, and one that takes bytes and cannot keep them.

use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use wok_embedded::protocol::{Acl, OpCode};

use crate::client::{Client, create};
use crate::killed::{Load, check, next, read};
use crate::mounts;
use crate::process::{Process, Setup};

const PATIENCE: Duration = Duration::from_secs(60);
/// No snapshots but those of a first start.
const NEVER: u64 = u64::MAX;

/// Where the newest log's txns end. Zeros follow.
fn end_of_log(directory: &Path) -> u64 {
    let logs = std::fs::read_dir(directory.join("version-2")).unwrap();
    let zxid = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.strip_prefix("log.").map(|hex| i64::from_str_radix(hex, 16).unwrap())
    };
    let paths = logs.map(|entry| entry.unwrap().path()).filter(|path| zxid(path).is_some());
    let newest = paths.max_by_key(|path| zxid(path)).expect("a log");
    let bytes = std::fs::read(newest).unwrap();
    u64::try_from(bytes.iter().rposition(|byte| *byte != 0).unwrap()).unwrap() + 1
}

/// Creates nodes of 10 kB until one is not answered, and tells how many were.
fn fill(client: &mut Client, prefix: &str) -> usize {
    for number in 0.. {
        client.ask(OpCode::Create, |writer| {
            writer.string(&format!("/{prefix}-{number}"));
            writer.slice(Some(&[7; 10_000]));
            Acl::encode_list(&Acl::open(), writer);
            writer.int(0);
        });
        match client.answer() {
            Some(answer) => assert_eq!(answer.error, 0),
            None => return number,
        }
    }
    unreachable!("no disk is endless")
}

/// The names of nodes, but for the server's own.
#[track_caller]
fn check_nodes(address: &str, mut expected: Vec<String>) {
    let mut found = Client::connect(address).children("/", false);
    found.retain(|name| name != "zookeeper");
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_write_that_fails_at_any_byte_ends_the_server_with_what_was_answered_and_no_more() {
    // Before the entry, within its checksum, its length and its txn, and before its last byte.
    for room in [0, 3, 10, 60, 87] {
        let scratch = tempfile::tempdir().unwrap();
        let mut server = Process::start(scratch.path(), NEVER);
        let mut client = Client::connect(&server.address);
        for number in 0..3 {
            client.created(&format!("/{number}"), 0);
        }
        let before = end_of_log(scratch.path());
        client.created("/3", 0);
        let end = end_of_log(scratch.path());
        assert_eq!(end - before, 88, "an entry's length");
        server.limit_files(Some(end + room));
        client.ask(OpCode::Create, |writer| create(writer, "/4", 0));
        assert!(client.is_closed(), "what is not kept is not answered");
        let failure = server.failure();
        assert!(failure.starts_with("write ") && failure.contains("/log."), "{failure}");
        assert!(failure.contains("File too large"), "{failure}");
        // Not even if it could write now.
        server.limit_files(None);
        assert!(TcpStream::connect(&server.address).is_err(), "it has ended for good");
        server.stop();
        assert_eq!(end_of_log(scratch.path()), end, "what was not kept is cut off");
        let server = Process::start(scratch.path(), NEVER);
        check_nodes(&server.address, (0..4).map(|number| number.to_string()).collect());
        server.stop();
    }
}

#[test]
fn writes_that_fail_under_load_lose_nothing_answered_and_bring_nothing_that_was_not_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let mut seed = 5;
    let mut expected = read(&Process::start(scratch.path(), NEVER).address);
    for round in 0..10 {
        let mut server = Process::start(scratch.path(), NEVER);
        let load = Load::start(&server.address, round);
        load.wait_for(next(&mut seed) % 400);
        let room = u64::try_from(next(&mut seed) % 3_000).unwrap();
        server.limit_files(Some(end_of_log(scratch.path()) + room));
        let counts = load.join();
        let failure = server.failure();
        assert!(failure.contains("File too large"), "{failure}");
        server.stop();
        let server = Process::start(scratch.path(), NEVER);
        let found = read(&server.address);
        for (prefix, sent, answered) in counts {
            expected.append(&mut check(&prefix, sent, answered, &found));
        }
        assert_eq!(found, expected, "round {round}");
        server.stop();
    }
}

#[test]
fn a_full_disk_ends_the_server_and_room_brings_back_what_was_answered() {
    let test = "failing::a_full_disk_ends_the_server_and_room_brings_back_what_was_answered";
    let Some(mounts) = mounts::inside(test, mounts::Right::AnyUser) else { return };
    let disk = mounts.memory("disk", "1m");
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![1; 300_000]).unwrap();
    let mut server = Process::start(&disk, NEVER);
    let answered = fill(&mut Client::connect(&server.address), "a");
    assert!((20..100).contains(&answered), "{answered}");
    let failure = server.failure();
    assert!(failure.contains("No space left on device"), "{failure}");
    server.stop();

    // Still full, to the last byte: it starts, and keeps its word by not giving any.
    let rest = disk.join("rest");
    std::fs::write(&rest, vec![1; 1 << 20]).expect_err("more than there is");
    let mut server = Process::start(&disk, NEVER);
    let hello = crate::client::Hello::default();
    assert!(Client::greet(&server.address, &hello).is_none(), "a session that is not kept");
    assert!(server.failure().contains("No space left on device"));
    server.stop();

    for file in [filler, rest] {
        std::fs::remove_file(file).unwrap();
    }
    let server = Process::start(&disk, NEVER);
    check_nodes(&server.address, (0..answered).map(|number| format!("a-{number}")).collect());
    server.stop();
}

#[test]
fn a_disk_with_less_room_than_the_log_grows_by_is_used_to_its_end() {
    let test = "failing::a_disk_with_less_room_than_the_log_grows_by_is_used_to_its_end";
    let Some(mounts) = mounts::inside(test, mounts::Right::AnyUser) else { return };
    let disk = mounts.memory("disk", "3m");
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![1; 100_000]).unwrap();
    let setup = Setup { preallocation: 4 << 20, ..Setup::default() };
    let mut server = Process::start_with(&disk, setup);
    let answered = fill(&mut Client::connect(&server.address), "a");
    // Of ten thousand bytes each, and a little.
    assert!(answered > 280, "{answered}");
    let failure = server.failure();
    assert!(failure.contains("No space left on device"), "{failure}");
    assert!(failure.contains("make room on its disk"), "{failure}");
    let said = server.stop();
    let warning = "the disk is nearly full: make room on it, or the server ends when it is";
    assert!(said.contains(warning), "{said}");
    std::fs::remove_file(filler).unwrap();
    let server = Process::start_with(&disk, setup);
    check_nodes(&server.address, (0..answered).map(|number| format!("a-{number}")).collect());
    server.stop();
}

#[test]
fn connections_leave_the_files_their_descriptors() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = Setup { snapshot_count: 20, open_files: 64, ..Setup::default() };
    let server = Process::start_with(scratch.path(), setup);
    let mut client = Client::connect(&server.address);
    let others: Vec<_> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    // Every twentieth needs another log, and a snapshot.
    for number in 0..100 {
        client.created(&format!("/{number}"), 0);
    }
    let files = std::fs::read_dir(scratch.path().join("version-2")).unwrap();
    assert!(files.count() >= 4, "snapshots, and the logs since");
    drop(others);
    let hello = crate::client::Hello::default();
    let begun = Instant::now();
    // A client that comes before the server has seen the others go is sent away.
    while Client::greet(&server.address, &hello).is_none() {
        assert!(begun.elapsed() < PATIENCE, "there is room for others again");
        client.call(OpCode::Ping, |_| {});
    }
    let said = server.stop();
    let warning = "more connections are refused: the data needs the open files that are left; raise \
                   their limit (`ulimit -n`)";
    assert!(said.contains(warning), "{said}");
    let server = Process::start_with(scratch.path(), setup);
    check_nodes(&server.address, (0..100).map(|number| number.to_string()).collect());
    server.stop();
}

/// `cargo xtask test` leaves it out where it is not run by root, and says so.
mod as_root {
    #[test]
    fn bytes_that_are_taken_but_not_kept_end_the_server_for_good() {
        super::bytes_that_are_taken_but_not_kept(
            "failing::as_root::bytes_that_are_taken_but_not_kept_end_the_server_for_good",
        );
    }
}

fn bytes_that_are_taken_but_not_kept(test: &str) {
    let Some(mounts) = mounts::inside(test, mounts::Right::Root) else { return };
    // A disk on another one that has less room than it promises: writing succeeds, forcing fails.
    let below = mounts.memory("below", "16m");
    let disk = mounts.disk("disk", &below.join("image"), "12m");
    let mut server = Process::start(&disk, NEVER);
    let mut client = Client::connect(&server.address);
    for number in 0..10 {
        client.created(&format!("/before-{number}"), 0);
    }
    let filler = below.join("filler");
    std::fs::write(&filler, vec![1; 16 << 20]).expect_err("more than there is");
    let answered = fill(&mut client, "a");
    assert!(answered < 20, "{answered}");
    let failure = server.failure();
    assert!(failure.starts_with("write ") && failure.contains("os error"), "{failure}");
    // There is room again, and a second attempt to force the log would succeed.
    std::fs::remove_file(filler).unwrap();
    assert!(TcpStream::connect(&server.address).is_err(), "it has ended for good");
    server.stop();

    let server = Process::start(&disk, NEVER);
    let before = (0..10).map(|number| format!("before-{number}"));
    let after = (0..answered).map(|number| format!("a-{number}"));
    check_nodes(&server.address, before.chain(after).collect());
    server.stop();
}
