//! The session timeout, and what of it is left for stopping a command.

use std::str::FromStr;
use std::time::Duration;

use super::quantity::{BadValue, parse_duration, spell_duration};
use crate::session::Timing;

/// ZooKeeper's own default tick of 2 s grants sessions from 4 s to 40 s; 10 s rides out a leader
/// election and still hands a dead holder's lock on within seconds.
const DEFAULT: Duration = Duration::from_secs(10);

/// The clock is looked at every 100 ms and the margin is at least 200 ms: below this, too little
/// is left to hold anything in.
const MIN: Duration = Duration::from_secs(1);

/// A host that dies keeps what it held for this long.
const MAX: Duration = Duration::from_secs(3600);

/// How long the server keeps the session of a host that it does not hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionTimeout(Duration);

impl SessionTimeout {
    /// A timeout that a session can be judged by.
    ///
    /// # Errors
    /// It is too short, or too long.
    pub fn of(timeout: Duration) -> Result<Self, BadValue> {
        if (MIN..=MAX).contains(&timeout) {
            return Ok(SessionTimeout(timeout));
        }
        let remedy = format!(
            "choose from \"{}\" to \"{}\"; a server with default settings grants \"4s\" to \"40s\"",
            spell_duration(MIN),
            spell_duration(MAX)
        );
        Err(BadValue::new(format!("{timeout:?} is out of range"), remedy))
    }

    /// The timeout to ask the server for; it may grant another.
    pub fn get(self) -> Duration {
        self.0
    }

    /// The times of a session that is granted this timeout.
    pub fn timing(self) -> Timing {
        Timing::new(self.0)
    }
}

/// The longest time that a command can be given to stop.
///
/// The signal goes out stop-timeout before a claim's deadline, and in a healthy session that moment
/// must never come. So what comes first is the doubt, two heartbeats without an answer: one that is
/// slow is no reason to stop anything.
pub fn longest_stop(timing: Timing) -> Duration {
    timing.patience().saturating_sub(timing.doubt())
}

/// Checks that a command can be given this time to stop; a server may grant a shorter session than
/// the file asks for, so this is asked again once there is one.
///
/// # Errors
/// It is zero, or does not fit.
pub fn check_stop(stop: Duration, timing: Timing) -> Result<(), BadValue> {
    if stop.is_zero() {
        let remedy = "leave `stop-timeout` out for the default, or give \"100ms\" or more";
        return Err(BadValue::new("the command would have no time to stop", remedy));
    }
    if stop <= longest_stop(timing) {
        return Ok(());
    }
    let message = format!(
        "{} does not fit into a session timeout of {}: of that, {} are the margin before the \
         session expires and {} are two heartbeats",
        spell_duration(stop),
        spell_duration(timing.timeout()),
        spell_duration(timing.margin()),
        spell_duration(timing.doubt()),
    );
    let longest = spell_duration(longest_stop(timing));
    Err(BadValue::new(message, format!("give at most \"{longest}\", or raise the session timeout")))
}

impl Default for SessionTimeout {
    fn default() -> Self {
        SessionTimeout(DEFAULT)
    }
}

impl FromStr for SessionTimeout {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        // In the words that were written, which may be another unit's.
        SessionTimeout::of(parse_duration(text)?)
            .map_err(|bad| BadValue::new(format!("{text} is out of range"), bad.remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_must_leave_the_margin_and_two_heartbeats() {
        let timing = SessionTimeout::default().timing();
        assert_eq!(longest_stop(timing), Duration::from_millis(4_250));
        assert_eq!(check_stop(Duration::from_millis(4_250), timing), Ok(()));
        assert!(check_stop(Duration::from_millis(4_251), timing).is_err());
        assert!(check_stop(Duration::ZERO, timing).is_err());
    }

    #[test]
    fn the_default_stop_fits_into_every_timeout() {
        for timeout in [MIN, DEFAULT, MAX].map(SessionTimeout) {
            assert_eq!(check_stop(timeout.timing().default_stop(), timeout.timing()), Ok(()));
        }
    }

    #[test]
    fn what_a_server_grants_may_be_too_short_for_any_stop() {
        let tiny = Timing::new(Duration::from_millis(100));
        assert_eq!(longest_stop(tiny), Duration::ZERO);
        assert!(check_stop(Duration::from_millis(1), tiny).is_err());
    }
}
