//! What goes wrong between an app and the host, as HTTP.
//!
//! The body of every error is a JSON object with `error`. With status 409 that is the operation's own
//! error, as its module answered it; with any other it is a word of the host's, and `message` says in
//! a sentence what to do.

use axum::http::StatusCode;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::answer::json_response;
use crate::epochs::JoinError;
use crate::participant::{CallError, Ending};

/// What went wrong, as it is told to the app.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    body: Value,
    /// The header that HTTP asks for with this status.
    header: Option<(HeaderName, HeaderValue)>,
}

/// Whether the one who is told of a participant's end had called an operation of that participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Nothing of it was done.
    NotBegun,
    /// Nobody knows what of it was done: the participant may have ended between a write and its reply.
    UnderWay,
}

impl Operation {
    /// What the one who is told can do. Who calls a recipe has never joined, so nobody whose operation was
    /// under way is told to join again.
    fn remedy(self) -> &'static str {
        match self {
            Operation::NotBegun => "join again",
            Operation::UnderWay => {
                "the operation was under way, and what it was to write for good may have been written, so \
                 look before it is called again"
            }
        }
    }
}

impl Problem {
    fn new(status: StatusCode, error: &str, message: impl Into<String>) -> Self {
        Problem::with_body(status, json!({ "error": error, "message": message.into() }))
    }

    fn with_body(status: StatusCode, body: Value) -> Self {
        Problem { status, body, header: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", message)
    }

    pub(super) fn unauthorized() -> Self {
        let message = "show the token: `Authorization: Bearer <what is in the token-file>`";
        Problem {
            header: Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            ..Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
        }
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// Another word than [`not_found`](Self::not_found): who calls a participant again and again must not
    /// take this for the participant's end, after which it joins anew.
    pub(super) fn no_operation(message: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "no-operation", message)
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "this path has other methods: see /v1/openapi.json";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message)
    }

    /// As [`method_not_allowed`](Self::method_not_allowed), of a path whose methods the router does not
    /// know.
    pub(super) fn other_methods(allow: &'static str) -> Self {
        let message =
            format!("this path has other methods, which are {allow}: see /v1/openapi.json");
        Problem {
            header: Some((header::ALLOW, HeaderValue::from_static(allow))),
            ..Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message)
        }
    }

    pub(super) fn too_slow() -> Self {
        let message = "the body did not come in time; nothing was done";
        Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", message)
    }

    pub(super) fn too_large(most: usize) -> Self {
        let message = format!("a body may have {most} bytes; nothing was done");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    pub(super) fn stopping() -> Self {
        Problem::unavailable("this daemon is stopping")
    }

    /// What the operation itself answered.
    pub(super) fn refused(error: &Value) -> Self {
        Problem::with_body(StatusCode::CONFLICT, json!({ "error": error }))
    }

    /// The participant has ended. `ending` says how, and `why` says why it left, where these are known.
    pub(super) fn ended(ending: Option<&Ending>, why: Option<&str>, operation: Operation) -> Self {
        let remedy = operation.remedy();
        match ending {
            Some(Ending::Failed(fault)) => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "module-failed",
                format!("the module failed: {fault}"),
            ),
            Some(ending @ Ending::Lost(loss)) => {
                let message = format!("the participant has ended, {ending}; {remedy}");
                let body = json!({
                    "error": "ended",
                    "message": message,
                    "reason": loss.reason(),
                    "cause": loss.cause(),
                });
                Problem::with_body(StatusCode::GONE, body)
            }
            Some(Ending::Left) | None => {
                let message = match why {
                    Some(why) => format!("the participant has ended, as {why}; {remedy}"),
                    None => format!("the participant has ended; {remedy}"),
                };
                Problem::new(StatusCode::GONE, "ended", message)
            }
        }
    }

    /// Why there is no answer to a call; `ended` says what is told where its participant has ended.
    pub(super) fn of_call(error: &CallError, ended: impl FnOnce() -> Problem) -> Self {
        match error {
            CallError::Busy => Problem::new(StatusCode::LOCKED, "busy", error.to_string()),
            CallError::Cancelled => Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "timed-out",
                "the timeout passed, or somebody cancelled the operation: nothing of it is held or \
                 stands in line; what it was to write for good may have been written, so look \
                 before it is called again",
            ),
            CallError::Ended => ended(),
        }
    }
}

impl From<JoinError> for Problem {
    fn from(error: JoinError) -> Self {
        match &error {
            JoinError::Unknown(_) => {
                Problem::not_found(format!("{error}: GET /v1/recipes tells those that there are"))
            }
            _ => Problem::unavailable(error.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.body);
        response.headers_mut().extend(self.header);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::participant::Loss;
    use crate::session::SessionLoss;

    #[test]
    fn who_called_is_told_that_it_may_have_happened_and_who_did_not_to_join_again() {
        let lost = Ending::Lost(Loss::Session(SessionLoss::Expired));
        for ending in [None, Some(&Ending::Left), Some(&lost)] {
            for why in [None, Some("the daemon stops")] {
                let told = |operation| {
                    let problem = Problem::ended(ending, why, operation);
                    assert_eq!(problem.status, StatusCode::GONE);
                    problem.body["message"].as_str().unwrap().to_owned()
                };
                let (late, called) = (told(Operation::NotBegun), told(Operation::UnderWay));
                assert!(late.ends_with("; join again"), "{late}");
                assert!(called.contains("may have been written, so look"), "{called}");
                assert!(!called.contains("join again"), "{called}");
            }
        }
    }
}
