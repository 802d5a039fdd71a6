//! Standard output, where reports and answers go.
//!
//! A reader that has closed it does not want to know. Any other failure, such as a full disk, loses
//! what was asked for, so it is kept here and told when the command ends.
//!
//! A command that prints while it has a session waits for nobody who reads: from [`begin`] on an [`Outlet`]
//! writes the lines.

use std::future::pending;
use std::io::{self, ErrorKind, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::outlet::{Descriptor, Kind, Outlet, Tell};

/// The first failure that is not the reader's.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Whether somebody reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

/// Of this process, once there is one.
static OUTLET: OnceLock<Arc<Outlet>> = OnceLock::new();

/// Whether the outlet has found that nobody reads.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);

/// From now on nothing waits for the reader. Where no thread can be started, the command goes on as before.
pub(super) fn begin(tell: Tell) {
    if let Some(outlet) = Outlet::start(tell, "wok-stdout", Watched(Descriptor(io::stdout()))) {
        // Only the first of a process counts, and there is one.
        OUTLET.set(outlet).ok();
    }
}

/// Gives what was said last the time to be read, if anybody reads.
pub(super) fn finish() {
    if let Some(outlet) = OUTLET.get() {
        outlet.finish();
    }
}

/// Standard output, whose failures are kept in mind.
struct Watched(Descriptor<Stdout>);

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| {
            let kind = error.kind();
            if kind != ErrorKind::Interrupted {
                note(error);
                IS_UNREAD.store(true, Ordering::Relaxed);
            }
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes all of it, at once or by the outlet. Nobody reads any more where it cannot be written.
pub(super) fn write(bytes: &[u8]) -> Reader {
    write_as(Kind::Said, bytes)
}

fn write_as(kind: Kind, bytes: &[u8]) -> Reader {
    if let Some(outlet) = OUTLET.get() {
        outlet.push(bytes.to_owned(), kind);
        return match IS_UNREAD.load(Ordering::Relaxed) {
            true => Reader::Gone,
            false => Reader::There,
        };
    }
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

/// Writes what an operation has answered, which is never dropped.
pub(super) fn answer(text: &str) -> Reader {
    write_as(Kind::Answered, format!("{text}\n").as_bytes())
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
