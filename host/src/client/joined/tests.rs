use super::*;
use crate::client::peer::{Peer, answer, stream, whole_stream};

const JOINED: &str = "{\"event\":\"joined\",\"participant\":\"p1\",\"dependent\":true}\n";

fn join(purpose: Purpose) -> Join {
    Join {
        recipe: "orders".into(),
        operation: "acquire".into(),
        arguments: json!({ "most": 3 }),
        timeout: Some(Duration::from_millis(1_500)),
        owner: Some("it".into()),
        purpose,
    }
}

#[tokio::test]
async fn a_join_says_what_it_is_for() {
    let peer = Peer::saying([&*whole_stream(JOINED), &*whole_stream(JOINED)]);
    let joined = peer.client().join(&join(Purpose::Hold)).await.unwrap();
    assert_eq!((joined.id(), joined.keeping()), ("p1", Keeping::Daemon));
    let heard = peer.heard();
    let (line, body) = heard.split_once(" HTTP/1.1 ").unwrap();
    assert_eq!(line, "POST /v1/recipes/orders/join?alive=500ms&dependent=true");
    let expected = json!({
        "call": { "acquire": { "most": 3 } },
        "timeout": "1500ms",
        "lease": "10s",
        "owner": "it",
    });
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    peer.client().join(&join(Purpose::Answer)).await.unwrap();
    assert!(peer.heard().starts_with("POST /v1/recipes/orders/join HTTP/1.1 "));
}

#[tokio::test]
async fn lines_move_the_deadline_and_what_is_not_known_is_passed_on() {
    let soon = (Boottime::now() + Duration::from_secs(1)).as_nanos() / 1_000_000;
    let lines = format!(
        "{JOINED}{{\"event\":\"held\",\"path\":\"/a\",\"fence\":7,\"deadline-boottime-ms\":{soon}}}\n\
         {{\"event\":\"moved\"}}\n{{\"event\":\"alive\",\"deadline-boottime-ms\":{}}}\n",
        soon + 5
    );
    let peer = Peer::saying([&*stream(&lines)]);
    let mut joined = peer.client().join(&join(Purpose::Hold)).await.unwrap();
    assert_eq!(joined.tenure().deadline(), None);
    let mut events = Vec::new();
    for expected in [soon, soon, soon + 5] {
        events.push(joined.next().await.unwrap().unwrap().event);
        let deadline = joined.tenure().deadline().unwrap();
        assert_eq!(deadline.as_nanos(), expected * 1_000_000);
    }
    assert!(matches!(&*events, [Event::Held { .. }, Event::Unknown, Event::Alive { .. }]));
    assert!(matches!(joined.next().await, Err(ClientError::Gone { .. })));
}

#[tokio::test]
async fn what_does_not_begin_with_a_join_is_not_believed() {
    let held = "{\"event\":\"held\",\"path\":\"/a\",\"fence\":7}\n";
    for lines in [held, "{\"event\":\"joined\"", "joined\n", "[]\n"] {
        let peer = Peer::saying([&*stream(lines)]);
        let refused = peer.client().join(&join(Purpose::Hold)).await;
        assert!(
            matches!(refused, Err(ClientError::NotOurs { .. } | ClientError::Gone { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn garbage_in_the_middle_is_an_error_and_not_a_silence() {
    let peer = Peer::saying([&*stream(&format!("{JOINED}{{\"event\":\"held\"}}\n"))]);
    let mut joined = peer.client().join(&join(Purpose::Hold)).await.unwrap();
    assert!(matches!(joined.next().await, Err(ClientError::NotOurs { .. })));
}

#[tokio::test]
async fn who_leaves_says_first_that_nothing_depends_on_the_claim() {
    let done = answer("204 No Content", "");
    let peer = Peer::saying([&*stream(JOINED), &*done, &*done]);
    peer.client().join(&join(Purpose::Hold)).await.unwrap().leave().await.unwrap();
    let heard = [peer.heard(), peer.heard(), peer.heard()].map(|it| it[..20].to_owned());
    assert_eq!(heard, ["POST /v1/recipes/ord", "DELETE /v1/participa", "DELETE /v1/participa"]);
}

#[tokio::test]
async fn of_who_is_known_to_have_ended_nothing_is_asked() {
    let lines = format!("{JOINED}{{\"event\":\"ended\",\"how\":\"left\"}}\n");
    // Nobody would answer a second request.
    let peer = Peer::saying([&*whole_stream(&lines)]);
    let mut joined = peer.client().join(&join(Purpose::Hold)).await.unwrap();
    joined.next().await.unwrap().unwrap();
    joined.leave().await.unwrap();
}

#[tokio::test]
async fn the_last_line_of_a_daemon_that_has_gone_tells_that_a_participant_has_ended() {
    for (last, is_told) in [("ended\",\"how\":\"left", true), ("released", false)] {
        let lines = format!("{JOINED}{{\"event\":\"{last}\"}}\n");
        // It closes the next connection without an answer.
        let peer = Peer::saying([&*whole_stream(&lines), ""]);
        let left = peer.client().join(&join(Purpose::Answer)).await.unwrap().leave().await;
        assert_eq!(left.is_ok(), is_told, "{left:?}");
    }
}

#[tokio::test]
async fn a_daemon_that_was_stopped_for_longer_than_the_lease_may_still_say_that_it_is_done() {
    let done = answer("204 No Content", "");
    let peer = Peer::saying([&*stream(JOINED), &*done, &*done]);
    let mut joined = peer.client().join(&join(Purpose::Hold)).await.unwrap();
    joined.tenure = Tenure::new(Boottime::from_nanos(0));
    joined.leave().await.unwrap();
}

#[tokio::test]
async fn who_has_ended_has_left() {
    let gone = answer("404 Not Found", r#"{"error":"not-found","message":"no participant p1"}"#);
    let peer = Peer::saying([&*stream(JOINED), &*gone]);
    peer.client().join(&join(Purpose::Hold)).await.unwrap().leave().await.unwrap();
    let refused = answer("403 Forbidden", r#"{"error":"forbidden","message":"no"}"#);
    let peer = Peer::saying([&*stream(JOINED), &*refused]);
    let left = peer.client().join(&join(Purpose::Hold)).await.unwrap().leave().await;
    assert!(matches!(left, Err(ClientError::Host(_))), "{left:?}");
}
