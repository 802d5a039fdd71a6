//! Calling operations.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use super::answer::json_response;
use super::attendance::{Attendance, Opening, attend};
use super::body::{self, Asked};
use super::caller::Caller;
use super::connection::LAST_WORDS;
use super::desk::Desk;
use super::join::{app_of, arguments, owner_of};
use super::problem::{Operation, Problem};
use super::routes::{no_operation, only};
use crate::participant::{Answer, CallError};

/// What stands behind the question mark.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CallOptions {
    timeout: Option<String>,
}

/// `POST /v1/participants/{id}/{operation}`
pub(super) async fn of_participant(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path((id, operation)): Path<(String, String)>,
    Asked(options): Asked<CallOptions>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    // Asked before the body is read, so that a caller who may not use the recipe cannot fill the memory.
    let attendance = desk.attendance(&id, &caller.credentials)?;
    let (join, _) = desk.recipe(&attendance.recipe, &caller.credentials)?;
    let given = body::read(request).await?;
    let deadline = body::deadline(options.timeout.as_deref())?;
    if join.module.interface().operation(&operation).is_none()
        && let Some(problem) = no_operation(&operation)
    {
        return Err(problem);
    }
    let arguments = arguments(&join.module, &operation, &given)?;
    drop(given);
    let kept = attendance.open_call()?;
    let answer = attendance.call(Opening { arguments, deadline }).await;
    // The whole lease begins with the answer, unless the participant is ending.
    drop(kept);
    attendance.renew();
    respond(answer, &attendance).await
}

/// `DELETE /v1/participants/{id}/operation`: what is under way is withdrawn, and not waited for.
/// `DELETE /v1/participants/{id}/dependent`: nothing depends on the claim any more.
pub(super) async fn cancel(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path((id, part)): Path<(String, String)>,
) -> Result<Response, Problem> {
    if part == "dependent" {
        desk.attendance(&id, &caller.credentials)?.end_dependence();
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    only("operation", &desk, &id, &part)?;
    desk.attendance(&id, &caller.credentials)?.withdraw();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/recipes/{recipe}/call/{operation}`: a participant joins for one operation.
pub(super) async fn of_recipe(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path((recipe, operation)): Path<(String, String)>,
    Asked(options): Asked<CallOptions>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (join, _) = desk.recipe(&recipe, &caller.credentials)?;
    let given = body::read(request).await?;
    let deadline = body::deadline(options.timeout.as_deref())?;
    let arguments = arguments(&join.module, &operation, &given)?;
    drop(given);
    let app = app_of(&caller, None)?;
    let owner = owner_of(join, &app);
    desk.until_certain(deadline).await?;
    let attending = desk.enter(recipe, &app, owner, |attendance| attendance).await?;
    let attendance = Arc::clone(&attending.attendance);
    // Whatever becomes of this request, the participant leaves.
    let leaving = attendance.leaving.clone().drop_guard();
    desk.tasks.spawn("attendance", attend(Box::new(attending)));
    let answer = attendance.call(Opening { arguments, deadline }).await;
    let response = respond(answer, &attendance).await;
    drop(leaving);
    attendance.ended.cancelled().await;
    response
}

async fn respond(
    answer: Result<Answer, CallError>,
    attendance: &Attendance,
) -> Result<Response, Problem> {
    match answer {
        Ok(Answer { value: Ok(value), .. }) => Ok(json_response(StatusCode::OK, &value)),
        Ok(Answer { value: Err(error), .. }) => Err(refusal(&error, attendance)),
        Err(error) => Err(unanswered(&error, attendance).await),
    }
}

/// What a call is told that was not answered. A call that has ended its participant is told how the
/// participant ended, as soon as that is known.
pub(super) async fn unanswered(error: &CallError, attendance: &Attendance) -> Problem {
    if matches!(error, CallError::Ended) {
        // What depends on the claim may hold the end up; then the caller is told that it has ended.
        tokio::time::timeout(LAST_WORDS, attendance.ended.cancelled()).await.ok();
    }
    Problem::of_call(error, || attendance.end_as_problem(Operation::UnderWay))
}

/// What a module's error is to its caller: the end of the participant, if that is why it was withdrawn.
pub(super) fn refusal(error: &Value, attendance: &Attendance) -> Problem {
    match attendance.is_withdrawn(error) {
        true => attendance.end_as_problem(Operation::UnderWay),
        false => Problem::refused(error),
    }
}
