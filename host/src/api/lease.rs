//! A lease: how long a participant lives whose app does not renew it.

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
}

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

    /// It does not come back.
    pub(super) fn spend(&self) {
        self.run().is_spent = true;
    }

    /// How much of it is left.
    pub(super) fn left(&self) -> Duration {
        let run = self.run();
        match run.until {
            _ if run.is_spent => Duration::ZERO,
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => self.length,
        }
    }

    pub(super) async fn until_spent(&self) {
        loop {
            let until = {
                let (mut run, now) = (self.run(), Instant::now());
                match run.until {
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
