//! How many files a process may have open, and what the server needs of them.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// What a server opens besides connections once it runs: the log, its successor, a snapshot and the
/// nodes for it, directories, and a connection that is refused. Twice that many.
const RESERVE: u64 = 16;

/// How many connections leave enough for the files. What the process has open by now stays so.
pub(super) fn most_connections() -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    // Without that directory nothing is known of it, and the reserve has to do.
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let left = limit.saturating_sub(RESERVE + u64::try_from(open).unwrap_or(u64::MAX));
    // A server that nobody can connect to is of no use.
    usize::try_from(left).unwrap_or(usize::MAX).max(1)
}
