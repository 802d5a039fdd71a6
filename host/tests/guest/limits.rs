//! What one component may use.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wok::guest::{Answer, Fault, Instance, Limits, Module};

use crate::sandbox::{Leaping, Sandbox, attack, bytes, engine_for, fault, module};

#[tokio::test]
async fn a_loop_ends_by_its_processor_time_and_neighbours_work_on_meanwhile() {
    let mut sandbox = Sandbox::new();
    let mut neighbour = sandbox.hostile().await;
    sandbox.limits.cpu_per_call = Duration::from_millis(30);
    let mut spinning = sandbox.hostile().await;
    let mut served = 0;
    let spin = fault(&mut spinning, "spin", json!({}));
    tokio::pin!(spin);
    // One thread: a neighbour is served only where the loop is interrupted.
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut spin => break ended,
            () = tokio::task::yield_now() => {}
        }
        attack(&mut neighbour, "woken", json!({})).await.unwrap();
        served += 1;
    };
    assert!(matches!(ended, Fault::CpuSpent { .. }), "{ended}");
    assert_eq!(
        ended.to_string(),
        "participant p1 of hostile: spin used more than 30ms of processor time; \
         raise limits.cpu-per-call if it needs more"
    );
    assert!(served >= 3, "{served}");
}

#[tokio::test]
async fn time_blocked_in_a_host_call_is_not_processor_time() {
    let mut sandbox = Sandbox::new();
    sandbox.limits.cpu_per_call = Duration::from_millis(20);
    let mut instance = sandbox.hostile().await;
    let flood = attack(&mut instance, "alarm-flood", json!({"count": 100})).await.unwrap();
    assert_eq!(flood, Answer::Ok(json!({"count": 100})));
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let mut sandbox = Sandbox::new();
    sandbox.limits.memory = 4 << 20;
    let mut instance = sandbox.hostile().await;
    let pages = attack(&mut instance, "memory-bomb", json!({})).await.unwrap();
    let Answer::Ok(pages) = pages else { panic!("{pages:?}") };
    assert!(pages.as_u64().unwrap() < 64, "{pages}");
    let mut instance = sandbox.hostile().await;
    let fault = fault(&mut instance, "allocate", json!({})).await;
    assert_eq!(
        fault.to_string(),
        "participant p1 of hostile: allocate wanted more than 4194304 bytes of memory; \
         raise limits.memory if it needs more"
    );
}

#[tokio::test]
async fn a_component_that_starts_too_large_is_refused_with_the_key() {
    let mut sandbox = Sandbox::new();
    sandbox.limits.memory = 64 << 10;
    let refused = sandbox.start_with("hostile", None).await.unwrap_err().to_string();
    assert!(refused.ends_with("raise limits.memory if it needs more"), "{refused}");
}

#[tokio::test]
async fn recursion_without_end_traps() {
    let sandbox = Sandbox::new();
    let fault = fault(&mut sandbox.hostile().await, "recurse", json!({})).await;
    assert_eq!(
        fault.to_string(),
        "participant p1 of hostile: recurse trapped: the stack is used up, as by deep recursion"
    );
}

/// Reads beyond the end of its memory, as a stack does that has grown below its beginning.
const OUTSIDE: &str = r#"(component
    (core module $outside (memory 1)
        (func (export "reach") (drop (i32.load (i32.const -4)))))
    (core instance $outside (instantiate $outside))
    (func $reach (canon lift (core func $outside "reach")))
    (instance $it (export "reach" (func $reach)))
    (export "test:outside/outside@0.1.0" (instance $it)))"#;

#[tokio::test]
async fn one_that_reaches_outside_its_memory_is_told_how_that_comes() {
    let sandbox = Sandbox::new();
    let engine = engine_for(1);
    let module = Module::load(&engine, "outside", &wat::parse_str(OUTSIDE).unwrap()).unwrap();
    let config = module.configuration(None).unwrap();
    let mut instance = Instance::start(&module, sandbox.surroundings(), &config).await.unwrap();
    let arguments = module.arguments("reach", &json!({})).unwrap();
    let fault = instance.call(&arguments).await.unwrap_err().to_string();
    assert!(fault.contains("outside its memory, as by deep recursion"), "{fault}");
}

