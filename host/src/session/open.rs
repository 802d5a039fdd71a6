//! Opening sessions.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::client::Client;
use super::epoch::Session;
use super::options::{ConnectError, ConnectOptions};
use crate::clock::{Clock, SystemClock};
use crate::tasks::Tasks;

/// Opens a session, trying every host once.
///
/// It lives on the runtime that this is called in, beside the participants: an answer reaches
/// the participant that waits for it without a change of threads. Code of components gives way in
/// time for its heartbeats (see the guest room); whatever else blocks the threads of that runtime
/// for as long as a part of the session timeout, loses the session.
///
/// # Errors
/// No host answered, or a host refused the credentials; the error names the hosts.
///
/// # Cancellation
/// Nothing is left of a session that was being opened.
pub async fn open(options: &ConnectOptions) -> Result<Session, ConnectError> {
    open_by(options, Arc::new(SystemClock)).await
}

/// Opens a session whose contact is judged by another clock than the machine's.
///
/// # Errors
/// As [`open`].
///
/// # Cancellation
/// As `open`.
pub async fn open_by(
    options: &ConnectOptions,
    clock: Arc<dyn Clock>,
) -> Result<Session, ConnectError> {
    let tasks = Tasks::on(Handle::current());
    let contact = clock.now();
    let client = Client::connect(options, Arc::clone(&clock), &tasks).await?;
    let session = Session::new(Box::new(client), options.acl, clock, contact, tasks);
    Ok(session.ruled_by(options.contact))
}
