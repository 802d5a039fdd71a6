//! Calls to a participant's operations.

use std::future::pending;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::guest::Arguments;
use crate::session::Held;

/// One call of an operation.
#[derive(Debug)]
pub struct Call {
    /// The operation, with its arguments checked against the module's types.
    pub arguments: Arguments,
    /// When the caller stops waiting. The module then cleans up and returns.
    pub deadline: Option<Instant>,
    /// Cancelled by a caller that withdraws and waits to hear what became of it. One that does not
    /// wait drops the call.
    pub withdrawn: Option<CancellationToken>,
}

/// How an operation that ran to its end ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it returned; the error case of a `result` is `Err`.
    pub value: Result<Value, Value>,
    /// What the participant holds now, whichever operation it was that claimed it.
    pub claim: Option<Held>,
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
    /// The caller's deadline passed, or the caller withdrew. Nothing of the operation is held or stands in
    /// line; what it was to write for good may have been written.
    #[error("the call was cancelled, or its deadline passed")]
    Cancelled,
    /// The participant has ended, or ended meanwhile; its last notice says why.
    #[error("the participant has ended")]
    Ended,
}

/// Where a call is answered.
pub(crate) type Reply = oneshot::Sender<Result<Answer, CallError>>;

/// A call on its way to the participant's task.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) reply: Reply,
}

impl Request {
    /// Whether the caller does not want the answer any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.call.is_withdrawn() || self.reply.is_closed()
    }
}

impl Call {
    /// Whether its deadline has passed, or its caller has said that it withdraws.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.as_ref().is_some_and(CancellationToken::is_cancelled)
            || self.deadline.is_some_and(|it| Instant::now() >= it)
    }

    /// Completes when its deadline has passed, or its caller has said that it withdraws.
    pub(crate) fn until_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let (withdrawn, deadline) = (self.withdrawn.clone(), self.deadline);
        async move {
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            match withdrawn {
                Some(withdrawn) => drop(withdrawn.run_until_cancelled(late).await),
                None => late.await,
            }
        }
    }

    /// Completes when the caller does not want the answer any more, which it also shows by being
    /// gone from `reply`.
    pub(crate) async fn until_withdrawn(&self, reply: &mut Reply) {
        let withdrawn = async {
            match &self.withdrawn {
                // Boxed, here and below: most have none, and a future keeps room for every branch.
                Some(withdrawn) => Box::pin(withdrawn.cancelled()).await,
                None => pending().await,
            }
        };
        let late = async {
            match self.deadline {
                Some(deadline) => Box::pin(sleep_until(deadline)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = reply.closed() => {}
            () = withdrawn => {}
            () = late => {}
        }
    }
}
