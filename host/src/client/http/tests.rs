use serde_json::json;

use super::*;
use crate::client::peer::{Peer, answer, stream, whole_stream};

/// How a client fails to get an answer from a peer that says this.
async fn failure(script: &str) -> String {
    let peer = Peer::saying([script]);
    peer.client().get::<Value>("/v1/host").await.unwrap_err().to_string()
}

#[track_caller]
fn check(error: &str, told: &[&str]) {
    for part in told {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

#[tokio::test]
async fn a_request_is_one_and_its_answer_is_json() {
    let peer = Peer::saying([&*answer("200 OK", r#"{"pid": 7}"#)]);
    let answer: Value = peer.client().get("/v1/host").await.unwrap();
    assert_eq!(answer, json!({ "pid": 7 }));
    assert_eq!(peer.heard(), "GET /v1/host HTTP/1.1 ");
}

#[tokio::test]
async fn where_nobody_listens_it_is_said_what_to_type_next() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    drop(std::os::unix::net::UnixListener::bind(&gone).unwrap());
    for path in [gone, directory.path().join("none")] {
        let tasks = Tasks::on(tokio::runtime::Handle::current());
        let client = Client::new(Socket::new(Some(path)), tasks);
        let error = client.get::<Value>("/v1/host").await.unwrap_err();
        assert!(matches!(error, ClientError::NobodyListens { .. }), "{error:?}");
        check(&error.to_string(), &["no daemon listens", "`wok run`", "[api]", "--socket"]);
    }
}

#[tokio::test]
async fn a_socket_that_is_a_file_is_no_socket() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x".repeat(120));
    std::fs::write(&file, "").unwrap();
    let tasks = Tasks::on(tokio::runtime::Handle::current());
    let error = Client::new(Socket::new(Some(file)), tasks).get::<Value>("/v1/host").await;
    check(&error.unwrap_err().to_string(), &["cannot use the socket"]);
}

#[tokio::test]
async fn errors_of_the_host_and_of_the_operation_are_told_apart() {
    let body = r#"{"error": "not-found", "message": "there is no recipe a", "since": 1}"#;
    let peer = Peer::saying([&*answer("404 Not Found", body)]);
    let error = peer.client().get::<Value>("/v1/recipes/a").await.unwrap_err();
    let ClientError::Host(error) = error else { panic!("{error:?}") };
    assert_eq!((&*error.kind, &*error.message), ("not-found", "there is no recipe a"));

    let peer = Peer::saying([&*answer("409 Conflict", r#"{"error": {"full": "no room"}}"#)]);
    let error = peer.client().get::<Value>("/v1/recipes/a").await.unwrap_err();
    assert!(matches!(&error, ClientError::Operation(_)), "{error:?}");
    assert_eq!(error.to_string(), "full: no room");
}

#[tokio::test]
async fn whatever_else_listens_is_not_taken_for_a_daemon() {
    check(&failure("220 mail.example.org ESMTP\r\n").await, &["is no wok daemon"]);
    check(&failure("\0\u{1}\u{2}").await, &["is no wok daemon"]);
    check(&failure(&answer("200 OK", "<html>")).await, &["is no wok daemon"]);
    check(
        &failure(&answer("500 Internal Server Error", "<html>")).await,
        &["is no wok daemon", "500"],
    );
    check(&failure(&answer("409 Conflict", "[]")).await, &["is no wok daemon", "409"]);
}

#[tokio::test]
async fn a_daemon_that_ends_meanwhile_is_gone() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"pid\":";
    check(&failure(half).await, &["is gone"]);
}

#[tokio::test]
async fn a_daemon_that_answers_nothing_may_be_there() {
    for script in ["", "HTTP/1.1 200 OK\r\ncont"] {
        let error = failure(script).await;
        check(&error, &["without an answer", "it has ended, or takes no more", "`ulimit -n`"]);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_not_read_for_ever() {
    let text = "x".repeat(MOST_BYTES + 1);
    check(&failure(&answer("200 OK", &text)).await, &["more than 16 MiB"]);
    let peer = Peer::saying([&*stream(&text)]);
    let mut lines = peer.client().lines("/v1/events").await.unwrap();
    check(&lines.next().await.unwrap_err().to_string(), &["a line of more than 16 MiB"]);
}

#[tokio::test]
async fn lines_are_read_however_they_are_cut() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let script =
        format!("{head}1\r\na\r\n3\r\nb\nc\r\n1\r\n\n\r\n4\r\n\n\r\nd\r\n1\r\n\n\r\n0\r\n\r\n");
    let peer = Peer::saying([&*script]);
    let mut lines = peer.client().lines("/v1/events").await.unwrap();
    let mut seen = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        seen.push(String::from_utf8(line.to_vec()).unwrap());
    }
    assert_eq!(seen, ["ab", "c", "d"]);
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so() {
    for script in [stream("a\n"), stream("a\nb"), whole_stream("a\nb"), stream("a\n") + "5\r\nb"] {
        let peer = Peer::saying([&*script]);
        let mut lines = peer.client().lines("/v1/events").await.unwrap();
        assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"a"[..]), "{script:?}");
        check(&lines.next().await.unwrap_err().to_string(), &["is gone"]);
    }
}

#[test]
fn nothing_in_a_name_leads_to_another_place() {
    assert_eq!(path(["recipes", "my-lock", "join"]), "/v1/recipes/my-lock/join");
    assert_eq!(path(["recipes", "../a b?c#é/"]), "/v1/recipes/%2E%2E%2Fa%20b%3Fc%23%C3%A9%2F");
}
