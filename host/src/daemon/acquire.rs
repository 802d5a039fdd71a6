//! Calling an operation until it holds a claim.

use std::fmt;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held_command::Held;
use crate::guest::Arguments;
use crate::participant::{Call, CallError, Ending, Follower, Loss, Notice, Participant};

/// How an attempt to hold a claim ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attempt {
    /// It is held.
    Held(Held),
    /// The operation ended without a claim, and none will come of it.
    NotHeld(Value),
    /// The deadline passed, or the caller withdrew.
    Cancelled,
    /// The operation answered an error of its own.
    Refused(Value),
    /// Another operation of the participant is under way.
    Busy,
    /// The claim, or the session, was lost before it was of use.
    Lost(Loss),
    /// The module failed.
    Failed(String),
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attempt::Held(held) => write!(f, "holding {} with fence {}", held.path, held.fence),
            Attempt::NotHeld(answer) => write!(f, "no claim: it answered {answer}"),
            Attempt::Cancelled => f.write_str("cancelled"),
            Attempt::Refused(error) => write!(f, "it answered the error {error}"),
            Attempt::Busy => f.write_str("another operation is under way"),
            Attempt::Lost(loss) => write!(f, "lost: {loss}"),
            Attempt::Failed(fault) => write!(f, "the module failed: {fault}"),
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

/// Calls an operation and follows the participant until it holds a claim, or never will. An
/// operation that returns at once and goes on by itself, as an election's, is followed on.
///
/// `observe` sees every notice but the one that ends the attempt.
///
/// # Cancellation
/// Withdraws the call.
pub async fn acquire(
    participant: &Participant,
    follower: &mut Follower,
    acquire: Acquire,
    mut observe: impl FnMut(&Notice),
) -> Attempt {
    let Acquire { arguments, deadline, withdrawn } = acquire;
    let call = Call { arguments, deadline, withdrawn: Some(withdrawn.clone()) };
    let mut call = std::pin::pin!(participant.call(call));
    let mut answered = false;
    // A claim may have several znodes. The newest that is not given up stands for it.
    let mut held: Vec<Held> = Vec::new();
    loop {
        // All are cancel-safe: the call is kept across turns, notices stay queued.
        tokio::select! {
            biased;
            () = until(deadline, &withdrawn), if answered => return Attempt::Cancelled,
            notice = follower.next() => match notice {
                Some(Notice::Held { path, fence }) => {
                    let claim = Held { path, fence };
                    if answered {
                        return Attempt::Held(claim);
                    }
                    held.retain(|part| part.path != claim.path);
                    held.push(claim);
                }
                Some(Notice::Released { path }) => held.retain(|part| part.path != path),
                Some(Notice::Ended(ending)) => return ended(ending),
                Some(notice) => observe(&notice),
                None => return Attempt::Failed("the participant is gone".to_owned()),
            },
            answer = &mut call, if !answered => match answer {
                Ok(answer) => match (answer.value, held.pop()) {
                    (Err(error), _) => return Attempt::Refused(error),
                    (Ok(_), Some(claim)) if answer.holds => return Attempt::Held(claim),
                    // The notice is on its way, or will come.
                    (Ok(_), _) if answer.holds || answer.watches => answered = true,
                    (Ok(value), _) => return Attempt::NotHeld(value),
                },
                Err(CallError::Cancelled) => return Attempt::Cancelled,
                Err(CallError::Busy) => return Attempt::Busy,
                // The last notice says why.
                Err(CallError::Ended) => answered = true,
            },
        }
    }
}

fn ended(ending: Ending) -> Attempt {
    match ending {
        Ending::Left => Attempt::Cancelled,
        Ending::Lost(loss) => Attempt::Lost(loss),
        Ending::Failed(fault) => Attempt::Failed(fault),
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
