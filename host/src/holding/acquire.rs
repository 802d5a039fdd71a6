//! Calling an operation until it holds a claim.

use std::fmt;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::guest::{Arguments, values};
use crate::participant::{Answer, Call, CallError, Ending, Follower, Notice, Participant};
use crate::session::Held;

/// How an attempt to hold a claim ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attempt {
    /// It is held.
    Held {
        /// What is held.
        claim: Held,
        /// What the operation answered.
        answer: Value,
    },
    /// The operation ended without a claim, and none will come of it.
    NotHeld(Value),
    /// The operation went on by itself, and none will come of it any more: its module waits for nothing, as a
    /// candidate whose znode somebody has deleted.
    Idle(Value),
    /// The deadline passed, or the caller withdrew.
    Cancelled,
    /// The operation answered an error of its own.
    Refused(Value),
    /// Another operation of the participant is under way.
    Busy,
    /// The participant ended first.
    Ended(Ending),
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attempt::Held { claim, .. } => {
                write!(f, "holding {} with fence {}", claim.path, claim.fence)
            }
            Attempt::NotHeld(answer) => write!(f, "no claim: it answered {answer}"),
            Attempt::Idle(answer) => write!(
                f,
                "no claim: it answered {answer}, and its module waits for nothing any more; what the module \
                 has told says why"
            ),
            Attempt::Cancelled => f.write_str("cancelled"),
            Attempt::Refused(error) => {
                write!(f, "it answered the error {}", values::error_in_words(error))
            }
            Attempt::Busy => f.write_str("another operation is under way"),
            Attempt::Ended(ending) => ending.fmt(f),
        }
    }
}

/// What an acquire is called with.
#[derive(Debug)]
pub struct Acquire {
    /// The operation and its arguments.
    pub arguments: Arguments,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Cancelled to withdraw.
    pub withdrawn: CancellationToken,
}

