//! Paths that try to leave the mount.

use serde_json::json;
use wok::guest::Answer;

use crate::sandbox::{Sandbox, attack};

const ESCAPES: &[&str] = &[
    "",
    "..",
    "/..",
    "/../app-evil/secret",
    "/a/../../app-evil/secret",
    "//",
    "//app-evil",
    "/.",
    "/./x",
    "/x/",
    "/x//y",
    "app-evil",
    "-evil/secret",
    "/\u{0}",
    "/x\u{0}y",
    "/\u{1b}",
    "/\u{7f}",
    "/\u{e000}",
    "/\u{fff0}",
    "/\u{1f600}",
];

const CONTENDING: [&str; 2] = ["escape-contend", "escape-contend-and-list"];

#[tokio::test]
async fn no_malformed_path_reaches_the_session() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let before = (sandbox.ensemble.paths(), sandbox.ensemble.requests());
    for path in ESCAPES {
        for operation in [
            "escape-exists",
            "escape-get-data",
            "escape-get-children",
            "escape-create",
            "escape-delete",
            "escape-multi",
            "escape-claim",
            "escape-claim-all",
            "escape-release",
        ] {
            let answer = attack(&mut instance, operation, json!({"path": path})).await.unwrap();
            let Answer::Err(error) = answer else { panic!("{operation} {path:?}: {answer:?}") };
            assert!(error["invalid"].is_string(), "{operation} {path:?}: {error}");
        }
        for operation in CONTENDING {
            let body = json!({"parent": path, "before": "a", "after": "b"});
            let answer = attack(&mut instance, operation, body).await.unwrap();
            assert!(matches!(answer, Answer::Err(_)), "{operation} in {path:?}: {answer:?}");
        }
    }
    assert_eq!((sandbox.ensemble.paths(), sandbox.ensemble.requests()), before);
}

#[tokio::test]
async fn names_of_contenders_stay_one_name() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    for (before, after) in [("../", ""), ("a/", "b"), ("", "/x"), ("\u{0}", ""), ("", "\u{e000}")] {
        for operation in CONTENDING {
            let body = json!({"parent": "/", "before": before, "after": after});
            let answer = attack(&mut instance, operation, body).await.unwrap();
            let Answer::Err(error) = answer else { panic!("{before:?} {after:?}: {answer:?}") };
            assert!(error["invalid"].is_string(), "{before:?} {after:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_path_within_the_mount_is_the_mounts_and_is_told_as_the_guest_calls_it() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let body = json!({"path": "/zookeeper"});
    let answer = attack(&mut instance, "escape-create", body).await.unwrap();
    assert_eq!(answer, Answer::Ok(json!("/zookeeper")));
    assert!(sandbox.ensemble.paths().contains(&"/app/zookeeper".to_owned()));
}

#[tokio::test]
async fn what_another_created_is_neither_claimed_nor_released() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    attack(&mut instance, "escape-create", json!({"path": "/theirs"})).await.unwrap();
    for operation in ["escape-claim", "escape-claim-all", "escape-release"] {
        let answer = attack(&mut instance, operation, json!({"path": "/theirs"})).await.unwrap();
        let Answer::Err(error) = answer else { panic!("{operation}: {answer:?}") };
        assert!(error["invalid"].is_string(), "{error}");
    }
    assert!(sandbox.ensemble.paths().contains(&"/app/theirs".to_owned()));
}
