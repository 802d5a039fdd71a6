//! Who is told of what, and when.

use wok_embedded::jute::Writer;
use wok_embedded::protocol::OpCode;

use crate::client::{Client, versioned, word};
use crate::start;

const CREATED: i32 = 1;
const DELETED: i32 = 2;
const CHANGED: i32 = 3;
const CHILDREN: i32 = 4;

#[track_caller]
fn check(client: &mut Client, expected: &[(i32, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(kind, path)| (*kind, (*path).to_owned())).collect();
    assert_eq!(client.told(), expected);
}

#[test]
fn a_deleted_node_is_told_once_to_who_watches_data_and_children() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/a", 0);
    client.get("/a", true);
    client.children("/a", true);
    client.delete("/a");
    check(&mut client, &[(DELETED, "/a")]);
}

#[test]
fn a_watch_on_a_missing_node_is_left_by_exists_only() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    assert_eq!(client.exists("/a", true), -101);
    assert_eq!(client.get("/b", true), -101);
    client.created("/a", 0);
    client.created("/b", 0);
    client.set("/a", -1);
    check(&mut client, &[(CREATED, "/a")]);
}

#[test]
fn an_event_comes_before_the_answer_to_its_own_write() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/a", 0);
    client.get("/a", true);
    client.set("/a", -1);
    // `told` would ask again: the event is here already.
    assert_eq!(client.events, [(CHANGED, "/a".to_owned())]);
}

#[test]
fn persistent_and_recursive_watches_tell_what_each_sees() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let mut other = Client::connect(server.connect_string());
    client.add_watch("/a", 0);
    other.add_watch("/a", 1);
    for path in ["/a", "/a/b", "/a/b/c"] {
        client.created(path, 0);
    }
    client.set("/a", -1);
    client.set("/a/b", -1);
    client.delete("/a/b/c");
    client.delete("/a/b");
    client.delete("/a");
    let persistent =
        [(CREATED, "/a"), (CHILDREN, "/a"), (CHANGED, "/a"), (CHILDREN, "/a"), (DELETED, "/a")];
    check(&mut client, &persistent);
    let recursive = [
        (CREATED, "/a"),
        (CREATED, "/a/b"),
        (CREATED, "/a/b/c"),
        (CHANGED, "/a"),
        (CHANGED, "/a/b"),
        (DELETED, "/a/b/c"),
        (DELETED, "/a/b"),
        (DELETED, "/a"),
    ];
    check(&mut other, &recursive);
}

#[test]
fn watches_are_removed_once() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/a", 0);
    client.get("/a", true);
    client.children("/a", true);
    let mut remove = |kind| client.call(OpCode::RemoveWatches, |w| versioned(w, "/a", kind)).error;
    let errors = [remove(1), remove(1), remove(3), remove(2), remove(3)];
    assert_eq!(errors, [0, -121, 0, -121, -121]);
}

#[test]
fn rearmed_watches_tell_what_was_missed() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/a", 0);
    let now = client.stat("/a").czxid;
    let strings = |w: &mut Writer, list: &[&str]| w.list(list.iter(), |w, path| w.string(path));
    let mut rearm = |since: i64| {
        let xid = client.ask(OpCode::SetWatches, |w| {
            w.long(since);
            strings(w, &["/a", "/gone"]);
            strings(w, &["/a", "/later"]);
            strings(w, &["/a", "/gone"]);
        });
        let answer = client.answer().unwrap();
        assert_eq!((answer.xid, answer.error), (xid, 0));
    };
    rearm(0);
    rearm(now);
    let stale = [
        (CHANGED, "/a"),
        (DELETED, "/gone"),
        (CREATED, "/a"),
        (CHILDREN, "/a"),
        (DELETED, "/gone"),
    ];
    let current = [(DELETED, "/gone"), (CREATED, "/a"), (DELETED, "/gone")];
    check(&mut client, &[&stale[..], &current[..]].concat());
    client.created("/later", 0);
    client.set("/a", -1);
    check(&mut client, &[(CREATED, "/later"), (CHANGED, "/a")]);
}

#[test]
fn watches_go_with_their_connection() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let mut other = Client::connect(server.connect_string());
    client.exists("/a", true);
    other.exists("/a", true);
    let summary = |text: &str| text.lines().last().map(str::to_owned);
    let before = word(server.connect_string(), "wchs");
    assert_eq!(summary(&before).as_deref(), Some("Total watches:2"));
    other.call(OpCode::CloseSession, |_| {});
    assert!(other.is_closed());
    let after = word(server.connect_string(), "wchs");
    assert_eq!(summary(&after).as_deref(), Some("Total watches:1"));
}
