//! Calls to a participant's operations.

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::guest::Arguments;

/// One call of an operation.
#[derive(Debug)]
pub struct Call {
    /// The operation, with its arguments checked against the module's types.
    pub arguments: Arguments,
    /// When the caller stops waiting. The module then cleans up and returns.
    pub deadline: Option<Instant>,
    /// Cancelled when the caller withdraws.
    pub withdrawn: CancellationToken,
}

/// How an operation that ran to its end ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it returned; the error case of a `result` is `Err`.
    pub value: Result<Value, Value>,
    /// Whether the participant now has a claim.
    pub holds: bool,
    /// Whether it has watches that may wake it, so that more may come of the operation.
    pub watches: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Another operation of this participant is under way.
    #[error(
        "the participant is busy with another operation: join a second participant to do two \
         things at a time"
    )]
    Busy,
    /// The caller's deadline passed, or the caller withdrew, and nothing of the operation is left.
    #[error("the call was cancelled, or its deadline passed")]
    Cancelled,
    /// The participant has ended, or ended meanwhile; its last notice says why.
    #[error("the participant has ended")]
    Ended,
}

/// A call on its way to the participant's task.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) reply: oneshot::Sender<Result<Answer, CallError>>,
}

impl Request {
    /// Completes when the caller does not want the answer any more.
    pub(crate) async fn until_withdrawn(call: &Call) {
        match call.deadline {
            Some(deadline) => {
                let timed = tokio::time::timeout_at(deadline, call.withdrawn.cancelled());
                timed.await.ok();
            }
            None => call.withdrawn.cancelled().await,
        }
    }
}
