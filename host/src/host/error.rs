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
    /// The time of the call is over, and there was no session, or none that was not in doubt. Nothing was
    /// called.
    #[error("no session with ZooKeeper at {servers} in time: look after the servers")]
    NoSession {
        /// The servers.
        servers: String,
    },
    /// The time of the call is over; all sessions that are open are full, and another one was not open in
    /// time. Nothing was called.
    #[error(
        "all {open} open sessions are full, and another one at {servers} was not open in time: try again, \
         look after the servers, or use shorter mounts"
    )]
    NoRoom {
        /// How many are open.
        open: usize,
        /// The servers.
        servers: String,
    },
    /// The time of the call is over. Nothing of it is held or stands in line; what it was to write for
    /// good may have been written.
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
    /// Whether what the operation was to write for good may or may not have been written: the
    /// connection was lost before a reply, or the operation ended in its midst. Look before it is called
    /// again.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Error::Refused(error) => error == "outcome-unknown" || error == "cancelled",
            Error::TimedOut | Error::Lost(_) | Error::Failed(_) | Error::Left => true,
            Error::UnknownRecipe { .. }
            | Error::Arguments(_)
            | Error::Join(_)
            | Error::Connect(_)
            | Error::NoSession { .. }
            | Error::NoRoom { .. }
            | Error::NotHeld(_)
            | Error::Busy
            | Error::Ending => false,
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::SessionLoss;

    #[test]
    fn an_operation_that_ended_in_its_midst_may_have_written() {
        let lost = Error::Lost(Loss::Session(SessionLoss::Expired));
        for error in [Error::TimedOut, lost, Error::Left] {
            assert!(error.is_outcome_unknown(), "{error}");
        }
        for case in ["outcome-unknown", "cancelled"] {
            assert!(Error::Refused(json!(case)).is_outcome_unknown(), "{case}");
        }
        let nobody = Error::NoSession { servers: "zk1:2181".to_owned() };
        let refused = Error::Refused(json!({ "invalid": "outcome-unknown" }));
        for error in [nobody, refused, Error::Refused(json!("no-node")), Error::Busy] {
            assert!(!error.is_outcome_unknown(), "{error}");
        }
    }
}
