//! Values through a real component.

use serde_json::{Value, json};
use wok::guest::{Answer, Fault, Instance, Limits, config_refusal};

use crate::sandbox::{PATIENCE, Sandbox, module};

async fn echo(instance: &mut Instance, operation: &str, body: &Value) -> Answer {
    let arguments = module("echo").arguments(operation, body).unwrap();
    instance.call(&arguments).await.unwrap()
}

async fn start() -> Instance {
    Sandbox::new().start_with("echo", Some(&json!({"name": "x"}))).await.unwrap()
}

#[tokio::test]
async fn every_kind_of_value_comes_back_as_it_went() {
    let mut instance = start().await;
    let integers = json!({
        "unsigned8": 255, "unsigned16": 65535, "unsigned32": 4_294_967_295_u32,
        "unsigned64": "18446744073709551615", "signed8": -128, "signed16": -32768,
        "signed32": i32::MIN, "signed64": "-9223372036854775808",
    });
    // A single record is the body itself.
    assert_eq!(echo(&mut instance, "echo-integers", &integers).await, Answer::Ok(integers));
    for (operation, value) in [
        ("echo-boolean", json!(true)),
        ("echo-unsigned64", json!(9_007_199_254_740_992_u64)),
        ("echo-unsigned64", json!("9007199254740993")),
        ("echo-signed64", json!(-1)),
        ("echo-float32", json!(0.5)),
        ("echo-float64", json!("-inf")),
        ("echo-character", json!("é")),
        ("echo-text", json!("a\u{0}\u{1f600}")),
        ("echo-bytes", json!("")),
        ("echo-bytes", json!("plain text")),
        ("echo-bytes", json!({"base64": "/wAB"})),
        ("echo-numbers", json!([1, 65535])),
        ("echo-texts", json!(["", "b"])),
        ("echo-color", json!("dark-green")),
        ("echo-permissions", json!(["read", "run-as-root"])),
        ("echo-shape", json!("empty")),
        ("echo-shape", json!({"polygon": [[1, -2], [3, 4]]})),
        ("echo-shape", json!({"named": null})),
        ("echo-shape", json!({"named": "x"})),
        ("echo-pair", json!([1, "b", true])),
        ("echo-maybe", json!(null)),
        ("echo-maybe", json!(7)),
        ("echo-maybe-maybe", json!(null)),
        ("echo-maybe-maybe", json!({"some": null})),
        ("echo-maybe-maybe", json!({"some": 7})),
    ] {
        let answer = echo(&mut instance, operation, &json!({ "value": value })).await;
        assert_eq!(answer, Answer::Ok(value), "{operation}");
    }
}

#[tokio::test]
async fn a_result_is_split_at_the_top() {
    let mut instance = start().await;
    let bare = |fails: bool| json!({ "fails": fails });
    assert!(matches!(
        echo(&mut instance, "fail-bare", &bare(false)).await,
        Answer::Ok(Value::Number(_))
    ));
    assert_eq!(echo(&mut instance, "fail-bare", &bare(true)).await, Answer::Err(json!(null)));
    let error = json!({"error": {"denied": "no"}});
    assert_eq!(echo(&mut instance, "fail", &error).await, Answer::Err(json!({"denied": "no"})));
    assert_eq!(echo(&mut instance, "fail", &json!({})).await, Answer::Ok(json!(null)));
    let outcome = json!({"value": {"ok": 1}});
    assert_eq!(echo(&mut instance, "echo-outcome", &outcome).await, Answer::Ok(json!(1)));
    assert_eq!(echo(&mut instance, "nothing", &json!(null)).await, Answer::Ok(json!(null)));
}

#[tokio::test]
async fn a_result_as_large_as_a_znode_is_lifted() {
    let mut instance = start().await;
    let answer = echo(&mut instance, "many-bytes", &json!({"count": 900_000})).await;
    let Answer::Ok(Value::String(text)) = answer else {
        let Answer::Ok(Value::Object(bytes)) = answer else { panic!("neither") };
        assert_eq!(bytes["base64"].as_str().unwrap().len(), 1_200_000);
        return;
    };
    assert_eq!(text.len(), 900_000);
}

#[tokio::test]
async fn a_config_is_taken_refused_by_the_module_or_wrong() {
    let sandbox = Sandbox::new();
    let config = json!({
        "name": "x", "big": "9007199254740993", "color": "red", "bytes": {"base64": "/w=="},
        "sides": {"width": 1, "height": 2},
    });
    let mut instance = sandbox.start_with("echo", Some(&config)).await.unwrap();
    assert_eq!(echo(&mut instance, "configured", &json!({})).await, Answer::Ok(config));
    let refused = json!({"name": "x", "refuse": "not today"});
    let refused = sandbox.start_with("echo", Some(&refused)).await.unwrap_err();
    assert!(matches!(refused, Fault::ConfigRefused { .. }));
    assert_eq!(
        refused.to_string(),
        "participant p1 of echo: the module refuses its config: \"not today\""
    );
    let wrong = json!({"sides": {"width": 1}, "colour": "red"});
    assert_eq!(
        module("echo").configuration(Some(&wrong)).unwrap_err().to_string(),
        "config.name: missing; expected a string; config.sides.height: missing; expected a number; \
         config.colour: unknown field; did you mean color?"
    );
    assert_eq!(
        module("echo").configuration(None).unwrap_err().to_string(),
        "config.name: missing; expected a string"
    );
}

#[tokio::test]
async fn a_module_is_asked_whether_it_takes_its_config_without_a_session() {
    for (guest, config, refusal) in [
        ("echo", json!({ "name": "x" }), None),
        ("echo", json!({ "name": "x", "refuse": "not today" }), Some(json!("not today"))),
        // It waits for a znode, so only its participant can tell what becomes of it.
        ("hostile", json!({ "waits": true }), None),
        // It is ended by its processor time: at its rate of requests it would go on for days.
        ("hostile", json!({ "misspells": true }), None),
    ] {
        let module = module(guest);
        let fitting = module.configuration(Some(&config)).unwrap();
        let limits = Limits { calls_per_second: 1, ..Limits::default() };
        let asking = config_refusal(&module, &fitting, limits, "a test".to_owned());
        let told = tokio::time::timeout(PATIENCE, asking).await.expect("it is asked for ever");
        assert_eq!(told, refusal, "{guest} with {config}");
    }
}
