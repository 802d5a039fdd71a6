//! Calls to a participant's operations.

use std::future::pending;
use std::sync::Weak;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::mailbox::Mailbox;
use crate::guest::Arguments;
use crate::session::{Held, Seat};

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
    /// The participant has ended, or ended meanwhile; its last notice says why. What the operation was to
    /// write for good may have been written.
    #[error("the participant has ended")]
    Ended,
}

/// An answer on its way to the caller.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(super) answer: Answer,
    /// None if the participant holds nothing, or held the same before the call.
    pub(super) news: Option<News>,
}

impl Answered {
    /// The answer, which its caller hears now.
    pub(super) fn heard(self) -> Answer {
        if let Some(mut news) = self.news {
            news.mailbox = None;
        }
        self.answer
    }
}

/// The news that the participant holds something. Where the news is dropped before the caller hears it, on
/// its way or because the caller does not look, the participant leaves: a claim that nobody knows of must
/// not stay held. If something depends on the claim, somebody has heard of it from the followers.
#[derive(Debug)]
pub(super) struct News {
    mailbox: Option<Mailbox<Box<Request>>>,
    seat: Weak<Seat>,
}

impl News {
    /// Of the participant that has that mailbox and that seat.
    pub(super) fn new(mailbox: Mailbox<Box<Request>>, seat: Weak<Seat>) -> Self {
        News { mailbox: Some(mailbox), seat }
    }
}

impl Drop for News {
    fn drop(&mut self) {
        let Some(mailbox) = self.mailbox.take() else { return };
        if !self.seat.upgrade().is_some_and(|seat| seat.is_depended_on()) {
            mailbox.leave();
        }
    }
}

/// Where a call is answered.
pub(crate) type Reply = oneshot::Sender<Result<Answered, CallError>>;

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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::mailbox::{Calls, mailbox};
    use super::*;

    type Asked = Calls<Box<Request>>;

    fn answered(calls: &Asked) -> Answered {
        let claim = Some(Held { path: "/a".to_owned(), fence: 1 });
        let answer = Answer { value: Ok(Value::Null), claim, watches: false };
        Answered { answer, news: Some(News::new(calls.mailbox(), Weak::new())) }
    }

    fn is_to_leave(calls: &Asked) -> bool {
        calls.until_leave().now_or_never().is_some()
    }

    #[tokio::test]
    async fn what_was_heard_stays_held() {
        let (_mailbox, calls) = mailbox();
        let (reply, answer): (Reply, _) = oneshot::channel();
        reply.send(Ok(answered(&calls))).unwrap();
        assert_eq!(answer.await.unwrap().unwrap().heard().claim.map(|claim| claim.fence), Some(1));
        assert!(!is_to_leave(&calls));
    }

    #[test]
    fn what_is_answered_to_a_caller_that_goes_without_a_look_is_given_up() {
        let (_mailbox, calls) = mailbox();
        let (reply, answer): (Reply, _) = oneshot::channel();
        reply.send(Ok(answered(&calls))).unwrap();
        assert!(!is_to_leave(&calls), "it may yet look");
        drop(answer);
        assert!(is_to_leave(&calls));
    }

    #[test]
    fn what_is_answered_to_a_caller_that_is_gone_is_given_up() {
        let (_mailbox, calls) = mailbox();
        let (reply, answer): (Reply, _) = oneshot::channel();
        drop(answer);
        drop(reply.send(Ok(answered(&calls))).unwrap_err());
        assert!(is_to_leave(&calls));
    }
}
