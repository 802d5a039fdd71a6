//! Nodes, their facts, and the order of errors.

use wok_embedded::protocol::OpCode;

use crate::client::{Client, versioned};
use crate::start;

#[test]
fn a_fresh_root_shows_apaches_facts() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let root = client.stat("/");
    assert_eq!((root.cversion, root.children, root.czxid), (-1, 1, 0));
    assert_eq!(client.children("/", false), ["zookeeper"]);
}

#[test]
fn children_move_the_parents_facts_and_data_does_not() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/p", 0);
    for name in ["/p/a", "/p/b", "/p/c"] {
        client.created(name, 0);
    }
    assert_eq!(client.delete("/p/a"), 0);
    let before = client.stat("/p");
    assert_eq!((before.cversion, before.children), (4, 2));
    client.set("/p/b", -1);
    assert_eq!(client.stat("/p"), before);
}

#[test]
fn failed_writes_take_a_zxid_and_reads_do_not() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let first = client.create("/a", 0).zxid;
    let failed = client.create("/a", 0);
    assert_eq!((failed.error, failed.zxid), (-110, first + 1));
    assert!(failed.body.is_empty());
    let read = client.call(OpCode::Exists, |w| crate::client::watched(w, "/a", false));
    assert_eq!(read.zxid, first + 1);
    assert_eq!(client.set("/a", 9).zxid, first + 2);
}

#[test]
fn sequences_are_not_turned_back() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/q", 0);
    assert_eq!(client.created("/q/n-", 2), "/q/n-0000000000");
    client.delete("/q/n-0000000000");
    assert_eq!(client.create("/q/x/n-", 2).error, -101);
    assert_eq!(client.created("/q/n-", 2), "/q/n-0000000001");
    assert_eq!(client.created("/q/", 3), "/q/0000000002");
}

#[test]
fn errors_come_in_apaches_order() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/e", 1);
    client.created("/p", 0);
    client.created("/p/x", 0);
    let creates = [
        ("/a", 9, -8),
        ("/a//b", 0, -101),
        ("/p//b", 0, -101),
        ("/p/", 0, -8),
        ("/p/.", 0, -8),
        ("/p/\u{85}", 0, -8),
        ("/p/😀", 0, -8),
        ("/p/x", 0, -110),
        ("/e/x", 0, -108),
    ];
    for (path, flags, error) in creates {
        assert_eq!(client.create(path, flags).error, error, "{path} {flags}");
    }
    let deletes = [("/p", 7, -103), ("/p", 0, -111), ("/no", 7, -101), ("/zookeeper", -1, -8)];
    for (path, version, error) in deletes {
        let answer = client.call(OpCode::Delete, |w| versioned(w, path, version));
        assert_eq!(answer.error, error, "{path} {version}");
    }
}

#[test]
fn who_may_not_read_is_neither_answered_nor_told() {
    let server = start();
    let mut owner = Client::connect(server.connect_string());
    let mut other = Client::connect(server.connect_string());
    let auth = owner.call(OpCode::Auth, |w| {
        w.int(0);
        w.string("digest");
        w.slice(Some(b"u:p"));
    });
    assert_eq!((auth.error, auth.zxid), (0, 0));
    owner.created("/a", 0);
    assert_eq!(other.get("/a", true), 0);
    let restricted = owner.call(OpCode::SetAcl, |w| {
        w.string("/a");
        w.int(1);
        w.int(31);
        w.string("auth");
        w.string("");
        w.int(-1);
    });
    assert_eq!(restricted.error, 0);
    assert_eq!(other.get("/a", false), -102);
    owner.set("/a", -1);
    assert_eq!(other.told(), []);
}
