//! The far end of a connection: whether the caller has closed it.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::io::Interest;
use tokio::net::UnixStream;

/// A second descriptor of a connection, on which only its end is waited for.
///
/// hyper sees an end where it reads, and does not read while a request is being answered and bytes of
/// the next one wait. A line feed too much behind a body, or a request that is sent ahead, would keep
/// a participant whose caller has gone.
#[derive(Debug)]
pub(super) struct FarEnd(UnixStream);

impl FarEnd {
    /// That of an accepted connection, which is set to be non-blocking.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub(super) fn of(connection: &impl AsFd) -> io::Result<Self> {
        // Of a TCP connection, too: the type only says how readiness is told, which is the same.
        let descriptor = StdUnixStream::from(connection.as_fd().try_clone_to_owned()?);
        Ok(FarEnd(UnixStream::from_std(descriptor)?))
    }

    /// Completes when the caller has closed the connection, or its sending half.
    ///
    /// # Cancellation
    /// Safe: the end is a state.
    pub(super) async fn closed(&self) {
        let FarEnd(stream) = self;
        loop {
            match stream.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                // Something was sent, which hyper reads. An answer of `try_io` that nothing can be read
                // clears the readiness, so that `ready` waits for the next event; it says nothing else.
                Ok(_) => {
                    let nothing = || Err::<(), _>(ErrorKind::WouldBlock.into());
                    stream.try_io(Interest::READABLE, nothing).ok();
                }
                // The runtime ends, and with it the connection.
                Err(_) => return,
            }
        }
    }
}
