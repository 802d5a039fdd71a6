//! Until when a claim of the daemon's may be relied on by who runs something under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Boottime;

/// How long the daemon keeps a participant whose app does not renew its lease. An app that is stopped
/// holds others up for so long: about as long as a wok with a session of its own does, by the
/// session timeout.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// How often the lease is renewed: four times before it is given up.
pub(super) const RENEW: Duration = Duration::from_millis(1_500);

/// So long before the lease ends nothing may run under the claim any more: a command is killed
/// within that.
const MARGIN: Duration = Duration::from_millis(2_500);

/// No deadline has been told.
const NONE: u64 = 0;

/// Until when what is held may be relied on: as long as the daemon says, and no longer than the
/// lease. Both are instants of one clock, which all processes of a machine share, so it does not
/// matter when a line was read, or how long ago it was written.
#[derive(Debug, Clone)]
pub struct Tenure(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// By the newest line that said so.
    told: AtomicU64,
    /// When the newest renewal was sent that the daemon has answered. The daemon counts from a later
    /// instant.
    renewed: AtomicU64,
}

impl Tenure {
    /// Of a participant whose join was sent then.
    pub(super) fn new(sent: Boottime) -> Self {
        let renewed = AtomicU64::new(sent.as_nanos());
        Tenure(Arc::new(Shared { told: AtomicU64::new(NONE), renewed }))
    }

    /// The daemon has said so; the newest word counts.
    pub(super) fn told(&self, deadline_ms: u64) {
        let deadline = Boottime::from_nanos(0) + Duration::from_millis(deadline_ms);
        self.0.told.store(deadline.as_nanos(), Ordering::Release);
    }

    /// A renewal that was sent then has been answered.
    pub(super) fn renewed(&self, sent: Boottime) {
        self.0.renewed.fetch_max(sent.as_nanos(), Ordering::AcqRel);
    }

    /// Until when what is held may be relied on; none while the daemon has said nothing of that.
    pub fn deadline(&self) -> Option<Boottime> {
        match self.0.told.load(Ordering::Acquire) {
            NONE => None,
            told => Some(Boottime::from_nanos(told).min(self.lease() - MARGIN)),
        }
    }

    /// When the daemon ends the participant if it hears nothing more; not before that.
    pub(super) fn lease(&self) -> Boottime {
        Boottime::from_nanos(self.0.renewed.load(Ordering::Acquire)) + LEASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Boottime {
        Boottime::from_nanos(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_held_may_be_relied_on_as_long_as_the_daemon_says_and_the_lease_lasts() {
        let tenure = Tenure::new(at(100));
        assert_eq!(tenure.deadline(), None);
        tenure.told(105_000);
        assert_eq!(tenure.deadline(), Some(at(105)));
        tenure.told(109_000);
        let by_lease = at(110) - MARGIN;
        assert_eq!(tenure.deadline(), Some(by_lease));
        tenure.renewed(at(103));
        assert_eq!(tenure.deadline(), Some(at(109)));
        // An answer that comes late says nothing of what was sent after it.
        tenure.renewed(at(101));
        assert_eq!(tenure.deadline(), Some(at(109)));
        tenure.told(104_000);
        assert_eq!(tenure.deadline(), Some(at(104)));
        tenure.told(u64::MAX);
        assert_eq!(tenure.deadline(), Some(at(113) - MARGIN));
    }

    #[test]
    fn several_renewals_fit_into_a_lease() {
        assert!(RENEW * 4 <= LEASE - MARGIN);
    }
}
