//! Signals to wok while it stands in line or a command runs under a claim.

use std::{fs, io, process, thread};

use rustix::process::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::tasks::Tasks;

/// What is passed on to the command. `TERM` is told apart by the receiver: it stops in order.
const PASSED_ON: [(SignalKind, Signal); 7] = [
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::quit(), Signal::QUIT),
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::user_defined1(), Signal::USR1),
    (SignalKind::user_defined2(), Signal::USR2),
    (SignalKind::window_change(), Signal::WINCH),
];

/// What stays ignored where it is ignored when wok starts: `nohup` has it so for HUP, and a shell without
/// job control for INT and QUIT of what it starts in the background. The command inherits that.
const LEFT_ALONE: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::QUIT];

/// Signals that wait at most; more in that short a time say nothing new.
const MOST_WAITING: usize = 32;

/// Has writes to a file that may not grow any more (`ulimit -f`) refused, as where the disk is full. Without a
/// handler wok would die of the signal without a word, and what it holds would end with its session only. The
/// handler stays; a command that wok starts does not inherit it.
pub(super) fn outlive_full_files() {
    // Whatever keeps it from being set up is told by what needs a runtime next.
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
    drop(runtime.block_on(async { signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) }));
}

/// Receives signals from now on, instead of dying of them; but HUP, INT and QUIT stay ignored where the
/// parent has wok ignore them.
///
/// # Errors
/// The operating system refuses a handler.
pub(super) fn receive(tasks: &Tasks) -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    // Without this file nothing is known to be ignored.
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let is_left = |number: Signal| LEFT_ALONE.contains(&number) && is_in(ignored, number);
    for (kind, number) in PASSED_ON.into_iter().filter(|(_, number)| !is_left(*number)) {
        let mut arrivals = signal(kind)?;
        let sender = sender.clone();
        tasks.spawn("signals", async move {
            while arrivals.recv().await.is_some() {
                if sender.send(number).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(receiver)
}

/// Whether the signal asks this process to end: by an operator, from the terminal, or as the terminal
/// goes.
pub(super) fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT)
}

/// Waits for what a command does last, unless a signal asks it to end: what it had then goes with its
/// lease, or with its session.
pub(super) async fn unless_asked_to_end(
    signals: &mut mpsc::Receiver<Signal>,
    last: impl Future<Output = ()>,
) {
    let asked = async {
        while let Some(signal) = signals.recv().await {
            if ends(signal) {
                return tracing::warn!(
                    "told to end before all was given up; what is left times out"
                );
            }
        }
        std::future::pending().await
    };
    // Cancel-safe: it is the last thing.
    tokio::select! {
        () = last => {}
        () = asked => {}
    }
}

/// From now on a signal that asks wok to end ends it at once. For when nothing is held any more, and wok may
/// wait for ever for somebody else, such as a reader of standard output.
///
/// The handlers that [`receive`] sets stay when its runtime has ended, and then nobody hears the signals. So a
/// thread hears them, and ends wok with the code by which a shell tells of that signal.
///
/// # Errors
/// The operating system refuses a handler or a thread.
pub(super) fn end_at_once() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _entered = runtime.enter();
        receive(&Tasks::on(runtime.handle().clone()))?
    };
    let ending = async move {
        while let Some(signal) = signals.recv().await {
            if ends(signal) {
                process::exit(128 + signal.as_raw());
            }
        }
    };
    let thread = thread::Builder::new().name("wok-signals".to_owned());
    thread.spawn(move || runtime.block_on(ending)).map(drop)
}

/// The set of signals that a process ignores, by the text of its status.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// Whether a signal is in a set, whose lowest bit is signal 1.
fn is_in(set: u64, signal: Signal) -> bool {
    let bit = u32::try_from(signal.as_raw() - 1).ok().and_then(|number| 1_u64.checked_shl(number));
    bit.is_some_and(|bit| set & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_signals_are_read_from_the_status_of_a_process() {
        let status = "Name:\twok\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n";
        let set = ignored(status);
        assert!(is_in(set, Signal::HUP) && is_in(set, Signal::PIPE));
        assert!(!is_in(set, Signal::INT) && !is_in(set, Signal::QUIT));
        assert_eq!(ignored("Name:\twok\n"), 0);
    }
}
