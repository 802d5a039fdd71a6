//! Those who take part: seeing them, renewing them, ending them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::json_response;
use super::attendance::Attendance;
use super::body::{self, Asked};
use super::caller::Caller;
use super::desk::{Desk, may_see};
use super::lines::millis;
use super::problem::{Operation, Problem};
use super::routes::only;
use crate::clock::Boottime;
use crate::config::spell_duration;
use crate::guest::values::unsigned;
use crate::participant::Presence;
use crate::registry::{By, Member};
use crate::session::{Ahead, Held};

/// `GET /v1/participants`
pub(super) async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Response {
    let members = desk.epochs.registry().list();
    let seen = members.iter().filter(|member| may_see(&caller.credentials, member));
    let participants: Vec<Value> = seen.map(|member| as_json(&desk, member)).collect();
    json_response(StatusCode::OK, &json!({ "participants": participants }))
}

/// `GET /v1/participants/{id}`
pub(super) async fn one(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let member = desk.member(&id, &caller.credentials)?;
    Ok(json_response(StatusCode::OK, &as_json(&desk, &member)))
}

/// The query of a request that takes none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoOptions {}

/// `PUT /v1/participants/{id}/lease`
pub(super) async fn renew(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path((id, part)): Path<(String, String)>,
    Asked(NoOptions {}): Asked<NoOptions>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    only("lease", &desk, &id, &part)?;
    if body::read(request).await? != Value::Null {
        let message = "to renew a lease takes no body: it is as long as the join has said";
        return Err(Problem::bad_request(message));
    }
    let attendance = desk.attendance(&id, &caller.credentials)?;
    if attendance.lease.is_none() {
        let message = "this participant has no lease: its stream keeps it";
        return Err(Problem::bad_request(message));
    }
    // One that is ending is not renewed any more, and must not be believed to be.
    if !attendance.renew() {
        return Err(attendance.end_as_problem(Operation::NotBegun));
    }
    let member = desk.member(&id, &caller.credentials)?;
    Ok(json_response(StatusCode::OK, &as_json(&desk, &member)))
}

/// `DELETE /v1/participants/{id}`
pub(super) async fn end(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let attendance = desk.attendance(&id, &caller.credentials)?;
    attendance.end("its app has ended it");
    attendance.ended.cancelled().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn as_json(desk: &Desk, member: &Member) -> Value {
    let Member { presence, recipe, owner, by, since } = member;
    let standing = presence.standing();
    let held = held_as_json(presence, || desk.deadline(presence));
    // Who gives up what it held stands in no line any more.
    let waiting = standing.waiting.as_ref().filter(|_| standing.held.is_none());
    let state = match &standing.ending {
        Some(_) => "ended",
        None if standing.is_suspended => "suspended",
        None if !held.is_null() => "held",
        // It gives the claim up, and what depends on the claim may still run.
        None if presence.held().is_some() => "leaving",
        // In line, or for something else: a barrier's members stand in no line.
        None if waiting.is_some() || standing.is_blocked => "waiting",
        None => "joined",
    };
    let (by, app) = match by {
        By::Host => ("daemon", None),
        By::App(app) => ("app", Some(app)),
    };
    let behind =
        presence.ahead().map(|Ahead { path, owner }| json!({ "path": path, "owner": owner }));
    json!({
        "participant": &**presence.id(),
        "recipe": recipe,
        "app": app.map(|app| app.name.as_str()),
        "uid": app.and_then(|app| app.uid),
        "pid": app.and_then(|app| app.pid),
        "owner": owner,
        "session": format!("{:#x}", presence.session()),
        "since": humantime::format_rfc3339_millis(*since).to_string(),
        "state": state,
        "waiting": waiting.map(|path| json!({ "path": path, "behind": behind })),
        "held": held,
        "operation": standing.operation,
        "lease": lease_of(desk.attendances.find(presence.id()).as_deref()),
        "by": by,
    })
}

fn lease_of(attendance: Option<&Attendance>) -> Option<String> {
    let lease = attendance?.lease.as_ref()?;
    Some(spell_duration(lease.length))
}

/// What a participant holds, and until when that may be relied on without hearing more; null if it
/// holds nothing.
pub(super) fn held_as_json(
    presence: &Presence,
    deadline: impl FnOnce() -> Option<Boottime>,
) -> Value {
    // The deadline first: what is held after it was asked for is held until then.
    let deadline = deadline();
    let Some((Held { path, fence }, deadline)) = presence.held().zip(deadline) else {
        return Value::Null;
    };
    json!({ "path": path, "fence": unsigned(fence), "deadline-boottime-ms": millis(deadline) })
}
