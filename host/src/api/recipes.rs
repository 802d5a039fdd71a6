//! The recipes that there are.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::answer::json_response;
use super::caller::Caller;
use super::desk::{Desk, Served};
use super::problem::Problem;
use crate::guest::values::{answer_schema, arguments_schema, error_schema};
use crate::participant::Join;

/// `GET /v1/recipes`
pub(super) async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Response {
    let recipes = desk.recipes(&caller.credentials);
    let recipes: Vec<Value> =
        recipes.map(|(join, served)| Value::Object(about(&desk, join, served))).collect();
    json_response(StatusCode::OK, &json!({ "recipes": recipes }))
}

/// `GET /v1/recipes/{recipe}`
pub(super) async fn one(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (join, served) = desk.recipe(&name, &caller.credentials)?;
    let interface = join.module.interface();
    let operations: Vec<Value> = interface
        .operations
        .iter()
        .map(|operation| {
            json!({
                "operation": operation.name,
                "docs": operation.docs,
                "arguments": arguments_schema(operation),
                "answer": answer_schema(operation),
                "error": error_schema(operation),
            })
        })
        .collect();
    let mut recipe = about(&desk, join, served);
    recipe.insert("docs".to_owned(), json!(interface.docs));
    recipe.insert("operations".to_owned(), json!(operations));
    Ok(json_response(StatusCode::OK, &Value::Object(recipe)))
}

fn about(desk: &Desk, join: &Join, served: &Served) -> Map<String, Value> {
    let module = &join.module;
    let members = desk.epochs.registry().list();
    let participants = members.iter().filter(|member| member.recipe == join.recipe).count();
    Map::from_iter([
        ("recipe".to_owned(), json!(join.recipe)),
        ("module".to_owned(), json!(module.name())),
        ("mount".to_owned(), json!(join.mount.path().to_string())),
        ("interface".to_owned(), json!(module.interface().name)),
        ("digest".to_owned(), json!(module.digest())),
        ("participants".to_owned(), json!(participants)),
        ("runs".to_owned(), json!(served.runs)),
    ])
}
