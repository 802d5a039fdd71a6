//! Signals to wok while it stands in line or a command runs under a claim.

use std::io;

use rustix::process::Signal;
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

/// Signals that wait at most; more in that short a time say nothing new.
const MOST_WAITING: usize = 32;

/// Receives signals from now on, instead of dying of them.
///
/// # Errors
/// The operating system refuses a handler.
pub(super) fn receive(tasks: &Tasks) -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    for (kind, number) in PASSED_ON {
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
