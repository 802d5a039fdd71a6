//! How a host call that talks to the ensemble ends.

use std::future::{Future, pending};
use std::pin::Pin;

use super::bindings::wok::recipe::zookeeper::Error;
use super::scope::OperationScope;
use crate::session::Failure;

/// The outcome of a request, unless the operation is cancelled first.
///
/// # Cancellation
/// The request is dropped when the operation is cancelled; the session room answers for what it
/// leaves behind.
pub(super) async fn unless_cancelled<T>(
    scope: &OperationScope,
    request: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<T, Failed> {
    if scope.is_cancelled() {
        return Err(Failed::Cancelled);
    }
    let answer = tokio::select! {
        biased;
        outcome = request => tell(outcome),
        () = scope.cancelled() => Some(Err(Failed::Cancelled)),
    };
    // Not `settled`: a future keeps room for what it awaits.
    match answer {
        Some(answer) => answer,
        None => pending().await,
    }
}

/// The outcome of a request. When the session is lost it never comes: the participant's task learns
/// of the loss by itself and drops the call, so that no code of a component runs after it.
pub(super) async fn settled<T>(outcome: Result<T, Failure>) -> Result<T, Failed> {
    match tell(outcome) {
        Some(answer) => answer,
        None => pending().await,
    }
}

fn tell<T>(outcome: Result<T, Failure>) -> Option<Result<T, Failed>> {
    match outcome {
        Err(Failure::SessionLost) => None,
        outcome => Some(outcome.map_err(Failed::Request)),
    }
}

/// Why a request has no reply.
#[derive(Debug)]
pub(super) enum Failed {
    /// The caller withdrew.
    Cancelled,
    /// The session room's reason.
    Request(Failure),
}

impl Failed {
    /// Which part of a `multi` it is about.
    pub(super) fn index(&self) -> Option<u32> {
        match self {
            Failed::Request(Failure::Refused { index, .. }) => {
                index.and_then(|index| u32::try_from(index).ok())
            }
            _ => None,
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Cancelled => Error::Cancelled,
            Failed::Request(failure) => failure.into(),
        }
    }
}

/// The session answered something that was not asked: a bug of the host, which ends the component.
pub(super) fn mismatch(request: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("host bug: {request} was answered with another request's reply"))
}
