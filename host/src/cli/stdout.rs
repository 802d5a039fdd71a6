//! Standard output, where reports and answers go.
//!
//! A reader that has closed it does not want to know. Any other failure, such as a full disk, loses
//! what was asked for, so it is kept here and told when the command ends.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

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
