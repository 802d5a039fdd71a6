//! Snapshots by hand: one of Apache ZooKeeper's whose access lists were written before a node got its
//! own, and those that no server writes.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use adler2::Adler32;
use wok_embedded::files::{DataDir, FilesError, encode_entry, recover};
use wok_embedded::jute::Writer;
use wok_embedded::protocol::{Acl, ErrorCode, Id, OpCode};
use wok_embedded::tree::NodeStat;
use wok_embedded::txn::{CreateTxn, Txn, TxnHeader};

/// Has one node below the root. Nobody has told what list 9 is.
fn snapshot(path: &str, list: i64, created: i64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.raw(b"ZKSN");
    writer.int(2);
    writer.long(-1);
    // No sessions, no lists.
    writer.int(0);
    writer.int(0);
    for (path, list, czxid) in [("", -1, 0), (path, list, created)] {
        writer.string(path);
        writer.slice(None);
        writer.long(list);
        NodeStat { czxid, ..NodeStat::default() }.encode(&mut writer);
    }
    writer.string("/");
    let mut bytes = writer.finish().to_vec();
    let mut sum = Adler32::new();
    sum.write_slice(&bytes);
    bytes.extend(i64::from(sum.checksum()).to_be_bytes());
    bytes.extend(b"\0\0\0\x01/");
    bytes
}

#[test]
fn the_log_tells_a_list_that_the_snapshot_lacks() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    fs::write(directory.snapshot(0), snapshot("/a", 9, 0)).unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("a node without list");
    let FilesError::DamagedSnapshot { path, .. } = &error else { panic!("{error}") };
    assert_eq!(path, &directory.snapshot(0));
    assert!(error.to_string().contains("\"/a\""), "{error}");

    let acl = vec![Acl { permissions: 1, id: Id::new("digest", "user:digest") }];
    let header = TxnHeader { session_id: 1, xid: 1, zxid: 1, time_ms: 1, op: OpCode::Create };
    let txn = Txn::Create(CreateTxn {
        path: "/a".to_owned(),
        data: None,
        acl: acl.clone(),
        is_ephemeral: false,
        parent_cversion: 1,
    });
    let mut log = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    encode_entry(&header, &txn, &mut log);
    fs::write(directory.snapshot(0), snapshot("/a", 9, 1)).unwrap();
    fs::write(directory.log(1), log).unwrap();
    let (replica, _) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!(**replica.tree().get("/a").unwrap().acl(), *acl);
}

#[test]
fn a_snapshot_that_shows_what_no_log_tells_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    fs::write(directory.snapshot(0), snapshot("/a", -1, 1)).unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("a node of a txn that no log has");
    let FilesError::SnapshotBeyondLogs { path, found: 1, last_zxid: 0 } = &error else {
        panic!("{error}")
    };
    assert_eq!(path, &directory.snapshot(0));
    fs::write(directory.snapshot(1), snapshot("/a", -1, 1)).unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("a log may tell what came behind it");
    let FilesError::NoLogs { path, log } = &error else { panic!("{error}") };
    assert_eq!((path, log), (&directory.snapshot(1), &directory.log(2)));
    // As the error says.
    let told = error.to_string();
    let (_, command) = told.split_once("by `").unwrap();
    let ended = Command::new("sh").args(["-c", command.trim_end_matches('`')]).status().unwrap();
    assert!(ended.success());
    let (replica, _) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!(replica.last_zxid(), 1);
}

#[test]
fn a_damaged_snapshot_tells_how_far_the_logs_must_go() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    fs::write(directory.snapshot(0), snapshot("/a", -1, 0)).unwrap();
    fs::write(directory.snapshot(1), b"ZKSN").unwrap();
    let error = recover(&directory, 0, u64::MAX).expect_err("no log tells what zxid 1 was");
    let FilesError::SnapshotBeyondLogs { path, found: 1, last_zxid: 0 } = &error else {
        panic!("{error}")
    };
    assert_eq!(path, &directory.snapshot(1));
    let header = TxnHeader { session_id: 1, xid: 1, zxid: 1, time_ms: 1, op: OpCode::Error };
    let mut log = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    encode_entry(&header, &Txn::Error(ErrorCode::NoNode), &mut log);
    fs::write(directory.log(1), log).unwrap();
    let (replica, recovery) = recover(&directory, 0, u64::MAX).unwrap();
    assert_eq!((replica.last_zxid(), recovery.unreadable), (1, vec![directory.snapshot(1)]));
}

#[test]
fn a_node_of_a_path_that_no_server_takes_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = Arc::new(DataDir::take(scratch.path()).unwrap());
    let recovered = |path| {
        fs::write(directory.snapshot(0), snapshot(path, -1, 0)).unwrap();
        recover(&directory, 0, u64::MAX)
    };
    recovered("/a").unwrap();
    for path in ["//", "/a/", "a", "/a//b"] {
        let error = recovered(path).expect_err("no such path");
        assert!(error.to_string().contains(&format!("{path:?}")), "{path}: {error}");
    }
}
