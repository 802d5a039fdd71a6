//! A call of an operation by a participant of the daemon's, and what comes of it.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;

use super::exit::Failure;
use super::joining::{self, stopping};
use super::output::Printer;
use crate::client::{Client, Event, Join, Joined, Purpose};
use crate::guest::values;
use crate::session::Held;

/// What is called.
#[derive(Debug)]
pub(super) struct DaemonCall {
    pub(super) recipe: String,
    pub(super) operation: String,
    pub(super) arguments: Value,
    pub(super) wait: Option<Duration>,
    pub(super) owner: Option<String>,
}

/// What comes of a call. All else that is told is printed.
pub(super) enum Came {
    /// A claim is held.
    Held(Held),
    /// It is given up.
    Released,
    /// The operation has answered.
    Answered {
        value: Value,
        /// Whether a claim may still come of it; it is not known of older daemons.
        goes_on: Option<bool>,
    },
}

impl DaemonCall {
    /// What is called, in words.
    pub(super) fn in_words(&self) -> String {
        format!("{} {}", self.recipe, self.operation)
    }

    /// Joins the recipe and has the operation called. A signal withdraws it.
    pub(super) async fn join(
        &self,
        client: &Client,
        purpose: Purpose,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Joined, Failure> {
        let join = Join {
            recipe: self.recipe.clone(),
            operation: self.operation.clone(),
            arguments: self.arguments.clone(),
            timeout: self.wait,
            owner: self.owner.clone(),
            purpose,
        };
        // Of a join that is dropped nothing is left.
        tokio::select! {
            joined = client.join(&join) => Ok(joined?),
            signal = stopping(signals) => Err(joining::signalled(signal)),
        }
    }

    /// What comes of it next. Cancel-safe, and so is nothing that is told lost.
    ///
    /// # Errors
    /// Nothing comes of it any more.
    pub(super) async fn next(
        &self,
        joined: &mut Joined,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<Came, Failure> {
        let what = self.in_words();
        loop {
            // Both are cancel-safe: lines and signals stay queued.
            let told = tokio::select! {
                biased;
                told = joined.next() => told?,
                signal = stopping(signals) => return Err(joining::signalled(signal)),
            };
            let Some(told) = told else {
                return Err(Failure::Unreachable(format!("{what}: the daemon said no more of it")));
            };
            if let Some(held) = told.held() {
                return Ok(Came::Held(held));
            }
            match told.event {
                Event::Released { .. } => return Ok(Came::Released),
                Event::Answered { value, goes_on } => return Ok(Came::Answered { value, goes_on }),
                Event::Refused { error } => {
                    let error = values::error_in_words(&error);
                    return Err(Failure::Module(format!("{what}: {error}")));
                }
                Event::TimedOut => {
                    return Err(Failure::NotAcquired(format!("{what}: no answer within --wait")));
                }
                Event::Lost(loss) => return Err(Failure::Lost { what, loss: loss.into() }),
                Event::Ended { how, message } => {
                    let why = if message.is_empty() { &how } else { &message };
                    return Err(match &*how {
                        "failed" => Failure::Module(format!("{what}: {why}")),
                        // Asked to by the daemon, or by somebody through it.
                        _ => Failure::Unreachable(format!("{what}: the daemon ended it: {why}")),
                    });
                }
                Event::Joined { .. } | Event::Alive { .. } | Event::Leaving { .. } => {}
                _ => printer.told(&told),
            }
        }
    }
}

/// Has the participant leave. What it held or waited for is given up before this command ends, so
/// that a second one behind it finds it free.
pub(super) async fn leave(joined: Joined) {
    if let Err(error) = joined.leave().await {
        tracing::warn!(%error, "not known to be given up; that happens when the lease has ended");
    }
}
