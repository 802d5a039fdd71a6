//! A lease: how long a participant lives whose app does not renew it.
//!
//! An app that waits for the answer to a call cannot renew anything meanwhile, unless it has a second
//! thread. So the lease of a participant that holds nothing does not run while a call of it is open, and
//! begins anew when the call is over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long a participant lives that nobody renews.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) length: Duration,
    run: Mutex<Run>,
}

/// How a lease runs.
#[derive(Debug, Default)]
struct Run {
    /// None until it runs.
    until: Option<Instant>,
    /// It has passed, and the participant ends.
    is_spent: bool,
    /// Calls that are open: the lease does not run.
    calls: usize,
}

/// A call that is open. Dropping it has the lease run, for the whole of its length.
#[derive(Debug)]
pub(super) struct OpenCall<'a>(&'a Lease);

impl Lease {
    pub(super) fn new(length: Duration) -> Self {
        Lease { length, run: Mutex::default() }
    }

    /// Has it run from now on. False if it has passed: then it does not come back.
    pub(super) fn renew(&self) -> bool {
        let mut run = self.run();
        if !run.is_spent {
            run.until = Some(Instant::now() + self.length);
        }
        !run.is_spent
    }

    /// Keeps it from running until the call is over. None if it has passed.
    pub(super) fn open_call(&self) -> Option<OpenCall<'_>> {
        let mut run = self.run();
        if run.is_spent {
            return None;
        }
        run.calls += 1;
        Some(OpenCall(self))
    }

    /// It does not come back.
    pub(super) fn spend(&self) {
        self.run().is_spent = true;
    }

    /// How much of it is left.
    pub(super) fn left(&self) -> Duration {
        let run = self.run();
        match run.until {
            _ if run.is_spent => Duration::ZERO,
            // The lease will run for its whole length when the call is over.
            _ if run.calls > 0 => self.length,
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => self.length,
        }
    }

    /// Completes when it has passed. What a call has come to hold is looked for once in the length of the
    /// lease: from then on the lease runs although the call is open.
    pub(super) async fn until_spent(&self, holds: impl Fn() -> bool) {
        loop {
            let until = {
                let (mut run, now) = (self.run(), Instant::now());
                if run.calls > 0 && holds() {
                    run.calls = 0;
                    run.until = Some(now + self.length);
                }
                match run.until {
                    // Whenever the call ends, the lease then runs until a later time than this.
                    _ if run.calls > 0 => now + self.length,
                    Some(until) if until <= now => {
                        run.is_spent = true;
                        return;
                    }
                    Some(until) => until,
                    None => now + self.length,
                }
            };
            sleep_until(until).await;
        }
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let OpenCall(lease) = self;
        let mut run = lease.run();
        if run.calls > 0 {
            run.calls -= 1;
            run.until = Some(Instant::now() + lease.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    /// As if all of its time had passed.
    fn pass(lease: &Lease) {
        lease.run().until = Some(Instant::now());
    }

    #[tokio::test]
    async fn a_lease_does_not_pass_under_an_open_call_and_begins_anew_when_the_call_is_over() {
        let lease = Lease::new(HOUR);
        assert!(lease.renew());
        let (first, second) = (lease.open_call().unwrap(), lease.open_call().unwrap());
        for call in [first, second] {
            pass(&lease);
            assert_eq!(lease.until_spent(|| false).now_or_never(), None);
            assert_eq!(lease.left(), HOUR);
            drop(call);
        }
        assert_eq!(lease.until_spent(|| false).now_or_never(), None);
        assert!(lease.left() > HOUR / 2);
        pass(&lease);
        assert_eq!(lease.until_spent(|| false).now_or_never(), Some(()));
        assert!(lease.open_call().is_none() && !lease.renew());
    }

    #[tokio::test]
    async fn what_an_open_call_has_come_to_hold_is_kept_no_longer_than_the_lease() {
        let lease = Lease::new(HOUR);
        let call = lease.open_call().unwrap();
        assert_eq!(lease.until_spent(|| true).now_or_never(), None);
        assert!(lease.left() <= HOUR);
        pass(&lease);
        assert_eq!(lease.until_spent(|| true).now_or_never(), Some(()));
        drop(call);
        assert_eq!(lease.left(), Duration::ZERO);
    }

    #[tokio::test]
    async fn what_is_spent_stays_spent_when_a_call_is_over() {
        let lease = Lease::new(HOUR);
        let call = lease.open_call().unwrap();
        lease.spend();
        drop(call);
        assert_eq!(lease.left(), Duration::ZERO);
        assert!(!lease.renew());
    }
}
