//! The host itself.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::json_response;
use super::caller::Caller;
use super::desk::Desk;
use super::openapi;
use super::problem::Problem;
use crate::config::spell_duration;
use crate::session::{Session, SessionState};

/// `GET /healthz`: whether the process serves.
pub(super) async fn healthz() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

/// `GET /readyz`: whether a session is open, be it in doubt.
pub(super) async fn readyz(State(desk): State<Arc<Desk>>) -> Result<Response, Problem> {
    let is_ready = desk.epochs.sessions().iter().any(|session| !session.is_lost());
    if desk.stopping.is_cancelled() {
        return Err(Problem::stopping());
    }
    match is_ready {
        true => Ok(json_response(StatusCode::OK, &json!({ "status": "ready" }))),
        false => Err(Problem::unavailable("there is no session with ZooKeeper: its log says why")),
    }
}

/// `GET /v1/host`
pub(super) async fn about(State(desk): State<Arc<Desk>>) -> Response {
    let sessions = desk.epochs.sessions();
    let sessions: Vec<Value> = sessions.iter().map(|session| session_as_json(session)).collect();
    let about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "sessions": sessions,
    });
    json_response(StatusCode::OK, &about)
}

fn session_as_json(session: &Session) -> Value {
    let state = match *session.state().borrow() {
        SessionState::Connected => "connected",
        SessionState::Suspended => "suspended",
        SessionState::Lost(_) => "lost",
    };
    json!({
        "session": format!("{:#x}", session.id()),
        "timeout": spell_duration(session.timing().timeout()),
        "state": state,
        "participants": *session.participants().borrow(),
    })
}

/// `GET /v1/openapi.json`
pub(super) async fn describe(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Response {
    let recipes = desk.recipes(&caller.credentials).map(|(join, _)| join);
    json_response(StatusCode::OK, &openapi::document(recipes))
}