/// Makes a request to the ensemble at every depth, so also where the stack is all but used up.
const DEEP_CALLS: &str = r#"(component
    (type $error (variant (case "no-node") (case "node-exists") (case "not-empty")
        (case "bad-version") (case "no-children-for-ephemerals") (case "no-auth")
        (case "quota-exceeded") (case "outcome-unknown") (case "cancelled") (case "denied" string)
        (case "over-limit" string) (case "invalid" string) (case "other" string)))
    (import "wok:recipe/zookeeper@0.1.0" (instance $zookeeper
        (alias outer 1 $error (type $e))
        (export "error" (type $error (eq $e)))
        (export "sync" (func (param "path" string) (result (result (error $error)))))))
    (core module $memory
        (memory (export "memory") 1)
        (data (i32.const 0) "/")
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))
    (core instance $memory (instantiate $memory))
    (core func $sync (canon lower (func $zookeeper "sync")
        (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
    (core module $deep
        (import "host" "sync" (func $sync (param i32 i32 i32)))
        (func $deeper (export "dive") (call $sync (i32.const 0) (i32.const 1) (i32.const 512))
            call $deeper))
    (core instance $deep (instantiate $deep
        (with "host" (instance (export "sync" (func $sync))))))
    (func $dive (canon lift (core func $deep "dive")))
    (instance $it (export "dive" (func $dive)))
    (export "test:deep/deep@0.1.0" (instance $it)))"#;

#[tokio::test]
async fn a_host_call_at_any_depth_of_the_stack_leaves_the_process_alive() {
    let mut sandbox = Sandbox::new();
    sandbox.limits.calls_per_second = 1_000_000;
    sandbox.limits.cpu_per_call = Duration::from_secs(20);
    let engine = engine_for(1);
    let module = Module::load(&engine, "deep", &wat::parse_str(DEEP_CALLS).unwrap()).unwrap();
    let config = module.configuration(None).unwrap();
    let mut instance = Instance::start(&module, sandbox.surroundings(), &config).await.unwrap();
    let arguments = module.arguments("dive", &json!({})).unwrap();
    let fault = instance.call(&arguments).await.unwrap_err();
    assert!(fault.to_string().contains("the stack is used up"), "{fault}");
    assert!(sandbox.ensemble.requests() > 1000, "{}", sandbox.ensemble.requests());
}

#[tokio::test]
async fn requests_are_slowed_to_their_rate_and_what_costs_processor_time_alone_is_not() {
    let mut sandbox = Sandbox::new();
    let time = Arc::new(Leaping::default());
    sandbox.time = time.clone();
    sandbox.limits.calls_per_second = 1000;
    let mut instance = sandbox.hostile().await;
    // A bucketful of requests goes at once.
    for (call, slowed) in [("id", 0..=0), ("now", 0..=0), ("exists", 3990..=5010)] {
        let before = wok::guest::TimeAndChance::now_ms(&*time);
        let body = json!({"call": call, "count": 5000});
        let answered = attack(&mut instance, "call-flood", body).await.unwrap();
        assert_eq!(answered, Answer::Ok(json!(5000)));
        let took = wok::guest::TimeAndChance::now_ms(&*time) - before;
        assert!(slowed.contains(&took), "{took} ms for 5000 of {call}");
    }
}

#[tokio::test]
async fn handles_are_hoarded_up_to_their_limit() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    for (handle, most, named) in [
        ("watch-data", 64, "limits.watches"),
        ("watch-exists", 64, "limits.watches"),
        ("children", 16, "child lists"),
    ] {
        let before = sandbox.ensemble.requests();
        let body = json!({"handle": handle, "count": 1000});
        let hoarded = attack(&mut instance, "hoard", body).await.unwrap();
        let Answer::Ok(hoarded) = hoarded else { panic!("{hoarded:?}") };
        assert_eq!(hoarded["count"], most, "{hoarded}");
        let error = hoarded["error"]["over-limit"].as_str().unwrap();
        assert!(error.contains(named), "{error}");
        // What is over the limit is refused before it is asked for.
        assert_eq!(sandbox.ensemble.requests() - before, most);
        let dropped = attack(&mut instance, "drop-hoard", json!({})).await.unwrap();
        assert_eq!(dropped, Answer::Ok(json!(most)));
    }
    let body = json!({"handle": "alarm", "count": 1000});
    let fault = fault(&mut instance, "hoard", body).await;
    assert_eq!(
        fault.to_string(),
        "participant p1 of hostile: hoard wanted more than 64 watches and alarms; \
         raise limits.watches if it needs more"
    );
}

#[tokio::test]
async fn too_much_data_is_refused_and_far_too_much_ends_the_component() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    for bytes in [1_000_000, 2_000_000, 2 << 20] {
        let answer = attack(&mut instance, "big-create", json!({"bytes": bytes})).await.unwrap();
        let Answer::Err(error) = answer else { panic!("{answer:?}") };
        assert!(error["invalid"].is_string(), "{error}");
    }
    let fits = attack(&mut instance, "big-create", json!({"bytes": 900_000})).await.unwrap();
    assert_eq!(fits, Answer::Ok(json!(null)));
    let fault = fault(&mut instance, "big-create", json!({"bytes": 4_000_000})).await;
    assert_eq!(
        fault.to_string(),
        "participant p1 of hostile: big-create wanted more than 2162688 bytes handed to the host \
         in one call; that is fixed"
    );
}

