//! Has the kernel kill the guardian when it should long have acted.
//!
//! A guardian that somebody stopped does nothing at the deadline, and if wok is stopped as well,
//! nobody continues it. A timer of the kernel's goes off all the same, and its signal is the one
//! that ends a stopped process, too. What the guardian leaves behind is then the keeper's.

use std::time::Duration;

use nix::Result;
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

use crate::clock::Boottime;

/// How long after the instant at which it is to act the guardian is given up. Less than a deadline
/// lies ahead of the session's end, which is never less than 200 ms.
const GRACE: Duration = Duration::from_millis(100);

/// The timer.
pub(super) struct Deadman {
    timer: Timer,
    at: Option<Boottime>,
}

impl Deadman {
    /// One that is not wound up.
    pub(super) fn new() -> Result<Self> {
        let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        let timer = Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(kill))?;
        Ok(Deadman { timer, at: None })
    }

    /// This process is killed unless it calls this again until the instant, and a little longer.
    pub(super) fn wind_up(&mut self, until: Boottime) {
        if self.at == Some(until) {
            return;
        }
        let at = until + GRACE;
        let at = Duration::from_nanos(at.as_nanos());
        let once = Expiration::OneShot(TimeSpec::from_duration(at));
        // It fails for times that no clock reaches, which need no timer.
        if self.timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_ok() {
            self.at = Some(until);
        }
    }
}
