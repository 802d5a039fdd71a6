//! To join a line and list it in one round trip, as a component sees it.

use serde_json::{Value, json};
use wok::guest::{Answer, Instance};
use wok::session::Refusal;

use crate::ensemble::Strike;
use crate::sandbox::{Sandbox, attack};

/// The requests of one that meets with nothing.
const CLEAN: [&str; 2] = ["create", "getChildren"];

/// What the host asks to find a contender whose create was not answered; the znode itself only if
/// there is one of that name.
const LOOK_UP: [&str; 3] = ["multi", "getChildren", "exists"];

async fn contend_and_list(instance: &mut Instance, parent: &str) -> Answer {
    let body = json!({"parent": parent, "before": "_c_", "after": "-lock-"});
    attack(instance, "escape-contend-and-list", body).await.unwrap()
}

/// The contenders that there are, by their names.
fn contenders(sandbox: &Sandbox, directory: &str) -> Vec<String> {
    let prefix = format!("{directory}/");
    let paths = sandbox.ensemble.paths();
    let below = paths.iter().filter_map(|path| path.strip_prefix(&prefix));
    below.filter(|name| name.starts_with("_c_")).map(str::to_owned).collect()
}

/// A participant whose requests are struck joins a line, stands in it once, sees itself, and has
/// asked for no more than that.
async fn check_joined(strikes: Vec<(usize, Strike)>, asked: &[&[&str]]) {
    let case = format!("{strikes:?}");
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    for (nth, strike) in strikes {
        sandbox.ensemble.strike(nth, strike);
    }
    let answer = contend_and_list(&mut instance, "/").await;
    let Answer::Ok(line) = answer else { panic!("{case}: {answer:?}") };
    assert_eq!(sandbox.ensemble.asked(), asked.concat(), "{case}");
    assert_eq!(json!(contenders(&sandbox, "/app")), line["names"], "{case}");
    let [own] = &*contenders(&sandbox, "/app") else { panic!("{case}: {line}") };
    assert_eq!(line["path"], json!(format!("/{own}")), "{case}");
    assert_eq!(sandbox.heard.all(), [format!("waiting /app/{own}")], "{case}");
    // It is this participant's, in the ledger.
    let released = attack(&mut instance, "escape-release", json!({"path": line["path"]})).await;
    assert_eq!(released.unwrap(), Answer::Ok(Value::Null), "{case}");
    assert_eq!(contenders(&sandbox, "/app"), Vec::<String>::new(), "{case}");
}

/// A participant whose requests are struck is not in the line when it is answered with an error.
async fn check_refused(nth: usize, asked: &[&str]) {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    sandbox.ensemble.strike(nth, Strike::Refuse(Refusal::NoAuth));
    let answer = contend_and_list(&mut instance, "/").await;
    assert_eq!(answer, Answer::Err(json!("no-auth")));
    assert_eq!(sandbox.ensemble.asked(), asked);
    assert_eq!(contenders(&sandbox, "/app"), Vec::<String>::new());
    let heard = sandbox.heard.all();
    let [log] = &heard[..] else { panic!("{heard:?}") };
    assert!(log.starts_with("log contend-and-list /app: the ACL does not allow it"), "{log}");
}

#[tokio::test]
async fn the_list_goes_with_the_create_and_shows_the_new_znode() {
    check_joined(vec![], &[&CLEAN]).await;
}

#[tokio::test]
async fn a_create_that_was_lost_is_looked_for_before_the_children_are_read() {
    let (found, not_found) = (&LOOK_UP[..], &LOOK_UP[..2]);
    let list = &CLEAN[1..];
    let lost_reply = vec![(1, Strike::LoseReply)];
    check_joined(lost_reply, &[&CLEAN, found, list]).await;
    // A connection is lost with everything on it.
    let both = vec![(1, Strike::LoseReply), (2, Strike::LoseRequest)];
    check_joined(both, &[&CLEAN, found, list]).await;
    let neither = vec![(1, Strike::LoseRequest), (2, Strike::LoseRequest)];
    check_joined(neither, &[&CLEAN, not_found, &CLEAN]).await;
}

#[tokio::test]
async fn a_list_that_was_lost_is_asked_for_again_and_the_create_is_not() {
    check_joined(vec![(2, Strike::LoseReply)], &[&CLEAN, &CLEAN[1..]]).await;
    let twice = vec![(2, Strike::LoseRequest), (3, Strike::LoseRequest)];
    check_joined(twice, &[&CLEAN, &CLEAN[1..], &CLEAN[1..]]).await;
}

#[tokio::test]
async fn who_may_not_see_the_line_does_not_stand_in_it() {
    check_refused(2, &["create", "getChildren", "delete"]).await;
}

#[tokio::test]
async fn who_may_not_join_the_line_leaves_nothing() {
    check_refused(1, &CLEAN).await;
}

#[tokio::test]
async fn missing_parents_are_created_and_then_both_are_asked_for_again() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let answer = contend_and_list(&mut instance, "/a/b").await;
    let Answer::Ok(line) = answer else { panic!("{answer:?}") };
    // The lower one is tried first.
    let parents = ["create"; 3];
    assert_eq!(sandbox.ensemble.asked(), [&CLEAN[..], &parents, &CLEAN].concat());
    assert_eq!(json!(contenders(&sandbox, "/app/a/b")), line["names"]);
}

#[tokio::test]
async fn a_list_too_many_is_refused_before_anything_is_created() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let hoard = json!({"handle": "children", "count": sandbox.limits.child_lists});
    attack(&mut instance, "hoard", hoard).await.unwrap();
    let before = sandbox.ensemble.asked();
    let Answer::Err(error) = contend_and_list(&mut instance, "/").await else { panic!("joined") };
    assert!(error["over-limit"].as_str().unwrap().contains("child lists"), "{error}");
    assert_eq!(sandbox.ensemble.asked(), before);
}
