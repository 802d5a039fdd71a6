//! Joining a recipe.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::json_response;
use super::attendance::{Attendance, Opening, Stream, attend};
use super::body::{self, Asked};
use super::caller::{Caller, Credentials};
use super::desk::Desk;
use super::lease::Lease;
use super::lines::{interval, lines};
use super::operations::{refusal, unanswered};
use super::participants::held_as_json;
use super::problem::Problem;
use crate::config::spell_duration;
use crate::guest::{Arguments, Module};
use crate::participant::{Answer, Join};
use crate::plain_text;
use crate::registry::App;

/// What a join can say.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct JoinRequest {
    call: Option<Value>,
    timeout: Option<String>,
    lease: Option<String>,
    #[serde(default)]
    detached: bool,
    app: Option<String>,
    owner: Option<String>,
}

/// What stands behind the question mark.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct JoinOptions {
    alive: Option<String>,
    #[serde(default)]
    dependent: bool,
}

/// `POST /v1/recipes/{recipe}/join`
pub(super) async fn join(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(recipe): Path<String>,
    Asked(options): Asked<JoinOptions>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    // Asked before the body is read, so that a caller who may not use the recipe cannot fill the memory.
    let (join, _) = desk.recipe(&recipe, &caller.credentials)?;
    let asked = body::read_as(request).await?;
    let JoinRequest { call, timeout, lease, detached, app, owner } = asked;
    let alive = interval(options.alive.as_deref())?;
    let lease = lease.map(|text| body::duration("lease", &text)).transpose()?;
    let opening = match call {
        Some(call) => Some(Opening {
            arguments: called(&call, &join.module)?,
            deadline: body::deadline(timeout.as_deref())?,
        }),
        None if timeout.is_some() => {
            return Err(Problem::bad_request("`timeout` is for `call`, which is not given"));
        }
        None => None,
    };
    if detached && lease.is_none() {
        let message = "a participant without a stream needs a `lease`, as \"30s\"";
        return Err(Problem::bad_request(message));
    }
    if detached && options.dependent {
        let message = "`dependent` is for an app that is told on a stream, and `detached` has none";
        return Err(Problem::bad_request(message));
    }
    let app = app_of(&caller, app)?;
    let owner = match owner {
        Some(owner) => bounded("owner", owner)?,
        None => owner_of(join, &app),
    };
    let with = |attendance: Attendance| {
        let attendance = attendance.with_lease(lease.map(Lease::new));
        if options.dependent { attendance.with_dependence() } else { attendance }
    };
    desk.until_certain(opening.as_ref().and_then(|opening| opening.deadline)).await?;
    let mut attending = desk.enter(recipe, &app, owner, with).await?;
    let attendance = Arc::clone(&attending.attendance);
    if detached {
        desk.tasks.spawn("attendance", attend(Box::new(attending)));
        return answer_detached(&attendance, opening).await;
    }
    attendance.renew();
    let (lines, response) = lines();
    attending.opening = opening;
    let patience = attendance.participant.session().timing().timeout();
    attending.stream = Some(Stream { lines, alive, patience, hang_up: caller.hang_up.clone() });
    desk.tasks.spawn("attendance", attend(Box::new(attending)));
    Ok(response)
}

/// Answers when the call has been answered. Until then the connection keeps the participant.
async fn answer_detached(
    attendance: &Arc<Attendance>,
    opening: Option<Opening>,
) -> Result<Response, Problem> {
    let unless_answered = attendance.leaving.clone().drop_guard();
    let presence = attendance.participant.presence();
    let value = match opening {
        Some(opening) => match attendance.call(opening).await {
            Ok(Answer { value: Ok(value), .. }) => value,
            Ok(Answer { value: Err(error), .. }) => {
                return Err(left(attendance, refusal(&error, attendance)).await);
            }
            Err(error) => {
                let problem = unanswered(&error, attendance).await;
                return Err(left(attendance, problem).await);
            }
        },
        None => Value::Null,
    };
    attendance.renew();
    unless_answered.disarm();
    let lease = attendance.lease.as_ref().map(|lease| spell_duration(lease.length));
    let body = json!({
        "participant": attendance.participant.id(),
        "recipe": attendance.recipe,
        "value": value,
        "held": held_as_json(&presence, || attendance.deadline(&presence)),
        "lease": lease,
    });
    Ok(json_response(StatusCode::CREATED, &body))
}

