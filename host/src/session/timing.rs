//! The times that a session is judged by, all derived from the negotiated timeout.

use std::time::Duration;

/// The local deadline stands this much before the earliest moment at which the server can expire
/// the session: a quarter, so that a command has time to be stopped, and never under this.
const LEAST_MARGIN: Duration = Duration::from_millis(200);

/// How often deadlines are looked at. A stopped process or a suspended machine finds out this late
/// at most after it goes on.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The times that a session is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    timeout: Duration,
}

impl Timing {
    /// The times of a session with this negotiated timeout.
    pub fn new(timeout: Duration) -> Self {
        Timing { timeout }
    }

    /// The negotiated timeout.
    pub fn timeout(self) -> Duration {
        self.timeout
    }

    /// How long before the server's expiry the host gives the session up.
    pub fn margin(self) -> Duration {
        (self.timeout / 4).max(LEAST_MARGIN)
    }

    /// How long after the newest contact the host gives the session up.
    pub fn patience(self) -> Duration {
        self.timeout.saturating_sub(self.margin())
    }

    /// A session without contact for this long is asked for a sign of life.
    pub fn heartbeat(self) -> Duration {
        self.timeout / 10
    }

    /// The time that a command is given to stop unless something else is said: a service's usual
    /// second or two at the default timeout, and it fits into every other.
    pub fn default_stop(self) -> Duration {
        self.timeout / 5
    }

    /// A session without contact for this long is `suspended`: a heartbeat has been under way for
    /// as long as it took to become due.
    pub fn doubt(self) -> Duration {
        self.timeout / 5
    }
}
