//! What a session needs of an ensemble, whether it is reached through a client or simulated.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::failure::Failure;
use super::request::{Acl, Reply, Request};
use crate::clock::Boottime;

/// How a session ended on the ensemble's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The server expired it, or the client gave up on it.
    Expired,
    /// The server refused the credentials.
    AuthFailed,
    /// This host closed it.
    Closed,
}

/// What is known of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// There is one, to a server that accepts writes.
    Up {
        /// A moment at which the connection before this one still stood: this one was asked for later. None
        /// for the connection on which the session was opened, and where no look fell between two losses.
        stood: Option<Boottime>,
    },
    /// There is none, or to a read-only server.
    Down,
    /// There will never be one again.
    Over(Ending),
}

impl Connection {
    /// Whether there is one now.
    pub fn is_up(self) -> bool {
        matches!(self, Connection::Up { .. })
    }
}

/// One ZooKeeper session, without any rule of ours.
///
/// # Ordering
/// Requests are sent in the order in which [`submit`](Ensemble::submit) is called. A watch event
/// is visible before the reply to any later request that reflects it.
///
/// # Cancellation
/// Dropping the future of a request does not take the request back.
pub trait Ensemble: Debug + Send + Sync {
    /// The session's id; a znode of this session carries it as its `ephemeralOwner`.
    fn id(&self) -> i64;

    /// The negotiated timeout.
    fn timeout(&self) -> Duration;

    /// Sends a request. Whatever it creates gets `acl`.
    ///
    /// # Errors
    /// `Refused`, `OutcomeUnknown` when the connection was lost before the reply, `SessionLost`.
    fn submit(&self, request: Request, acl: Acl) -> BoxFuture<'static, Result<Reply, Failure>>;

    /// Follows the connection. A connection that came back quickly may not be seen to have gone.
    fn connection(&self) -> watch::Receiver<Connection>;

    /// How short a session timeout the servers are known to grant: two of their ticks or more.
    /// Nothing, if that cannot be learned now.
    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>>;

    /// Ends the session: the server deletes its ephemeral znodes. Completes when the server has
    /// answered or the connection is gone for good.
    fn close(&self) -> BoxFuture<'static, ()>;
}