/// The problem, once nothing of the participant is left.
async fn left(attendance: &Attendance, problem: Problem) -> Problem {
    attendance.end("the call that it joined with was refused, or was not answered");
    attendance.ended.cancelled().await;
    problem
}

/// The call: an operation's name, or an object of its name and its arguments.
fn called(call: &Value, module: &Module) -> Result<Arguments, Problem> {
    let (operation, given) = match call {
        Value::String(operation) => (operation, &Value::Null),
        Value::Object(object) => match (object.iter().next(), object.len()) {
            (Some(called), 1) => called,
            _ => return Err(Problem::bad_request("`call` names one operation")),
        },
        _ => {
            let message = "`call` is an operation's name, or {\"<operation>\": {…arguments}}";
            return Err(Problem::bad_request(message));
        }
    };
    arguments(module, operation, given)
}

/// The arguments of an operation, checked against its types.
pub(super) fn arguments(
    module: &Module,
    operation: &str,
    given: &Value,
) -> Result<Arguments, Problem> {
    module.arguments(operation, given).map_err(|errors| {
        match module.interface().operation(operation) {
            Some(_) => Problem::bad_request(format!("{operation}: {errors}")),
            None => Problem::no_operation(errors.to_string()),
        }
    })
}

/// Who the app is: what it says, or its process. Where the host cannot see the process it is the connection,
/// so that two apps are not taken for one.
pub(super) fn app_of(caller: &Caller, name: Option<String>) -> Result<App, Problem> {
    let Caller { credentials, connection, .. } = caller;
    let (uid, pid) = (credentials.uid(), credentials.pid());
    let name = match (name, credentials) {
        (Some(name), _) => bounded("app", name)?,
        (None, Credentials::Local { pid: Some(pid), .. }) => format!("pid {pid}"),
        (None, Credentials::Local { pid: None, .. }) => format!("connection {connection}"),
        (None, Credentials::Remote) => format!("remote connection {connection}"),
    };
    Ok(App { name, uid, pid })
}

/// Who asks, in words for other contenders.
pub(super) fn owner_of(join: &Join, app: &App) -> String {
    let host = rustix::system::uname();
    format!("{}@{} {}", join.recipe, host.nodename().to_string_lossy(), app.name)
}

fn bounded(key: &str, text: String) -> Result<String, Problem> {
    match plain_text::check_name(&text) {
        Ok(()) => Ok(text),
        Err(name) => Err(Problem::bad_request(format!("`{key}` is {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn app(credentials: &Credentials, connection: u64, name: Option<&str>) -> App {
        let (credentials, hang_up) = (credentials.clone(), CancellationToken::new());
        let caller = Caller { credentials, connection, hang_up };
        app_of(&caller, name.map(str::to_owned)).unwrap()
    }

    #[test]
    fn an_app_is_its_process_or_its_connection_unless_it_has_a_name() {
        let local = |pid| Credentials::Local { uid: 7, gid: 7, pid, process: None };
        let (seen, unseen) = (local(Some(12)), local(None));
        assert_eq!(app(&seen, 1, None), app(&seen, 2, None));
        assert_ne!(app(&seen, 1, None), app(&local(Some(13)), 1, None));
        for credentials in [unseen.clone(), Credentials::Remote] {
            assert_eq!(app(&credentials, 1, None), app(&credentials, 1, None));
            assert_ne!(app(&credentials, 1, None), app(&credentials, 2, None));
            assert_eq!(app(&credentials, 1, Some("me")), app(&credentials, 2, Some("me")));
        }
        assert_ne!(app(&unseen, 1, None).name, app(&Credentials::Remote, 1, None).name);
    }
}
