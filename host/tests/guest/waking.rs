//! Watches of an idle component.

use std::future::poll_fn;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use wok::guest::{Answer, Fault, Instance};
use wok::session::Write;

use crate::sandbox::{PATIENCE, Sandbox, attack};

async fn until_fired(instance: &mut Instance) {
    let fired = poll_fn(|context| instance.poll_fired(context));
    tokio::time::timeout(PATIENCE, fired).await.expect("no watch fires");
}

fn has_fired(instance: &mut Instance) -> bool {
    poll_fn(|context| instance.poll_fired(context)).now_or_never().is_some()
}

async fn arm(sandbox: &Sandbox, then: &str) -> Instance {
    let mut instance = sandbox.hostile().await;
    let body = json!({"path": "/", "then": then});
    assert_eq!(attack(&mut instance, "wake-when", body).await.unwrap(), Answer::Ok(json!(null)));
    instance
}

fn change(sandbox: &Sandbox) {
    let (path, data) = ("/app".to_owned(), b"new".to_vec());
    sandbox.ensemble.write(Write::SetData { path, data, version: None });
}

async fn woken(instance: &mut Instance) -> Answer {
    attack(instance, "woken", json!({})).await.unwrap()
}

#[tokio::test]
async fn a_fired_watch_wakes_the_component_once() {
    let sandbox = Sandbox::new();
    let mut instance = arm(&sandbox, "count").await;
    assert!(!has_fired(&mut instance));
    instance.wake().await.unwrap();
    assert_eq!(woken(&mut instance).await, Answer::Ok(json!([0, 0])));
    change(&sandbox);
    until_fired(&mut instance).await;
    instance.wake().await.unwrap();
    assert_eq!(woken(&mut instance).await, Answer::Ok(json!([1, 1])));
    assert!(!has_fired(&mut instance));
}

#[tokio::test]
async fn a_fired_watch_that_is_kept_is_spent() {
    let sandbox = Sandbox::new();
    let mut instance = arm(&sandbox, "leave").await;
    change(&sandbox);
    until_fired(&mut instance).await;
    instance.wake().await.unwrap();
    assert!(!has_fired(&mut instance));
    instance.wake().await.unwrap();
    assert_eq!(woken(&mut instance).await, Answer::Ok(json!([1, 1])));
}

#[tokio::test]
async fn an_alarm_wakes_the_component_and_can_be_set_again() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let body = json!({"after-ms": 1, "then": "again"});
    attack(&mut instance, "wake-when", body).await.unwrap();
    for _ in 0..3 {
        until_fired(&mut instance).await;
        instance.wake().await.unwrap();
    }
    assert_eq!(woken(&mut instance).await, Answer::Ok(json!([3, 3])));
}

#[tokio::test]
async fn wait_is_refused_in_wake_and_for_nothing() {
    let sandbox = Sandbox::new();
    let mut instance = arm(&sandbox, "wait").await;
    change(&sandbox);
    instance.wake().await.unwrap();
    let heard = sandbox.heard.all();
    assert!(heard.iter().any(|line| line.contains("wait within wake")), "{heard:?}");
    let answer = attack(&mut instance, "wait-for-nothing", json!({})).await.unwrap();
    let Answer::Err(error) = answer else { panic!("{answer:?}") };
    assert_eq!(error, json!({"invalid": "wait for no watch would never end"}));
}

#[tokio::test]
async fn wake_has_the_limits_of_a_call() {
    let mut sandbox = Sandbox::new();
    sandbox.limits.cpu_per_call = Duration::from_millis(20);
    let mut instance = arm(&sandbox, "spin").await;
    change(&sandbox);
    let fault = instance.wake().await.unwrap_err();
    assert!(matches!(fault, Fault::CpuSpent { .. }), "{fault}");
    let dead = instance.wake().await.unwrap_err();
    assert!(matches!(dead, Fault::Dead { .. }), "{dead}");
}
