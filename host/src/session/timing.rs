//! The times that a session is judged by, all derived from the negotiated timeout.

use std::time::Duration;

/// The margin is never under this, whatever the timeout: a command is killed within it.
const LEAST_MARGIN: Duration = Duration::from_millis(200);

/// How often deadlines are looked at. A stopped process or a suspended machine finds out this late
/// at most after it goes on.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The times that a session is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    timeout: Duration,
    /// Two ticks of the servers, or more.
    least: Duration,
}

impl Timing {
    /// The times of a session with this negotiated timeout.
    pub fn new(timeout: Duration) -> Self {
        Timing { timeout, least: timeout }
    }

    /// The same, now that it is known that the servers grant a session timeout as short as `least`.
    #[must_use]
    pub fn granting(self, least: Duration) -> Self {
        Timing { least: self.least.min(least), ..self }
    }

    /// The negotiated timeout.
    pub fn timeout(self) -> Duration {
        self.timeout
    }

    /// How long the leader may not have been told of what a session sent: half a tick, the time
    /// between two of its pings to a follower. A server grants two ticks at least, unless its
    /// `minSessionTimeout` says otherwise, so half a tick is a quarter of any timeout that it grants
    /// at most.
    pub(super) fn untold(self) -> Duration {
        self.least / 4
    }

    /// Within how long the leader has pinged each of its followers: within half a tick, and what a leader
    /// may be late that has much to do.
    pub(super) fn ping(self) -> Duration {
        self.untold() + self.timeout / 40
    }

    /// How much less than the session timeout the host believes in a session after its newest
    /// contact: three eighths of it while nothing is known of the servers' tick, less afterwards.
    ///
    /// When a follower is cut off from its leader right after it has passed a request on, the leader
    /// has been told of a request that is older by half a tick and a heartbeat at most. A fortieth of
    /// the timeout comes on top, for heartbeats that come late.
    pub fn margin(self) -> Duration {
        (self.untold() + self.heartbeat() + self.timeout / 40).max(LEAST_MARGIN)
    }

    /// How long after the newest contact the host gives the session up.
    pub fn patience(self) -> Duration {
        self.timeout.saturating_sub(self.margin())
    }

    /// A session without contact for this long is asked for a sign of life. A longer interval would
    /// cost fewer transactions and give a session up earlier: see [`margin`](Timing::margin).
    pub fn heartbeat(self) -> Duration {
        self.timeout / 10
    }

    /// A heartbeat that is not answered is followed by a `sync` as often as this. On a link that loses
    /// packets, those that come behind a lost one tell TCP of the loss within a round trip; TCP's own
    /// timer doubles with every loss, and lets nothing else out meanwhile.
    pub fn reminder(self) -> Duration {
        self.timeout / 40
    }

    /// The time that a command is given to stop unless something else is said: a second at the
    /// default timeout. The command is asked to stop so long before the deadline, so a longer one
    /// ends commands that contact in time would have saved.
    pub fn default_stop(self) -> Duration {
        self.timeout / 10
    }

    /// A session without contact for this long is `suspended`: a heartbeat has been under way for
    /// as long as it took to become due.
    pub fn doubt(self) -> Duration {
        self.timeout / 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_what_the_leader_may_not_have_been_told() {
        let seconds = Duration::from_secs;
        let timing = Timing::new(seconds(8));
        assert_eq!((timing.margin(), timing.patience()), (seconds(3), seconds(5)));
        let known = timing.granting(seconds(4));
        assert_eq!((known.margin(), known.patience()), (seconds(2), seconds(6)));
        assert_eq!(known.granting(seconds(6)), known);
        let (timeout, heartbeat) = (known.timeout(), known.heartbeat());
        assert_eq!((timeout, heartbeat), (timing.timeout(), timing.heartbeat()));
        assert_eq!(Timing::new(Duration::from_millis(80)).margin(), LEAST_MARGIN);
    }
}
