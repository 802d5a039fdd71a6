//! What a helper says to people.

use std::fmt::Arguments;
use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Says a line on standard error, if that takes the line at once: wok waits for its helpers, and they wait for
/// nobody who reads nothing.
pub(super) fn say(line: Arguments<'_>) {
    let stderr = io::stderr();
    let takes_it = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&Timespec::default()));
    if matches!(takes_it, Ok(1..)) {
        // Who has closed it hears the outcome from wok.
        let _ = rustix::io::write(&stderr, format!("{line}\n").as_bytes());
    }
}
