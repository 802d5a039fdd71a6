//! The thread that interrupts components' code: wasmtime calls it the epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often code of components is interrupted while any of it runs: long enough for all that a
/// recipe does at a time, and short enough for neighbours not to notice.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// How often it could be while none runs at the last tick, so that a host whose components do little
/// hardly wakes the processor. The first turn of one that does much may last as long.
const IDLE_TICK: Duration = Duration::from_millis(10);

/// The thread that advances the epoch.
#[derive(Debug)]
pub(super) struct Ticker {
    /// Dropped to stop the thread.
    stop: Option<SyncSender<()>>,
    /// How many components' code runs just now. A call counts itself in for each of its turns, so
    /// that its code is interrupted in time.
    pub(super) running: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(wasmtime: wasmtime::Engine) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let running = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&running);
        let tick = move || {
            let mut pause = IDLE_TICK;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                wasmtime.increment_epoch();
                pause = if seen.load(Ordering::Relaxed) > 0 { TICK } else { IDLE_TICK };
            }
        };
        let thread = std::thread::Builder::new().name("wok-epoch".to_owned()).spawn(tick)?;
        Ok(Ticker { stop: Some(stop), running, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked, and there is nothing to do about it here.
            let _ = thread.join();
        }
    }
}
