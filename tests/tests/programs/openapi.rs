//! The API's document is one to those who know OpenAPI, and it says what the modules say.

use std::sync::LazyLock;

use anyhow::Result;
use serde_json::{Value, json};
use wok_tests::openapi::{Exchange, document_problems, exchange_problems, of_stock_recipes};

/// Compiling the stock recipes takes its time.
static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| of_stock_recipes().expect("the stock recipes are loaded"));

type Damage = fn(&mut Value);

/// Each exchange has the problems of which these are parts, in their order.
#[track_caller]
fn check(expected: &[(Exchange, &[&str])]) -> Result<()> {
    let exchanges: Vec<Exchange> = expected.iter().map(|(exchange, _)| exchange.clone()).collect();
    let problems = exchange_problems(&DOCUMENT, &exchanges)?;
    for ((exchange, expected), problems) in expected.iter().zip(problems) {
        assert_eq!(problems.len(), expected.len(), "{exchange:?}: {problems:#?}");
        for (problem, expected) in problems.iter().zip(*expected) {
            assert!(problem.contains(expected), "{exchange:?}: {problem}, and not {expected}");
        }
    }
    Ok(())
}

#[test]
fn the_document_of_all_stock_recipes_is_valid() -> Result<()> {
    assert_eq!(document_problems(&DOCUMENT)?, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_damaged_document_is_refused() -> Result<()> {
    let damages: [(Damage, &str); 4] = [
        (|it| it["info"] = json!({}), "'title' is a required property"),
        (|it| it["paths"]["/v1/host"]["get"]["responses"] = json!(7), "7"),
        (|it| it["paths"]["/v1/host"]["get"]["operationId"] = json!("get-health"), "get-health"),
        (|it| it["components"]["schemas"]["claim"] = Value::Null, "#/components/schemas/claim"),
    ];
    for (damage, expected) in damages {
        let mut document = DOCUMENT.clone();
        damage(&mut document);
        let problems = document_problems(&document)?;
        assert!(problems.iter().any(|it| it.contains(expected)), "{expected}: {problems:#?}");
    }
    Ok(())
}

#[test]
fn an_exchange_is_as_the_document_has_it_or_is_told() -> Result<()> {
    let acquire = "/v1/recipes/lock/call/acquire?timeout=5s";
    let answered = |value: Value| Exchange::new("POST", acquire, 200).answered(value);
    let refused =
        |error: Value| Exchange::new("POST", acquire, 409).answered(json!({ "error": error }));
    let at_one = "/v1/participants/4b1d/acquire";
    let ended = |error: Value| Exchange::new("POST", at_one, 410).answered(error);
    let at_one_404 = |word: &str| {
        Exchange::new("POST", at_one, 404).answered(json!({ "error": word, "message": "m" }))
    };
    let deleted = Exchange::new("DELETE", "/v1/participants/4b1d", 204);
    let nowhere = |status| Exchange::new("GET", "/v1/nothing", status);
    let other_method = Exchange::new("PUT", "/v1/host", 405);
    check(&[
        (answered(json!({ "path": "/a", "fence": 7 })), &[]),
        (answered(json!({ "path": "/a", "fence": "9007199254740993" })), &[]),
        (
            answered(json!({ "path": "/a", "fence": 9_007_199_254_740_993_u64 })),
            &["answer#/fence", "maximum"],
        ),
        (answered(json!({ "path": "/a", "fence": 7, "more": 1 })), &["'more' was unexpected"]),
        (Exchange::new("POST", acquire, 200), &["the answer has no body"]),
        (Exchange::new("POST", acquire, 418), &["no such status"]),
        (refused(json!("no-node")), &[]),
        (refused(json!({ "invalid": "release: not held" })), &[]),
        (refused(json!("no-mode")), &["answer#/error: 'no-mode'"]),
        (
            ended(json!({
                "error": "ended", "message": "m", "reason": "session", "cause": "expired",
            })),
            &[],
        ),
        (ended(json!({ "error": "busy", "message": "m" })), &["'ended' was expected"]),
        (deleted.clone(), &[]),
        (deleted.answered(Value::Null), &["has a body, and the document has none"]),
        (nowhere(404).answered(json!({ "error": "not-found", "message": "m" })), &[]),
        (at_one_404("not-found"), &[]),
        (at_one_404("no-operation"), &[]),
        (at_one_404("busy"), &["answer#"]),
        (nowhere(200).answered(json!({})), &["no such path and method"]),
        (other_method.answered(json!({ "error": "method-not-allowed", "message": "m" })), &[]),
    ])
}

#[test]
fn a_request_and_a_line_of_a_stream_are_as_the_document_has_them_or_are_told() -> Result<()> {
    let line = |event: Value| {
        let at = "2026-01-02T03:04:05.678Z";
        let mut line = json!({ "recipe": "queue", "participant": "4b1d", "at": at });
        if let (Value::Object(line), Value::Object(event)) = (&mut line, event) {
            line.extend(event);
        }
        Exchange::new("POST", "/v1/recipes/queue/join", 200).answered(line)
    };
    let length = json!({ "items": 1, "taken": 0, "dead-letters": 0 });
    let answered = json!({
        "event": "answered", "operation": "length", "value": length, "goes-on": false,
    });
    let detail = json!({ "fence": 7, "path": "/a" });
    let joins = |body: Value| line(answered.clone()).asked(body);
    check(&[
        (line(json!({ "event": "suspended" })), &[]),
        (line(json!({ "event": "held", "path": "/a", "fence": 7 })), &[]),
        (line(json!({ "event": "held", "path": "/a" })), &["'fence' is a required"]),
        (line(json!({ "event": "hold" })), &["'event': 'hold'"]),
        (line(json!({ "event": "recipe-event", "name": "n", "detail": detail })), &[]),
        (joins(json!({})), &[]),
        (joins(json!({ "call": "length", "timeout": "5s" })), &[]),
        (joins(json!({ "call": { "put": { "data": "x" } } })), &[]),
        (joins(json!({ "call": { "length": {} } })), &[]),
        (joins(json!({ "call": { "length": null } })), &[]),
        (joins(json!({ "call": "take-many" })), &[]),
        (joins(json!({ "call": { "take-many": {} } })), &[]),
        (joins(json!({ "call": { "take-many": null } })), &[]),
        (joins(json!({ "call": { "take-many": { "max": 3 } } })), &[]),
        (
            joins(json!({ "call": { "length": { "max": 3 } } })),
            &["request#/call", "request#/call/length"],
        ),
        (
            joins(json!({ "call": { "put": {} } })),
            &["request#/call", "request#/call/put: 'data' is a required"],
        ),
        (joins(json!({ "timeout": 5 })), &["request#/timeout"]),
    ])
}
