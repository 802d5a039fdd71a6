//! Why there is no answer, or nothing held.

use std::sync::Arc;

use serde_json::Value;

use crate::epochs::JoinError;
use crate::guest::Fault;
use crate::guest::values::{ValueErrors, error_in_words};
use crate::participant::{Ending, Loss};
use crate::session::ConnectError;

/// Why an operation has no answer, or holds nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The builder was not given that recipe.
    #[error(
        "there is no recipe {name:?}{}; there are {known}: add it with `Builder::recipe`",
        near.as_ref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default()
    )]
    UnknownRecipe {
        /// The name.
        name: String,
        /// The one that was probably meant.
        near: Option<String>,
        /// Those there are.
        known: String,
    },
    /// The module has no such operation, or the operation takes other arguments. Nothing was called.
    #[error("{0}")]
    Arguments(#[source] ValueErrors),
    /// The recipe cannot be joined.
    #[error(transparent)]
    Join(JoinError),
    /// The servers refuse this host, and would again.
    #[error(transparent)]
    Connect(ConnectError),
    /// The time of the call is over. Nothing is left of the operation.
    #[error("the call's timeout has passed")]
    TimedOut,
    /// The operation's own error, as JSON: the text of a case, or `{"case": …}`. The recipe's
    /// interface says what it means, and for `outcome-unknown` that a write may or may not have
    /// happened.
    #[error("the operation answered the error {}", error_in_words(.0))]
    Refused(Value),
    /// The operation has answered this, and holds nothing: call it with [`Host::call`](super::Host::call).
    #[error("the operation holds nothing; it answered {0}")]
    NotHeld(Value),
    /// Another operation of this participant is under way.
    #[error("another operation of this participant is under way: join another participant for it")]
    Busy,
    /// The session or the claim was lost meanwhile.
    #[error("lost: {0}")]
    Lost(Loss),
    /// The module trapped or passed a limit.
    #[error("the module failed: {0}")]
    Failed(Arc<Fault>),
    /// The participant has left.
    #[error("the participant has left")]
    Left,
    /// The host is being shut down.
    #[error("the host is being shut down")]
    Ending,
}

impl Error {
    /// Whether a write of the operation may or may not have happened: its connection was lost before
    /// the reply, and nothing tells.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Error::Refused(value) if value == "outcome-unknown")
    }
}

impl From<Ending> for Error {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Left => Error::Left,
            Ending::Lost(loss) => Error::Lost(loss),
            Ending::Failed(fault) => Error::Failed(fault),
        }
    }
}