/// What is seen of an attempt before it is over.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The participant tells something, but for claims and the end.
    Notice(&'a Notice),
    /// The operation has answered this, holds nothing, and goes on by itself.
    GoesOn(&'a Value),
}

/// Calls an operation and follows the participant until it holds a claim, or never will. An
/// operation that returns at once and goes on by itself, as an election's, is followed on.
///
/// When this completes, nothing that was told before the claim waits in the follower any more.
///
/// # Cancellation
/// Withdraws the call.
pub async fn acquire(
    participant: &Participant,
    follower: &mut Follower,
    acquire: Acquire,
    mut observe: impl FnMut(Seen<'_>),
) -> Attempt {
    let Acquire { arguments, deadline, withdrawn } = acquire;
    let call = Call { arguments, deadline, withdrawn: Some(withdrawn.clone()) };
    let mut call = std::pin::pin!(participant.call(call));
    let answer = loop {
        // Both are cancel-safe: the call is kept across turns, notices stay queued.
        tokio::select! {
            biased;
            answer = &mut call => break answer,
            notice = follower.next() => match heard(notice, &mut observe) {
                Heard::Over(ending) => return Attempt::Ended(ending),
                // The answer says what is held when the operation is over.
                Heard::Held(_) | Heard::Released(_) | Heard::Idle | Heard::Other => {}
            },
        }
    };
    let stands = || Stands {
        holds: participant.holds(),
        is_idle: participant.presence().standing().is_idle,
    };
    conclude(answer, follower, deadline, &withdrawn, stands, &mut observe).await
}

/// What a participant is now, whatever waits in the follower.
struct Stands {
    /// It has a claim that may be relied on.
    holds: bool,
    /// Nothing comes of it unless it is called.
    is_idle: bool,
}

/// What comes of the operation once that is answered.
async fn conclude(
    answer: Result<Answer, CallError>,
    follower: &mut Follower,
    deadline: Option<Instant>,
    withdrawn: &CancellationToken,
    stands: impl Fn() -> Stands,
    observe: &mut impl FnMut(Seen<'_>),
) -> Attempt {
    // Notices from before the answer are queued by now, and the answer is newer than they are. Notices
    // from after it may be queued as well.
    let newest = match told_by_now(follower, observe) {
        Ok(newest) => newest,
        Err(ending) => return Attempt::Ended(ending),
    };
    let answer = match answer {
        Ok(Answer { value: Err(error), .. }) => return Attempt::Refused(error),
        Ok(Answer { value: Ok(answer), claim: Some(claim), .. }) => {
            return Attempt::Held { claim, answer };
        }
        Ok(Answer { value: Ok(answer), watches: false, .. }) => return Attempt::NotHeld(answer),
        // It goes on by itself.
        Ok(Answer { value: Ok(answer), watches: true, .. }) => answer,
        // Its last notice says why, and what it held is held no more.
        Err(CallError::Ended) => return ended(follower, withdrawn, observe).await,
        Err(CallError::Cancelled) => return Attempt::Cancelled,
        Err(CallError::Busy) => return Attempt::Busy,
    };
    if let Some(claim) = newest.held.filter(|_| stands().holds) {
        return Attempt::Held { claim, answer };
    }
    observe(Seen::GoesOn(&answer));
    if newest.is_idle && stands().is_idle {
        return Attempt::Idle(answer);
    }
    let mut given_up = std::pin::pin!(until(deadline, withdrawn));
    loop {
        // Cancel-safe: one is kept across turns, notices stay queued.
        tokio::select! {
            biased;
            () = &mut given_up => return Attempt::Cancelled,
            notice = follower.next() => match heard(notice, observe) {
                // Either may have waited here for so long that it is so no more.
                Heard::Held(claim) if stands().holds => return Attempt::Held { claim, answer },
                Heard::Idle if stands().is_idle => return Attempt::Idle(answer),
                Heard::Over(ending) => return Attempt::Ended(ending),
                Heard::Held(_) | Heard::Released(_) | Heard::Idle | Heard::Other => {}
            },
        }
    }
}

/// How the participant ended that has ended already, as soon as nothing of it is left. The deadline of the call
/// has no say in that: it was for an operation which is over, and not by the deadline.
async fn ended(
    follower: &mut Follower,
    withdrawn: &CancellationToken,
    observe: &mut impl FnMut(Seen<'_>),
) -> Attempt {
    loop {
        // Cancel-safe: notices stay queued.
        tokio::select! {
            biased;
            () = withdrawn.cancelled() => return Attempt::Cancelled,
            notice = follower.next() => if let Heard::Over(ending) = heard(notice, observe) {
                return Attempt::Ended(ending);
            }
        }
    }
}

/// What the notices so far say.
#[derive(Debug, Default)]
struct Newest {
    /// What they told as held last, unless it was given back since.
    held: Option<Held>,
    /// Whether they told that nothing comes of it.
    is_idle: bool,
}

/// What the notices so far say; or how the participant ends.
fn told_by_now(
    follower: &mut Follower,
    observe: &mut impl FnMut(Seen<'_>),
) -> Result<Newest, Ending> {
    let mut newest = Newest::default();
    while let Some(notice) = follower.next().now_or_never() {
        match heard(notice, observe) {
            Heard::Over(ending) => return Err(ending),
            Heard::Held(held) => newest.held = Some(held),
            Heard::Released(path) => drop(newest.held.take_if(|held| held.path == path)),
            Heard::Idle => newest.is_idle = true,
            Heard::Other => {}
        }
    }
    Ok(newest)
}

/// What a notice means for an attempt.
enum Heard {
    Held(Held),
    /// The participant has ended, or has lost what it held and is ending.
    Over(Ending),
    /// What was held at that path is given back.
    Released(String),
    /// It holds nothing, and waits for nothing.
    Idle,
    Other,
}

fn heard(notice: Option<Notice>, observe: &mut impl FnMut(Seen<'_>)) -> Heard {
    match notice {
        Some(Notice::Held(held)) => Heard::Held(held),
        Some(Notice::Released { path }) => Heard::Released(path),
        Some(Notice::Idle) => Heard::Idle,
        Some(Notice::Ended(ending)) => Heard::Over(ending),
        // No later notice says so: a loss is told once.
        Some(Notice::Lost(loss)) => {
            observe(Seen::Notice(&Notice::Lost(loss.clone())));
            Heard::Over(Ending::Lost(loss))
        }
        Some(notice) => {
            observe(Seen::Notice(&notice));
            Heard::Other
        }
        // Its end was told before it was asked to acquire.
        None => Heard::Over(Ending::Left),
    }
}

async fn until(deadline: Option<Instant>, withdrawn: &CancellationToken) {
    match deadline {
        Some(deadline) => {
            // Either of the two is what is waited for.
            tokio::time::timeout_at(deadline, withdrawn.cancelled()).await.ok();
        }
        None => withdrawn.cancelled().await,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Arc, Weak};

    use super::*;
    use crate::participant::{Line, Loss};
    use crate::session::SessionLoss;

    #[tokio::test]
    async fn who_has_ended_is_told_how_though_the_deadline_passes_before_its_clean_up_is_over() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        let (deadline, withdrawn) = (Some(Instant::now()), CancellationToken::new());
        let stands = || Stands { holds: false, is_idle: false };
        {
            let mut observe = |_: Seen<'_>| {};
            let ended = Err(CallError::Ended);
            let attempt =
                conclude(ended, &mut follower, deadline, &withdrawn, stands, &mut observe);
            let mut attempt = pin!(attempt);
            assert!(attempt.as_mut().now_or_never().is_none(), "it is cleaning up");
            let loss = Loss::Session(SessionLoss::Expired);
            line.tell(Notice::Ended(Ending::Lost(loss)));
            let attempt = attempt.await;
            assert!(matches!(attempt, Attempt::Ended(Ending::Lost(_))), "{attempt}");
        }
        // One that goes on by itself is waited for until then.
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        let goes_on = Ok(Answer { value: Ok(Value::from(7)), claim: None, watches: true });
        let mut seen = Vec::new();
        let mut observe = |it: Seen<'_>| seen.push(format!("{it:?}"));
        let attempt = conclude(goes_on, &mut follower, deadline, &withdrawn, stands, &mut observe);
        let attempt = attempt.await;
        assert!(matches!(attempt, Attempt::Cancelled), "{attempt}");
        assert_eq!(seen, ["GoesOn(Number(7))"], "once, when it was answered");
    }

    #[tokio::test]
    async fn what_went_on_by_itself_and_waits_for_nothing_any_more_is_not_waited_for() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        let withdrawn = CancellationToken::new();
        let stands = || Stands { holds: false, is_idle: line.standing().is_idle };
        let goes_on = || Ok(Answer { value: Ok(Value::from(7)), claim: None, watches: true });
        let mut seen = Vec::new();
        let mut observe = |it: Seen<'_>| seen.push(format!("{it:?}"));
        {
            let follower = &mut follower;
            let attempt = conclude(goes_on(), follower, None, &withdrawn, stands, &mut observe);
            let mut attempt = pin!(attempt);
            assert!(attempt.as_mut().now_or_never().is_none(), "it may be woken");
            line.tell(Notice::Emitted { event: "withdrawn".to_owned(), detail: Vec::new() });
            line.tell(Notice::Idle);
            let attempt = attempt.await;
            assert!(matches!(&attempt, Attempt::Idle(answer) if *answer == 7), "{attempt}");
        }
        // It was told before the answer was heard of.
        drop(line.under_way("volunteer", &Arc::default()));
        line.tell(Notice::Idle);
        let attempt =
            conclude(goes_on(), &mut follower, None, &withdrawn, stands, &mut observe).await;
        assert!(matches!(attempt, Attempt::Idle(_)), "{attempt}");
        // It was told of the operation before, and this one may be woken.
        line.tell(Notice::Idle);
        drop(line.under_way("volunteer", &Arc::default()));
        let attempt = conclude(goes_on(), &mut follower, None, &withdrawn, stands, &mut observe);
        assert!(attempt.now_or_never().is_none());
        let [_, told, ..] = seen.as_slice() else { panic!("{seen:?}") };
        assert!(told.contains("withdrawn"), "what it told first is heard first: {told}");
    }

    #[test]
    fn a_loss_that_was_told_behind_the_answer_ends_the_attempt_and_is_observed() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        line.tell(Notice::Waiting { path: "/a".to_owned() });
        line.tell(Notice::Lost(Loss::Session(SessionLoss::Expired)));
        let mut observed = Vec::new();
        let mut observe = |seen: Seen<'_>| match seen {
            Seen::Notice(notice) => observed.push(notice.clone()),
            Seen::GoesOn(answer) => panic!("{answer}"),
        };
        let told = told_by_now(&mut follower, &mut observe);
        assert!(matches!(told, Err(Ending::Lost(Loss::Session(SessionLoss::Expired)))), "{told:?}");
        let [Notice::Waiting { .. }, Notice::Lost(_)] = observed.as_slice() else {
            panic!("{observed:?}")
        };
    }
}