#[tokio::test]
async fn batches_are_bounded() {
    let sandbox = Sandbox::new();
    let mut instance = sandbox.hostile().await;
    let answer = attack(&mut instance, "big-multi", json!({"count": 1000})).await.unwrap();
    let Answer::Err(error) = answer else { panic!("{answer:?}") };
    assert_eq!(error, json!({"invalid": "1001 requests at once, and at most 128 are sent"}));
    let answer = attack(&mut instance, "big-pipeline", json!({"count": 1000})).await.unwrap();
    assert_eq!(answer, Answer::Ok(json!(0)));
    let answer = attack(&mut instance, "big-pipeline", json!({"count": 100})).await.unwrap();
    assert_eq!(answer, Answer::Ok(json!(100)));
}

#[tokio::test]
async fn logs_and_events_over_their_rate_are_counted_and_dropped() {
    let mut sandbox = Sandbox::new();
    sandbox.time = Arc::new(Leaping::default());
    let mut instance = sandbox.hostile().await;
    let flood = json!({"count": 900, "bytes": 1000});
    attack(&mut instance, "log-flood", flood.clone()).await.unwrap();
    attack(&mut instance, "emit-flood", flood).await.unwrap();
    drop(instance);
    let heard = sandbox.heard.all();
    let per_second = Limits::default().log_per_second as usize;
    let logged: usize =
        heard.iter().filter(|line| line.starts_with("log x")).map(String::len).sum();
    assert!((per_second / 2..=3 * per_second).contains(&logged), "{logged}");
    for what in ["log lines were dropped", "events were dropped"] {
        assert!(heard.iter().any(|line| line.contains(what)), "{what}");
    }
}

#[tokio::test]
async fn the_pool_says_when_it_is_full_and_takes_what_is_given_back() {
    let sandbox = Sandbox::new();
    let engine = engine_for(1);
    let module = Module::load(&engine, "hostile", bytes("hostile")).unwrap();
    let config = module.configuration(None).unwrap();
    let first = Instance::start(&module, sandbox.surroundings(), &config).await.unwrap();
    let second = Instance::start(&module, sandbox.surroundings(), &config).await.unwrap_err();
    assert!(matches!(second, Fault::PoolSpent { .. }), "{second}");
    assert!(second.to_string().contains("raise [engine] participants"), "{second}");
    drop(first);
    for _ in 0..3 {
        Instance::start(&module, sandbox.surroundings(), &config).await.unwrap();
    }
}

#[tokio::test]
async fn arguments_of_another_type_never_reach_the_component() {
    let refused = module("hostile").arguments("big-create", &json!({"bytes": -1})).unwrap_err();
    assert_eq!(refused.to_string(), "bytes: expected a whole number from 0 to 4294967295, got -1");
}
