//! Data directories that go from this server to Apache ZooKeeper 3.8 and back.
//!
//! Apache ZooKeeper and Java must be installed; the tests fail without, rather than pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

mod apache;
#[path = "../wire/client.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;
mod picture;
#[path = "../durable/process.rs"]
mod process;

use std::fs;
use std::path::Path;

use wok_embedded::files::{DataDir, LogReader};
use wok_embedded::protocol::{Acl, OpCode};

use apache::Apache;
use client::{Client, Hello, create};
use picture::{make, picture, populate};
use process::Process;

/// Small, so that snapshots are taken meanwhile.
const SNAPSHOT_COUNT: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wok,
    Apache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Kill,
}

enum Running {
    Wok(Process),
    Apache(Apache),
}

impl Running {
    fn start(kind: Kind, directory: &Path) -> Running {
        match kind {
            Kind::Wok => Running::Wok(Process::start(directory, SNAPSHOT_COUNT)),
            Kind::Apache => Running::Apache(Apache::start(directory, SNAPSHOT_COUNT)),
        }
    }

    fn address(&self) -> &str {
        match self {
            Running::Wok(wok) => &wok.address,
            Running::Apache(apache) => &apache.address,
        }
    }

    fn end(self, end: End) {
        match (self, end) {
            (Running::Wok(wok), End::Stop) => drop(wok.stop()),
            (Running::Wok(wok), End::Kill) => wok.kill(),
            (Running::Apache(apache), End::Stop) => apache.stop(),
            (Running::Apache(apache), End::Kill) => apache.kill(),
        }
    }
}

fn again(client: &Client) -> Hello {
    let session = Some((client.session_id, client.password.clone()));
    Hello { session, timeout_ms: 40_000, ..Hello::default() }
}

/// Hands a directory over several times. Every server finds the tree as the one before left it,
/// and the session with its ephemeral goes on through all of them.
#[track_caller]
fn check_hand_over(kinds: [Kind; 4], end: End) {
    let scratch = tempfile::tempdir().unwrap();
    let mut session: Option<Hello> = None;
    let mut expected: Option<String> = None;
    for (round, kind) in kinds.into_iter().enumerate() {
        let server = Running::start(kind, scratch.path());
        let what = format!("round {round}: {kind:?} after {end:?}");
        let hello = session.take();
        let mut client = match &hello {
            Some(hello) => Client::greet(server.address(), hello).expect("an answer"),
            None => {
                let hello = Hello { timeout_ms: 40_000, ..Hello::default() };
                let mut client = Client::greet(server.address(), &hello).unwrap();
                client.created("/session", 1);
                client
            }
        };
        if let Some((session_id, _)) = hello.and_then(|hello| hello.session) {
            assert_eq!(client.session_id, session_id, "{what}: the session goes on");
            assert_eq!(client.stat("/session").owner, session_id, "{what}");
        }
        let found = picture(&mut client);
        if let Some(expected) = expected {
            assert_eq!(found, expected, "{what}");
        }
        populate(&mut client, round);
        expected = Some(picture(&mut client));
        session = Some(again(&client));
        server.end(end);
    }
}

#[test]
fn a_directory_of_ours_goes_to_apache_and_back_after_a_clean_stop() {
    check_hand_over([Kind::Wok, Kind::Apache, Kind::Wok, Kind::Apache], End::Stop);
}

#[test]
fn a_directory_of_ours_goes_to_apache_and_back_after_a_kill() {
    check_hand_over([Kind::Wok, Kind::Apache, Kind::Wok, Kind::Apache], End::Kill);
}

#[test]
fn a_directory_of_apaches_comes_to_us_and_back_after_a_clean_stop() {
    check_hand_over([Kind::Apache, Kind::Wok, Kind::Apache, Kind::Wok], End::Stop);
}

#[test]
fn a_directory_of_apaches_comes_to_us_and_back_after_a_kill() {
    check_hand_over([Kind::Apache, Kind::Wok, Kind::Apache, Kind::Wok], End::Kill);
}

/// What the page on operations says of it.
#[test]
fn apache_drops_nodes_with_a_time_to_live_unless_it_is_told_not_to() {
    for (line, expected) in [("extendedTypesEnabled=true", 0), ("extendedTypesEnabled=false", -101)]
    {
        let scratch = tempfile::tempdir().unwrap();
        let server = Running::start(Kind::Wok, scratch.path());
        let mut client = Client::connect(server.address());
        make(&mut client, OpCode::CreateTtl, "/ttl", &Acl::open(), 5, Some(3_600_000));
        server.end(End::Stop);
        let apache = Apache::start_with(scratch.path(), SNAPSHOT_COUNT, line);
        assert_eq!(Client::connect(&apache.address).exists("/ttl", false), expected, "{line}");
        apache.stop();
    }
}

fn copy(from: &Path, to: &Path) {
    let to = to.join("version-2");
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from.join("version-2")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Kills a server in the midst of writes, and has both servers read what it left.
#[track_caller]
fn check_same_bytes(kind: Kind, answers: usize) {
    let scratch = tempfile::tempdir().unwrap();
    let server = Running::start(kind, scratch.path());
    let mut client = Client::connect(server.address());
    for number in 0..400 {
        let parent = number / 20 * 20;
        let path =
            if number == parent { format!("/{parent}") } else { format!("/{parent}/{number}") };
        client.ask(OpCode::Create, |w| create(w, &path, i32::from(number % 20 == 19)));
    }
    for _ in 0..answers {
        client.answer().unwrap();
    }
    server.end(End::Kill);
    if let Kind::Apache = kind {
        move_a_begun_log_away(scratch.path());
    }
    let pictures = [Kind::Wok, Kind::Apache].map(|kind| {
        let scratch_copy = tempfile::tempdir().unwrap();
        copy(scratch.path(), scratch_copy.path());
        let server = Running::start(kind, scratch_copy.path());
        let picture = picture(&mut Client::connect(server.address()));
        server.end(End::Stop);
        picture
    });
    assert!(pictures[0].lines().count() >= answers, "answered writes are there");
    assert_eq!(pictures[0], pictures[1], "{kind:?} killed after {answers} answers");
}

/// Apache ZooKeeper can be killed between creating a log and writing its first bytes; a server of ours leaves
/// no empty log. Ours does not take one for a log that never had a txn: it refuses it, and this is what it
/// tells to do.
fn move_a_begun_log_away(directory: &Path) {
    let data = DataDir::take(directory).unwrap();
    let newest = data.log(*data.logs().unwrap().last().unwrap());
    drop(data);
    if fs::metadata(&newest).unwrap().len() > 0 {
        return;
    }
    let error = LogReader::open(&newest).expect_err("an empty log");
    assert!(error.to_string().contains("Apache ZooKeeper was killed as it began it"), "{error}");
    fs::remove_file(&newest).unwrap();
}

#[test]
fn both_read_the_same_from_what_a_killed_server_of_ours_left() {
    check_same_bytes(Kind::Wok, 137);
}

#[test]
fn both_read_the_same_from_what_a_killed_apache_left() {
    check_same_bytes(Kind::Apache, 137);
}
