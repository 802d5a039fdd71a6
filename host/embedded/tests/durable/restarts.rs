//! Servers that end and start again in one process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wok_embedded::files::{DataDir, FilesError, write_whole_snapshot};
use wok_embedded::front::StartError;
use wok_embedded::jute::Reader;
use wok_embedded::protocol::{Acl, OpCode};
use wok_embedded::replica::Replica;
use wok_embedded::tree::{NodeStat, Tree};
use wok_embedded::{EmbeddedZooKeeper, Server, ServerOptions};

use crate::client::{Client, Hello, watched, word};

const PATIENCE: Duration = Duration::from_secs(20);

fn options(directory: &Path) -> ServerOptions {
    ServerOptions { data_dir: Some(directory.to_owned()), ..ServerOptions::for_tests() }
}

fn start(directory: &Path) -> EmbeddedZooKeeper {
    EmbeddedZooKeeper::start_with(options(directory)).unwrap()
}

fn hello(client: &Client) -> Hello {
    let session = Some((client.session_id, client.password.clone()));
    Hello { session, ..Hello::default() }
}

#[test]
fn a_session_and_its_ephemerals_outlive_the_server() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path());
    let mut client = Client::connect(server.connect_string());
    client.created("/p", 0);
    client.created("/p/e-", 3);
    client.set("/p", -1);
    let before = (client.stat("/p"), client.stat("/p/e-0000000000"));
    let again = hello(&client);
    drop((client, server));

    let server = start(scratch.path());
    let mut client = Client::greet(server.connect_string(), &again).unwrap();
    assert_eq!(Some(client.session_id), again.session.as_ref().map(|(id, _)| *id));
    assert_eq!((client.stat("/p"), client.stat("/p/e-0000000000")), before);
    assert_eq!(before.1.owner, client.session_id);
    // Sequence numbers go on.
    assert_eq!(client.created("/p/e-", 3), "/p/e-0000000001");
    let mut wrong = again;
    wrong.session = wrong.session.map(|(id, _)| (id, vec![1; 16]));
    let refused = Client::greet(server.connect_string(), &wrong).unwrap();
    assert_eq!(refused.session_id, 0);
}

#[test]
fn a_restored_session_expires_a_whole_timeout_after_the_start() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path());
    let short = Hello { timeout_ms: 300, ..Hello::default() };
    let mut client = Client::greet(server.connect_string(), &short).unwrap();
    client.created("/e", 1);
    let mut watcher = Client::connect(server.connect_string());
    let again = hello(&watcher);
    watcher.call(OpCode::Ping, |_| {});
    drop((watcher, client, server));

    let server = start(scratch.path());
    let mut watcher = Client::greet(server.connect_string(), &again).unwrap();
    // It is either still there, and then its end is told, or it has just ended.
    if watcher.exists("/e", true) == 0 {
        let frame = watcher.frame().expect("an event");
        assert_eq!(Reader::new(&frame).int(), Ok(-1));
    }
    assert_eq!(watcher.exists("/e", false), -101);
}

#[test]
fn ephemerals_whose_session_is_not_known_are_removed_at_the_start() {
    let scratch = tempfile::tempdir().unwrap();
    let mut tree = Tree::new();
    let stat = NodeStat { czxid: 1, ephemeral_owner: 7, ..NodeStat::default() };
    tree.restore("/e", None, &Acl::open(), stat);
    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    let replica = Replica::restored(tree, BTreeMap::new(), 1);
    write_whole_snapshot(&directory, &replica).unwrap();
    // A log without txns.
    fs::write(directory.log(2), b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0").unwrap();
    drop(directory);
    let server = start(scratch.path());
    let mut client = Client::connect(server.connect_string());
    assert_eq!(client.exists("/e", false), -101);
}

#[test]
fn snapshots_are_taken_under_load_and_old_files_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let options = ServerOptions { snapshot_count: 50, ..options(scratch.path()) };
    let server = EmbeddedZooKeeper::start_with(options.clone()).unwrap();
    let mut client = Client::connect(server.connect_string());
    for number in 0..1_000 {
        client.created(&format!("/n{number}"), 0);
    }
    let zxid = client.set("/n0", -1).zxid;
    drop((client, server));
    let names = |prefix: &str| {
        let entries = fs::read_dir(scratch.path().join("version-2")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(prefix)).count()
    };
    let snapshots = names("snapshot.");
    assert!((1..=3).contains(&snapshots), "{snapshots}");
    assert!(names("log.") <= 12, "{}", names("log."));

    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    assert_eq!(names("unfinished"), 0);
    let mut client = Client::connect(server.connect_string());
    assert_eq!(client.children("/", false).len(), 1_001);
    assert_eq!(client.stat("/n0").mzxid, zxid);
}

