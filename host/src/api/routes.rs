//! Which request goes where.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::desk::Desk;
use super::gate::{self, Gate};
use super::problem::Problem;
use super::{events, host, join, operations, participants, recipes, unread};

/// All that is served.
pub(super) fn router(desk: Arc<Desk>, gate: Option<Arc<Gate>>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(host::healthz))
        .route("/readyz", get(host::readyz))
        .route("/v1/host", get(host::about))
        .route("/v1/openapi.json", get(host::describe))
        .route("/v1/events", get(events::of_all))
        .route("/v1/logs", get(events::log))
        .route("/v1/recipes", get(recipes::list))
        .route("/v1/recipes/{recipe}", get(recipes::one))
        .route("/v1/recipes/{recipe}/join", post(join::join))
        .route("/v1/recipes/{recipe}/call/{operation}", post(operations::of_recipe))
        .route("/v1/participants", get(participants::list))
        .route("/v1/participants/{id}", get(participants::one).delete(participants::end))
        // An operation of any name is posted to, so the other parts have other methods.
        .route(
            "/v1/participants/{id}/{part}",
            post(operations::of_participant)
                .get(events::of_participant)
                .put(participants::renew)
                .delete(operations::cancel)
                .fallback(no_method),
        )
        .fallback(async || Problem::not_found("there is no such path: see /v1/openapi.json"))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .with_state(desk);
    // Around all of it, so that nothing is told to one who may not pass.
    let gated = routes.layer(middleware::from_fn_with_state(gate, gate::pass));
    let gated = gated.layer(middleware::map_response(in_json));
    gated.layer(middleware::from_fn(unread::read_rest))
}

/// Refuses a part of a participant that has not the method of `known`.
pub(super) fn only(known: &str, desk: &Desk, id: &str, part: &str) -> Result<(), Problem> {
    if part == known { Ok(()) } else { Err(wrong_method(desk, id, part)) }
}

/// The error for a POST to a part of a participant that is no operation but has other methods. A module may
/// have an operation of that name, which is called then.
pub(super) fn no_operation(part: &str) -> Option<Problem> {
    methods(part).map(|[own, _]| Problem::other_methods(own))
}

/// A method that no part of a participant has.
async fn no_method(
    State(desk): State<Arc<Desk>>,
    Path((id, part)): Path<(String, String)>,
) -> Problem {
    wrong_method(&desk, &id, &part)
}

/// The error for a method that this part of a participant has not.
fn wrong_method(desk: &Desk, id: &str, part: &str) -> Problem {
    let member = desk.epochs.registry().find(id);
    let join = member.and_then(|member| desk.epochs.recipe(&member.recipe));
    let is_operation = join.is_some_and(|join| join.module.interface().operation(part).is_some());
    Problem::other_methods(match methods(part) {
        Some([_, with_post]) if is_operation => with_post,
        Some([own, _]) => own,
        // It can be an operation's name alone.
        None => "POST",
    })
}

/// The methods of a part of a participant that need not be an operation, and the same with that of an
/// operation of its name.
fn methods(part: &str) -> Option<[&'static str; 2]> {
    match part {
        "events" => Some(["GET, HEAD", "GET, HEAD, POST"]),
        "lease" => Some(["PUT", "POST, PUT"]),
        "operation" | "dependent" => Some(["DELETE", "DELETE, POST"]),
        _ => None,
    }
}

/// What the library refuses by itself, a path that is no UTF-8, becomes an error as all others.
async fn in_json(response: Response) -> Response {
    let is_json = response.headers().contains_key(header::CONTENT_TYPE)
        && !response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|it| it.as_bytes().starts_with(b"text/"));
    if !response.status().is_client_error() || is_json {
        return response;
    }
    Problem::bad_request("the path cannot be read: is it UTF-8, percent-encoded?").into_response()
}
