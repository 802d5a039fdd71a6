//! Who sees a component's host calls: a simulation, which records them and may cut them short; and who asks
//! a module about its config before there is a session.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::answer::Failed;
use super::state::State;
use crate::session::{Failure, Refusal};

/// The host calls that a witness sees, by the contract's names; `wait` is that for a watch.
#[cfg(feature = "simulation")]
pub(crate) const HOST_CALLS: [&str; 20] = [
    "check",
    "claim",
    "claim-all",
    "contend",
    "contend-and-list",
    "create",
    "delete",
    "ensure",
    "exists",
    "get-children",
    "get-data",
    "multi",
    "pipeline",
    "release",
    "set-data",
    "sync",
    "wait",
    "watch-children",
    "watch-data",
    "watch-exists",
];

/// What the fault of a component says that a simulation has killed.
#[cfg(feature = "simulation")]
pub(crate) const KILLED: &str = "killed by the simulation";

/// Sees the host calls that reach the ensemble or wait for a watch.
///
/// Called in the middle of them: answers at once and never blocks.
pub trait Witness: Send + Sync {
    /// A host call begins. Answers its number.
    fn asked(&self, name: &'static str, paths: Vec<String>) -> u64;
    /// It was answered: `ok`, or the name of the contract's error. A contender's creation tells the
    /// absolute path. One that is never answered was cut off with its component.
    fn answered(&self, number: u64, answer: &'static str, created: Option<&str>);
    /// The component is about to be woken with these tags.
    fn woken(&self, tags: &[u64]);
    /// A host call of any kind begins: why the component is to end, if it is. It traps there, and its
    /// fault says that.
    fn doom(&self) -> Option<&'static str>;
    /// Completes when the component is killed. The host call under way is then answered `cancelled`.
    fn until_killed(&self) -> BoxFuture<'static, ()>;
}

impl State {
    /// Has a host call's errand done, before the eyes of the witness if there is one. The log names the
    /// znodes of what is refused for a person to remedy.
    pub(super) async fn run_errand<T, F>(
        &mut self,
        name: &'static str,
        paths: Vec<String>,
        created: fn(&T) -> Option<&str>,
        errand: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        let outcome = match self.surroundings.witness.clone() {
            None => self.turn.errands.run(errand).await,
            Some(witness) => {
                self.run_witnessed(witness, name, paths.clone(), created, errand).await
            }
        };
        if let Err(failed) = &outcome {
            self.log_refusal(name, &paths, failed);
        }
        outcome
    }

    /// As [`Self::run_errand`], before the eyes of a witness. Boxed, and in a function of its own, so that the
    /// frame of a host call has no room for it: that frame is on the component's stack, which stays in memory.
    #[inline(never)]
    fn run_witnessed<'a, T, F>(
        &'a self,
        witness: Arc<dyn Witness>,
        name: &'static str,
        paths: Vec<String>,
        created: fn(&T) -> Option<&str>,
        errand: impl FnOnce() -> F + Send + 'static,
    ) -> BoxFuture<'a, Result<T, Failed>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        let witnessed = move || async move {
            let number = witness.asked(name, paths);
            let outcome = unless_killed(&witness, errand()).await;
            let path = outcome.as_ref().ok().and_then(created);
            let answer = outcome.as_ref().map_or_else(Failed::name, |_| "ok");
            witness.answered(number, answer, path);
            outcome
        };
        Box::pin(self.turn.errands.run(witnessed))
    }
}

/// The outcome of a host call, unless its component is killed first.
pub(super) async fn unless_killed<T>(
    witness: &Arc<dyn Witness>,
    host_call: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    tokio::select! {
        biased;
        () = witness.until_killed() => Err(Failed::Cancelled),
        outcome = host_call => outcome,
    }
}

impl Failed {
    /// As the contract names it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Failed::Cancelled => "cancelled",
            Failed::Request(failure) => match failure {
                Failure::OutcomeUnknown => "outcome-unknown",
                Failure::SessionLost => "session-lost",
                Failure::OverLimit(_) => "over-limit",
                Failure::Invalid(_) => "invalid",
                Failure::Refused { refusal, .. } => match refusal {
                    Refusal::NoNode => "no-node",
                    Refusal::NodeExists => "node-exists",
                    Refusal::NotEmpty => "not-empty",
                    Refusal::BadVersion => "bad-version",
                    Refusal::NoChildrenForEphemerals => "no-children-for-ephemerals",
                    Refusal::NoAuth => "no-auth",
                    Refusal::QuotaExceeded => "quota-exceeded",
                    Refusal::Unimplemented | Refusal::Throttled | Refusal::Other(_) => "other",
                },
            },
        }
    }
}
