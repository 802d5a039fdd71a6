//! Standard error, for commands that must not wait for its reader: from [`begin`] on an [`Outlet`] writes
//! the lines. Commands that hold nothing write as every program does.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use super::outlet::{Descriptor, Kind, Outlet, Tell};

/// Of this process, once there is one.
static OUTLET: OnceLock<Arc<Outlet>> = OnceLock::new();

/// From now on nothing waits for the reader of standard error. Where no thread can be started, the
/// command goes on as before.
pub(super) fn begin(tell: Tell) {
    if let Some(outlet) = Outlet::start(tell, "wok-stderr", Descriptor(io::stderr())) {
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

/// A line that the command itself says.
pub(super) fn say(line: &str) {
    match OUTLET.get() {
        Some(outlet) => outlet.push(format!("{line}\n").into_bytes(), Kind::Said),
        // A reader that closed our output does not want to know.
        None => drop(writeln!(io::stderr(), "{line}")),
    }
}

/// The log: each write is a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match OUTLET.get() {
            Some(outlet) => outlet.push(line.to_owned(), Kind::Logged),
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
