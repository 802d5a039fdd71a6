//! Ctrl-C as a fact that every wait of this program looks at.
//!
//! Children lead their own process groups, so the terminal's signal reaches this program alone; it
//! unwinds by `Err(Stopped)` and the destructors of [`crate::process::Group`] end the children.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static ASKED: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// Someone asked this program to end.
#[derive(Debug)]
pub(crate) struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("stopped by a signal")
    }
}

impl std::error::Error for Stopped {}

/// Starts to listen for the signals that end a program.
pub(crate) fn listen() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("listen for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = true;
                CHANGED.notify_all();
            }
        })
        .context("start the thread that listens for signals")?;
    Ok(())
}

/// Fails as soon as someone has asked this program to end.
pub(crate) fn look() -> Result<(), Stopped> {
    pause(Duration::ZERO)
}

/// Waits for `time`, or fails at once when someone asks this program to end.
pub(crate) fn pause(time: Duration) -> Result<(), Stopped> {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let (asked, _) = CHANGED
        .wait_timeout_while(asked, time, |asked| !*asked)
        .unwrap_or_else(PoisonError::into_inner);
    if *asked { Err(Stopped) } else { Ok(()) }
}

/// Waits until someone asks this program to end.
pub(crate) fn wait() {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let _asked = CHANGED.wait_while(asked, |asked| !*asked).unwrap_or_else(PoisonError::into_inner);
}

/// Polls `fact` until it holds; `what` names it in the error when `limit` passes first.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut fact: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = fact()? {
            return Ok(value);
        }
        anyhow::ensure!(Instant::now() < deadline, "{what}: not within {} s", limit.as_secs());
        pause(Duration::from_millis(20))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_that_never_holds_ends_in_an_error_that_names_it() {
        let error = until::<()>("the moon rises", Duration::from_millis(30), || Ok(None));
        assert_eq!(error.unwrap_err().to_string(), "the moon rises: not within 0 s");
    }

    #[test]
    fn a_fact_is_looked_at_again_until_it_holds() {
        let mut looks = 0;
        let value = until("third look", Duration::from_secs(10), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(value.unwrap(), 3);
    }
}
