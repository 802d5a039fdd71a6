//! How calls end: cancelled, dropped, trapped, with the session.

use futures_util::FutureExt;
use serde_json::json;
use wok::guest::{Answer, Fault};

use crate::sandbox::{Sandbox, attack, fault, module};

#[tokio::test]
async fn a_trap_ends_the_component_and_tells_where() {
    let sandbox = Sandbox::new();
    let fault = fault(&mut sandbox.hostile().await, "trap", json!({})).await;
    let Fault::Trapped { backtrace, .. } = &fault else { panic!("{fault}") };
    assert!(backtrace.contains("wasm backtrace"), "{backtrace}");
}

#[tokio::test]
async fn a_panic_tells_its_message_in_the_log() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let fault = fault(&mut instance, "panic", json!({"message": "oh\u{1b} no"})).await;
    assert!(matches!(fault, Fault::Trapped { .. }), "{fault}");
    let heard = sandbox.heard.all();
    assert!(heard.iter().any(|line| line.contains(r"oh\u{1b} no")), "{heard:?}");
}

#[tokio::test]
async fn a_cancelled_wait_answers_cancelled_and_the_next_operation_is_not_cancelled() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let arguments = module("hostile").arguments("wait-for-ever", &json!({})).unwrap();
    for _ in 0..2 {
        let mut waiting = Box::pin(instance.call(&arguments));
        assert!(waiting.as_mut().now_or_never().is_none());
        sandbox.scope.cancel();
        assert_eq!(waiting.await.unwrap(), Answer::Err(json!("cancelled")));
    }
}

#[tokio::test]
async fn a_component_that_does_not_withdraw_is_dead_once_its_call_is_dropped() {
    let sandbox = Sandbox::new();
    for operation in ["never-return-on-cancel", "wait-for-ever"] {
        let mut instance = sandbox.hostile().await;
        let arguments = module("hostile").arguments(operation, &json!({})).unwrap();
        {
            let mut calling = Box::pin(instance.call(&arguments));
            assert!(calling.as_mut().now_or_never().is_none());
            sandbox.scope.cancel();
        }
        assert!(!instance.is_alive());
        let later = attack(&mut instance, "woken", json!({})).await.unwrap_err();
        assert!(matches!(later, Fault::Dead { .. }), "{later}");
    }
}

#[tokio::test]
async fn a_call_dropped_before_it_began_costs_nothing() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let arguments = module("hostile").arguments("spin", &json!({})).unwrap();
    drop(instance.call(&arguments));
    assert!(instance.is_alive());
}

#[tokio::test]
async fn a_cancelled_operation_can_still_release() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let Answer::Ok(held) = attack(&mut instance, "hold", json!({})).await.unwrap() else {
        panic!("not held")
    };
    let path = held["path"].as_str().unwrap().to_owned();
    let hostile = module("hostile");
    let release = hostile.arguments("escape-release", &json!({"path": path})).unwrap();
    let delete = hostile.arguments("escape-delete", &json!({"path": path})).unwrap();
    let call = instance.call(&delete);
    sandbox.scope.cancel();
    assert_eq!(call.await.unwrap(), Answer::Err(json!("cancelled")));
    let call = instance.call(&release);
    sandbox.scope.cancel();
    assert_eq!(call.await.unwrap(), Answer::Ok(json!(null)));
    let absolute = format!("/app{path}");
    assert!(!sandbox.ensemble.paths().contains(&absolute));
    let fence = &held["fence"];
    assert_eq!(
        sandbox.heard.all(),
        [
            format!("waiting {absolute}"),
            format!("held {absolute} {fence}"),
            format!("released {absolute}"),
        ]
    );
}

#[tokio::test]
async fn no_code_of_a_component_runs_once_the_session_is_lost() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    sandbox.session.close().await;
    let exists = module("hostile").arguments("escape-exists", &json!({"path": "/"})).unwrap();
    let mut calling = Box::pin(instance.call(&exists));
    for _ in 0..10 {
        assert!(calling.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
}
