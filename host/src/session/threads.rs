//! The threads that a connection needs.
//!
//! zookeeper-client has every name looked up by the threads of the `blocking` crate, and `hosts` sees to it
//! that every address is looked up, too. Where the system starts no further thread, that crate tries again
//! without a pause and without an end, and nothing else of this process goes on. A thread that it has once
//! started stays. So it starts one before the first connection, where a refusal can still be told.

use std::sync::mpsc;
use std::{io, thread};

/// How many threads a connection needs: one for look-ups, one on which `async-io` waits for sockets, and one
/// that finds out why no server is reached. The last two end the process where they cannot be started.
const NEEDED: usize = 3;

/// Makes sure that there is room for these threads, and that the one for look-ups is there.
///
/// # Errors
/// The system starts no further thread.
///
/// # Cancellation
/// Nothing is left but that thread.
pub(super) async fn ready() -> io::Result<()> {
    probe()?;
    blocking::unblock(|| ()).await;
    Ok(())
}

/// Has as many threads at once as are needed, for a moment.
fn probe() -> io::Result<()> {
    let probes = (0..NEEDED).map(|_| {
        let (over, until_over) = mpsc::channel::<()>();
        // Nothing is sent: it ends when the sender is dropped.
        let wait = move || until_over.recv().is_ok();
        Ok((over, thread::Builder::new().name("wok-probe".to_owned()).spawn(wait)?))
    });
    let probes: Vec<_> = probes.collect::<io::Result<_>>()?;
    for (over, probe) in probes {
        drop(over);
        let failed = |_| io::Error::other("a thread that only waits has panicked");
        // It ends now, so this does not block.
        probe.join().map_err(failed)?;
    }
    Ok(())
}
