//! Sessions: taken up again, closed, expired.

use std::time::{Duration, Instant};

use wok_embedded::protocol::OpCode;
use wok_embedded::{EmbeddedZooKeeper, ServerOptions};

use crate::client::{Client, Hello, versioned};
use crate::start;

fn back(client: &Client, password: &[u8]) -> Hello {
    Hello { session: Some((client.session_id, password.to_vec())), ..Hello::default() }
}

#[test]
fn a_session_is_taken_up_with_its_ephemerals_and_without_its_watches() {
    let server = start();
    let mut old = Client::connect(server.connect_string());
    old.created("/e", 1);
    old.get("/e", true);
    let hello = back(&old, &old.password);
    let mut new = Client::greet(server.connect_string(), &hello).unwrap();
    assert_eq!((new.session_id, &new.password), (old.session_id, &old.password));
    assert!(old.is_closed());
    assert_eq!(new.stat("/e").owner, old.session_id);
    new.set("/e", -1);
    assert_eq!(new.told(), []);
}

#[test]
fn who_has_seen_an_earlier_server_is_welcome_to_one_that_counts_from_higher() {
    let options = ServerOptions { first_zxid: 1 << 32, ..ServerOptions::for_tests() };
    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    let greet = |last_zxid| {
        Client::greet(server.connect_string(), &Hello { last_zxid, ..Hello::default() })
    };
    assert!(greet((1 << 32) + 1).is_none());
    let mut client = greet(5).expect("a session");
    assert_eq!(client.create("/a", 0).zxid, (1 << 32) + 2);
}

#[test]
fn a_wrong_password_is_refused_and_ends_the_right_connection() {
    let server = start();
    let mut right = Client::connect(server.connect_string());
    let hello = back(&right, &[9; 16]);
    let mut wrong = Client::greet(server.connect_string(), &hello).unwrap();
    assert_eq!((wrong.session_id, wrong.timeout_ms), (0, 0));
    assert_eq!(wrong.password, [0; 16]);
    assert!(wrong.is_closed());
    assert!(right.is_closed());
}

#[test]
fn a_closed_session_is_answered_then_gone_with_its_ephemerals() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let mut other = Client::connect(server.connect_string());
    client.created("/e", 1);
    assert_eq!(client.call(OpCode::CloseSession, |_| {}).error, 0);
    assert_eq!(other.exists("/e", false), -101);
    assert!(client.is_closed());
    let again = Client::greet(server.connect_string(), &back(&client, &client.password));
    assert_eq!(again.unwrap().session_id, 0);
}

#[test]
fn a_silent_session_expires_on_time_and_takes_its_ephemerals_at_one_zxid() {
    let server = start();
    let mut other = Client::connect(server.connect_string());
    other.created("/d", 0);
    let hello = Hello { timeout_ms: 500, ..Hello::default() };
    let mut silent = Client::greet(server.connect_string(), &hello).unwrap();
    assert_eq!(silent.timeout_ms, 500);
    silent.created("/d/a", 1);
    // The time is counted from this request on.
    let start = Instant::now();
    silent.created("/d/b", 1);
    other.add_watch("/d", 1);
    assert!(silent.is_closed());
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(450), "{took:?}");
    let events: Vec<_> = other.told();
    assert_eq!(events, [(2, "/d/a".to_owned()), (2, "/d/b".to_owned())]);
    let zxid = other.stat("/d").pzxid;
    assert_eq!(other.create("/next", 0).zxid, zxid + 1);
}

#[test]
fn timeouts_are_kept_within_the_servers_bounds() {
    let server = start();
    for (asked, granted) in [(1, 200), (5_000, 5_000), (i32::MAX, 60_000)] {
        let hello = Hello { timeout_ms: asked, ..Hello::default() };
        let client = Client::greet(server.connect_string(), &hello).unwrap();
        assert_eq!(client.timeout_ms, granted);
    }
}

#[test]
fn a_client_that_has_seen_more_is_sent_away_without_an_answer() {
    let server = start();
    let hello = Hello { last_zxid: 1 << 40, ..Hello::default() };
    assert!(Client::greet(server.connect_string(), &hello).is_none());
}

#[test]
fn a_client_without_read_only_mode_is_answered_without_it() {
    let server = start();
    let hello = Hello { has_read_only: false, ..Hello::default() };
    let mut client = Client::greet(server.connect_string(), &hello).unwrap();
    assert_eq!(client.call(OpCode::Sync, |w| w.string("/no")).error, 0);
    assert_eq!(client.call(OpCode::Check, |w| versioned(w, "/no", 0)).error, -101);
}
