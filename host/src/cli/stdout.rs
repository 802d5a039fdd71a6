//! Standard output, where reports and answers go.
//!
//! A reader that has closed it does not want to know. Any other failure, such as a full disk, loses
//! what was asked for, so it is kept here and told when the command ends.

use std::future::pending;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The first failure that is not the reader's.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Whether somebody reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

/// Writes all of it, at once. Nobody reads any more where it cannot be written.
pub(super) fn write(bytes: &[u8]) -> Reader {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Reader::There,
        Err(error) => {
            note(error);
            Reader::Gone
        }
    }
}

/// Writes a line.
pub(super) fn say(line: &str) -> Reader {
    write(format!("{line}\n").as_bytes())
}

/// Completes when nobody reads standard output any more, where that shows before something is written: of a
/// pipe, a socket or a terminal.
///
/// # Cancellation
/// Nothing is lost.
pub(super) async fn until_unread() {
    #[allow(
        deprecated,
        reason = "deprecated for descriptors that change while they are registered, and this one \
                  does not; what is to follow it is unsafe"
    )]
    let registered = AsyncFd::with_interest(io::stdout(), Interest::WRITABLE);
    // A file, or the null device, takes whatever is written.
    let Ok(stdout) = registered else { return pending().await };
    // An error is the end of the runtime, and of who waits here.
    while let Ok(mut ready) = stdout.writable().await {
        if ready.ready().is_write_closed() {
            return;
        }
        ready.clear_ready();
    }
    pending().await
}

/// Keeps in mind why something could not be written.
pub(super) fn note(error: io::Error) {
    if error.kind() != ErrorKind::BrokenPipe {
        // The first one is told.
        FAILED.set(error).ok();
    }
}

/// Why not all was written, if not because nobody reads.
pub(super) fn failure() -> Option<&'static io::Error> {
    FAILED.get()
}
