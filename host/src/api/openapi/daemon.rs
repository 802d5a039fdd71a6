//! What can be asked of the host itself.

use serde_json::{Value, json};

use super::components::{Components, count, described, duration, object, or_null, refer, text};
use super::endpoint::{Endpoint, Method, Paths};
use super::errors::Kind;
use super::events::EVENT;
use super::recipes::ALIVE;

/// The tag of what is asked of the host.
pub(super) const TAG: &str = "Host";

/// Adds the schemas of what the host tells of itself.
pub(super) fn add_schemas(components: &mut Components) {
    let health = object([("status", json!({ "type": "string", "const": "ok" }))]);
    components.keep(&["health"], health);
    let readiness = object([("status", json!({ "type": "string", "const": "ready" }))]);
    components.keep(&["readiness"], readiness);
    let session = object([
        ("session", text("Its id.")),
        ("timeout", duration("Its timeout, as ZooKeeper granted it.")),
        ("state", json!({ "type": "string", "enum": ["connected", "suspended", "lost"] })),
        ("participants", count("How many participants belong to it.")),
    ]);
    components.keep(&["session"], described(session, "A session with ZooKeeper."));
    let host = object([
        ("version", text("The version of wok.")),
        ("pid", count("Its process.")),
        ("sessions", json!({ "type": "array", "items": refer("session") })),
    ]);
    components.keep(&["host"], host);
    let operation = object([
        ("operation", text("Its name.")),
        ("docs", or_null(text("What the module says of it."))),
        ("arguments", json_schema("The body of a call.")),
        ("answer", json_schema("What it answers.")),
        ("error", or_null(json_schema("Its own error, if it has one."))),
    ]);
    components.keep(&["operation"], described(operation, "An operation of a recipe."));
    components.keep(&["recipe"], recipe());
    let list = json!({ "type": "array", "items": refer("recipe") });
    components.keep(&["recipes"], object([("recipes", list)]));
    components.keep(&["recipe-with-operations"], recipe_with_operations());
    components.keep(&["log-line"], log_line());
}

fn json_schema(words: &str) -> Value {
    json!({ "type": "object", "description": format!("{words} As a JSON Schema.") })
}

fn recipe() -> Value {
    let recipe = object([
        ("recipe", text("Its name in the config.")),
        ("module", text("Its module.")),
        ("mount", text("The path in ZooKeeper that it works below.")),
        ("interface", text("The full name of its interface.")),
        (
            "digest",
            json!({
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "The SHA-256 of its module.",
            }),
        ),
        ("participants", count("How many take part.")),
        (
            "runs",
            json!({ "type": "boolean", "description": "Whether the host itself takes part." }),
        ),
    ]);
    described(recipe, "A recipe that can be joined.")
}

/// The same with two keys more.
fn recipe_with_operations() -> Value {
    let mut recipe = recipe();
    let more = [
        ("docs", or_null(text("What the module says of itself."))),
        ("operations", json!({ "type": "array", "items": refer("operation") })),
    ];
    for (key, schema) in more {
        if let Some(Value::Object(properties)) = recipe.get_mut("properties") {
            properties.insert(key.to_owned(), schema);
        }
        if let Some(Value::Array(required)) = recipe.get_mut("required") {
            required.push(json!(key));
        }
    }
    recipe
}

fn log_line() -> Value {
    let mut line = object([
        ("event", json!({ "type": "string", "const": "log" })),
        ("level", json!({ "type": "string", "enum": ["error", "warn", "info", "debug", "trace"] })),
        ("target", text("The part of the host that speaks.")),
        ("at", json!({ "type": "string", "format": "date-time" })),
    ]);
    if let Some(Value::Object(properties)) = line.get_mut("properties") {
        properties.insert("message".to_owned(), text("What it says."));
    }
    if let Value::Object(line) = &mut line {
        line.insert("additionalProperties".to_owned(), json!(true));
    }
    described(line, "A line of the host's log, with whatever else it tells.")
}

/// Adds what can be asked of the host.
pub(super) fn add(paths: &mut Paths) {
    add_recipes(paths);
    let follow = Endpoint::new("follow-events", TAG, "Follow all participants")
        .about("Of all participants that the caller may see, from now on.")
        .asks("alive", ALIVE, &duration(ALIVE))
        .fails(&[Kind::BadRequest])
        .streams("A stream without an end.", &refer(EVENT));
    paths.add(Method::Get, "/v1/events", follow);
    let lines = "How many of the last lines come first.";
    let more = "Whether the stream goes on with new lines.";
    let logs = Endpoint::new("read-logs", TAG, "Read the host's log")
        .about("For root and the host's own user.")
        .asks("lines", lines, &json!({ "type": "integer", "minimum": 0, "default": 100 }))
        .asks("follow", more, &json!({ "type": "boolean", "default": false }))
        .streams("The lines, the oldest first.", &refer("log-line"));
    paths.add(Method::Get, "/v1/logs", logs);
    let document = Endpoint::new("get-openapi", TAG, "This document").answers(
        200,
        "The document.",
        &json!({ "type": "object", "additionalProperties": true }),
    );
    paths.add(Method::Get, "/v1/openapi.json", document);
    let host = Endpoint::new("get-host", TAG, "The host and its sessions").answers(
        200,
        "The host.",
        &refer("host"),
    );
    paths.add(Method::Get, "/v1/host", host);
    let health = Endpoint::new("get-health", TAG, "Whether the host is alive").answers(
        200,
        "It is.",
        &refer("health"),
    );
    paths.add(Method::Get, "/healthz", health);
    let readiness = Endpoint::new("get-readiness", TAG, "Whether a session is open").answers(
        200,
        "One is.",
        &refer("readiness"),
    );
    paths.add(Method::Get, "/readyz", readiness);
}

fn add_recipes(paths: &mut Paths) {
    let list = Endpoint::new("list-recipes", TAG, "The recipes that can be joined").answers(
        200,
        "The recipes.",
        &refer("recipes"),
    );
    paths.add(Method::Get, "/v1/recipes", list);
    let get = Endpoint::new("get-recipe", TAG, "A recipe and its operations")
        .at("recipe", "The recipe's name.")
        .answers(200, "The recipe.", &refer("recipe-with-operations"))
        .fails(&[Kind::NotFound]);
    paths.add(Method::Get, "/v1/recipes/{recipe}", get);
}
