//! What goes wrong between a client and the daemon.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::socket::Socket;
use crate::config::spell_duration;
use crate::guest::values;

/// Why the daemon did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens.
    #[error(
        "no daemon listens at {socket}: start `wok run` with a table [api] in its config, or name \
         another socket with --socket or WOK_SOCKET"
    )]
    NobodyListens {
        /// Where.
        socket: Socket,
    },
    /// The socket cannot be used.
    #[error("cannot use the socket {socket}: {source}{}", remedy(source))]
    Refused {
        /// Which.
        socket: Socket,
        /// Why.
        source: io::Error,
    },
    /// What listens is no daemon of wok's, or none that this client understands.
    #[error("what listens at {socket} is no wok daemon: {what}; name another one with --socket")]
    NotOurs {
        /// Where.
        socket: Socket,
        /// What it does.
        what: String,
    },
    /// It took the request, and does not answer.
    #[error(
        "the daemon at {socket} has not answered for {}: it is stopped, or too busy",
        spell_duration(*limit)
    )]
    Silent {
        /// Where.
        socket: Socket,
        /// How long was waited.
        limit: Duration,
    },
    /// The connection ended before there was an answer. A daemon that has no descriptor left for a
    /// caller does that, and so does one that ends.
    #[error(
        "the daemon at {socket} closed the connection without an answer: it has ended, or takes no \
         more connections, as where it has no file descriptor left (`ulimit -n`); `wok logs` or the \
         daemon's own log may tell which"
    )]
    Unanswered {
        /// Where.
        socket: Socket,
    },
    /// The connection ended in the middle of an answer.
    #[error("the daemon at {socket} is gone: it closed the connection before it had said all")]
    Gone {
        /// Where.
        socket: Socket,
    },
    /// What goes on as long as the daemon does has ended in order, as a daemon ends it that is told to
    /// stop.
    #[error("the daemon at {socket} has been stopped")]
    Stopped {
        /// Where.
        socket: Socket,
    },
    /// The host refused.
    #[error(transparent)]
    Host(HostError),
    /// The operation answered an error of its own.
    #[error("{}", values::error_in_words(.0))]
    Operation(Value),
}

fn remedy(refused: &io::Error) -> &'static str {
    match refused.kind() {
        io::ErrorKind::PermissionDenied => {
            "; ask as the daemon's user, or have its `[api]` let you in"
        }
        _ => "",
    }
}

/// An error of the host, not of a module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct HostError {
    /// What it is, in one word: `not-found`, `no-operation`, `busy`, …
    #[serde(rename = "error")]
    pub kind: String,
    /// For people, with the remedy.
    pub message: String,
    /// Why a participant ended, if it was a loss.
    #[serde(default)]
    pub reason: Option<String>,
    /// What is behind that reason.
    #[serde(default)]
    pub cause: Option<String>,
}
