//! Ctrl-C while runs go on: the first ends them with a summary, the second ends wok.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::INTERRUPTED;

/// From now on Ctrl-C sets the flag. Where that cannot be had, Ctrl-C ends wok at once, as always.
pub(super) fn flag() -> Arc<AtomicBool> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return is_stopped;
    };
    let flag = Arc::clone(&is_stopped);
    // A thread of its own, as the runs take all of the others; it ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(async {
            let Ok(mut interrupts) = signal(SignalKind::interrupt()) else { return };
            while interrupts.recv().await.is_some() {
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        });
    });
    is_stopped
}