#[test]
fn the_words_tell_of_the_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path());
    let conf = word(server.connect_string(), "conf");
    let directory = scratch.path().join("version-2");
    assert!(conf.contains(&format!("dataDir={}\n", directory.display())), "{conf}");
    let files = || fs::read_dir(&directory).unwrap().map(|e| e.unwrap().metadata().unwrap().len());
    let size: u64 = files().sum();
    let expected = format!("datadir_size: {size}\nlogdir_size: {size}\n");
    assert_eq!(word(server.connect_string(), "dirs"), expected);
}

#[tokio::test]
async fn a_second_server_on_a_directory_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let first = Server::start(options(scratch.path())).await.unwrap();
    let error = Server::start(options(scratch.path())).await.expect_err("two servers");
    assert!(matches!(error, StartError::Files(FilesError::Locked { .. })), "{error}");
    first.stop().await;
    Server::start(options(scratch.path())).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_disk_that_fails_ends_the_server_before_anything_is_answered() {
    let scratch = tempfile::tempdir().unwrap();
    let server = Server::start(options(scratch.path())).await.unwrap();
    // No log can be created any more.
    fs::remove_dir_all(scratch.path().join("version-2")).unwrap();
    let address = server.connect_string();
    let client = tokio::task::spawn_blocking(move || Client::greet(&address, &Hello::default()));
    assert!(client.await.unwrap().is_none(), "a session that is not in the log");
    server.stopped().await;
    let failure = server.failure().expect("a reason").to_string();
    assert!(failure.starts_with("create ") && failure.contains("version-2"), "{failure}");
    server.stop().await;
}

/// What a server says whose log becomes a file of the system's that is none.
#[track_caller]
fn check_special(file: &str, expected: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path());
    assert!(server.failure().is_none());
    symlink(file, scratch.path().join("version-2/unfinished.log")).unwrap();
    assert!(Client::greet(server.connect_string(), &Hello::default()).is_none());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.stopped());
    let failure = server.failure().expect("a reason").to_string();
    assert!(failure.starts_with("create ") && failure.contains(expected), "{failure}");
}

#[test]
fn a_log_that_takes_nothing_and_one_that_cannot_be_forced_end_the_server() {
    check_special("/dev/full", "No space left on device");
    check_special("/dev/null", "Invalid argument");
}

/// Has the server answer until something holds.
#[track_caller]
fn ping_until(client: &mut Client, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long");
        client.call(OpCode::Ping, |_| {});
    }
}

#[test]
fn a_snapshot_that_fails_is_told_and_the_server_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let options = ServerOptions { snapshot_count: 10, ..options(scratch.path()) };
    let server = EmbeddedZooKeeper::start_with(options.clone()).unwrap();
    let mut client = Client::connect(server.connect_string());
    symlink("/dev/full", scratch.path().join("version-2/unfinished.nodes")).unwrap();
    let create = |client: &mut Client, prefix: &str| {
        for number in 0..10 {
            client.created(&format!("/{prefix}-{number}"), 0);
        }
    };
    create(&mut client, "a");
    ping_until(&mut client, || server.snapshot_failure().is_some());
    let why = server.snapshot_failure().unwrap_or_default();
    assert!(why.contains("unfinished") && why.contains("No space left on device"), "{why}");
    // What failed is gone with all it took, and the next one is written.
    create(&mut client, "b");
    ping_until(&mut client, || server.snapshot_failure().is_none());
    create(&mut client, "c");
    assert!(server.failure().is_none());
    drop((client, server));
    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    let mut client = Client::connect(server.connect_string());
    assert_eq!(client.children("/", false).len(), 31);
}

#[test]
fn reads_are_answered_while_writes_wait_for_the_disk() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path());
    let mut writer = Client::connect(server.connect_string());
    let mut reader = Client::connect(server.connect_string());
    writer.created("/a", 0);
    // Order within a session is kept: the read behind a write sees it.
    for number in 0..200 {
        writer.ask(OpCode::Create, |w| crate::client::create(w, &format!("/a/{number}"), 0));
        writer.ask(OpCode::Exists, |w| watched(w, &format!("/a/{number}"), false));
        assert_eq!(reader.get("/a", false), 0);
    }
    for _ in 0..400 {
        assert_eq!(writer.answer().unwrap().error, 0);
    }
}
