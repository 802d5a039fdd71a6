//! Who is refused, and for what.

use super::*;

#[test]
fn c2_who_is_refused_without_a_reason_is_rejected() {
    let refusals = [
        ("vote", json!({ "invalid": "voted" })),
        ("register", json!("node-exists")),
        ("vote", json!("node-exists")),
        ("outcome", json!("no-node")),
        ("status", json!({ "over-limit": "" })),
        ("transactions", json!("no-node")),
    ];
    for (operation, error) in refusals {
        let mut story = Story::new();
        check(story.begun().about(2, operation).answer_error(2, error), "C2");
    }
}

#[test]
fn c2_where_somebody_has_registered_for_a_site_another_one_may_be_refused() {
    for operation in ["register", "vote"] {
        let mut story = Story::new();
        let mark = created(&path("/present/a"), session(1));
        story.begun().about(2, operation).commit(session(1), vec![mark]);
        story.answer_error(2, json!("node-exists"));
        assert_eq!(verdict(&story.entries), [], "{operation}");
    }
}

/// Calls that the interface says are refused.
fn wrong_calls() -> Vec<(&'static str, Value)> {
    let begin = |sites: Value, payload: &str, within_ms: u64| {
        ("begin", json!({ "sites": sites, "payload": payload, "within-ms": within_ms }))
    };
    let many: Vec<_> = (0..41).map(|site: u32| site.to_string()).collect();
    let vote = |transaction: &str, site: &str| {
        ("vote", json!({ "transaction": transaction, "site": site, "choice": "commit" }))
    };
    vec![
        begin(json!([]), "", 1),
        begin(json!(["a", "a"]), "", 1),
        begin(json!(["a", ".."]), "", 1),
        begin(json!(many), "", 1),
        begin(json!(["a"]), &"x".repeat(16 * 1024 + 1), 1),
        begin(json!(["a"]), "", 0),
        begin(json!(["a"]), "", 604_800_001),
        ("transactions", json!({ "site": "a/b" })),
        vote("foo", "a"),
        vote("/tx-7-1", ""),
        ("status", json!({ "transaction": "/tx-7-1/sites" })),
    ]
}

#[test]
fn c2_wrong_arguments_are_refused_as_invalid() {
    for (operation, arguments) in wrong_calls() {
        let mut story = Story::new();
        story.begun().invoke_with(2, operation, arguments.clone());
        story.answer_error(2, json!({ "invalid": "so" }));
        assert_eq!(verdict(&story.entries), [], "{operation} {arguments}");
        let mut story = Story::new();
        story.begun().invoke_with(2, operation, arguments);
        check(story.answer_error(2, json!({ "other": "so" })), "C2");
    }
    let mut story = Story::new();
    let right = json!({ "sites": ["a", "b c"], "payload": "", "within-ms": 604_800_000 });
    story.invoke_with(1, "begin", right);
    check(story.answer_error(1, json!({ "invalid": "so" })), "C2");
}

#[test]
fn c2_wrong_arguments_that_are_not_refused_are_rejected() {
    let mut story = Story::new();
    story.begun();
    listed(&mut story, "..", json!([]));
    check(&story, "C2");
}

#[test]
fn c2_a_transaction_that_nobody_has_begun_is_none() {
    for operation in ["register", "vote", "outcome", "status", "forget"] {
        let mut story = Story::new();
        story.about(2, operation).answer_error(2, json!("no-node"));
        assert_eq!(verdict(&story.entries), [], "{operation}");
        let mut story = Story::new();
        check(story.about(2, operation).answer_error(2, json!({ "invalid": "so" })), "C2");
    }
}
