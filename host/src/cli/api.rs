//! What commands share that ask the running daemon.

use std::path::PathBuf;

use clap::Args;
use tokio::runtime::Handle;

use super::exit::{Failure, LossInWords};
use super::joining::{self, hinted};
use crate::client::{Client, ClientError, HostError, LossTold, Socket};
use crate::tasks::Tasks;

/// Where the daemon is.
#[derive(Debug, Args)]
pub(super) struct Daemon {
    /// The socket of the running daemon. Default: /run/wok/wok.sock for root, and for others wok.sock
    /// in XDG_RUNTIME_DIR, or in wok-<uid> among the temporary files.
    #[arg(long, value_name = "PATH", env = "WOK_SOCKET")]
    socket: Option<PathBuf>,
}

impl Daemon {
    /// A client that runs its connections as tasks of `tasks`.
    pub(super) fn client(self, tasks: Tasks) -> Client {
        Client::new(Socket::new(self.socket), tasks)
    }

    /// Has a client ask, and closes what it has left open.
    pub(super) fn ask<T>(
        self,
        ask: impl AsyncFnOnce(Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        joining::runtime()?.block_on(async {
            let tasks = Tasks::on(Handle::current());
            let answer = ask(self.client(tasks.clone())).await;
            tasks.cancel();
            tasks.join().await;
            answer
        })
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Host(error) => of_host(error),
            ClientError::Operation(_) => Failure::Module(error.to_string()),
            error => Failure::Unreachable(error.to_string()),
        }
    }
}

/// The same kinds, and so the same exit codes, as for a session of one's own.
fn of_host(error: HostError) -> Failure {
    let HostError { kind, message, reason, cause, .. } = error;
    match (&*kind, reason) {
        ("bad-request" | "not-found" | "no-operation" | "method-not-allowed" | "too-large", _) => {
            Failure::Usage(hinted(message))
        }
        ("timed-out", _) => Failure::NotAcquired(message),
        ("ended", Some(reason)) => {
            let loss = LossTold { reason, cause: cause.unwrap_or_default(), message };
            // The message begins with the participant's end.
            Failure::Lost { what: "the daemon says".to_owned(), loss: loss.into() }
        }
        ("ended" | "busy" | "module-failed", _) => Failure::Module(message),
        _ => Failure::Unreachable(message),
    }
}

impl From<LossTold> for LossInWords {
    fn from(told: LossTold) -> Self {
        let LossTold { reason, cause, message } = told;
        LossInWords { reason: reason.into(), cause: cause.into(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_session_of_ones_own() {
        let host = |kind: &str, reason: Option<&str>| {
            let text = serde_json::json!({ "error": kind, "message": "so", "reason": reason });
            Failure::from(ClientError::Host(serde_json::from_value(text).unwrap()))
        };
        for (kind, reason, expected) in [
            ("bad-request", None, "usage"),
            ("not-found", None, "usage"),
            ("no-operation", None, "usage"),
            ("unauthorized", None, "unreachable"),
            ("forbidden", None, "unreachable"),
            ("unavailable", None, "unreachable"),
            ("timed-out", None, "not-acquired"),
            ("busy", None, "module"),
            ("module-failed", None, "module"),
            ("ended", None, "module"),
            ("ended", Some("session"), "lost"),
            // Of a newer daemon.
            ("tired", None, "unreachable"),
        ] {
            assert_eq!(host(kind, reason).kind(), expected, "{kind}");
        }
        let refused = ClientError::Operation(serde_json::json!("full"));
        assert_eq!(Failure::from(refused).kind(), "module");
        let nobody = ClientError::NobodyListens { socket: Socket::new(Some("/a".into())) };
        assert_eq!(Failure::from(nobody).kind(), "unreachable");
    }
}
