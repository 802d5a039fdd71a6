//! How a command ended.

use rustix::io::Errno;

use super::record::Report;

/// How the command ended. Nothing of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, or asked to by [`Guardian::stop`](super::Guardian::stop), with this exit code.
    Exited(i32),
    /// Of this signal, which the guardian did not send, or sent after
    /// [`Guardian::stop`](super::Guardian::stop).
    Signaled(i32),
    /// It could not be executed, for this errno.
    NotStarted(Errno),
    /// It was ended because the claim was over, or as good as.
    Killed(KillReason),
}

/// Why the guardian, or wok in its place, ended the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillReason {
    /// The deadline passed.
    Deadline,
    /// [`Guardian::kill_now`](super::Guardian::kill_now).
    Ordered,
    /// The guardian died.
    GuardianDied,
}

impl Outcome {
    /// The code a shell would give; none for a command that was ended with its claim.
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Outcome::Exited(code) => u8::try_from(code & 0xff).ok(),
            Outcome::Signaled(signal) => u8::try_from((128 + signal) & 0xff).ok(),
            Outcome::NotStarted(Errno::NOENT) => Some(127),
            Outcome::NotStarted(_) => Some(126),
            Outcome::Killed(_) => None,
        }
    }

    /// Whether the command never ran.
    pub fn is_not_started(self) -> bool {
        matches!(self, Outcome::NotStarted(_))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Exited(code) => write!(f, "exited with {code}"),
            Outcome::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Outcome::NotStarted(errno) => {
                write!(f, "cannot be executed: {errno}")?;
                remedy(*errno).map_or(Ok(()), |remedy| write!(f, ": {remedy}"))
            }
            Outcome::Killed(reason) => write!(f, "killed {reason}"),
        }
    }
}

/// What a user can do about the reason why the command cannot be executed.
fn remedy(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::NOENT => "is it installed, and in a directory of `PATH`?",
        Errno::ACCESS => "make it executable (`chmod +x`), or name a program and not a directory",
        Errno::AGAIN => "the limit of processes is reached: raise it (`ulimit -u`)",
        Errno::NOMEM => "the system is short of memory",
        Errno::MFILE => "the limit of open files is reached: raise it (`ulimit -n`)",
        _ => return None,
    })
}

impl std::fmt::Display for KillReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KillReason::Deadline => "because the claim's deadline passed",
            KillReason::Ordered => "with its claim",
            KillReason::GuardianDied => "because its guardian died",
        })
    }
}

impl From<Report> for Option<Outcome> {
    fn from(report: Report) -> Self {
        Some(match report {
            Report::Guardian(_) | Report::Group(_) => return None,
            Report::NotStarted(errno) => Outcome::NotStarted(Errno::from_raw_os_error(errno)),
            Report::Exited(code) => Outcome::Exited(code),
            Report::Signaled(signal) => Outcome::Signaled(signal),
            Report::DeadlinePassed => Outcome::Killed(KillReason::Deadline),
            Report::Killed => Outcome::Killed(KillReason::Ordered),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_started_is_told_with_what_mends_that() {
        for (errno, remedy) in [(Errno::NOENT, "PATH"), (Errno::AGAIN, "ulimit -u")] {
            let told = Outcome::NotStarted(errno).to_string();
            assert!(told.contains(remedy), "{told}");
            assert!(told.contains("cannot be executed"), "{told}");
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (outcome, code) in [
            (Outcome::Exited(0), Some(0)),
            (Outcome::Exited(255), Some(255)),
            (Outcome::Signaled(15), Some(143)),
            (Outcome::NotStarted(Errno::NOENT), Some(127)),
            (Outcome::NotStarted(Errno::ACCESS), Some(126)),
            (Outcome::Killed(KillReason::Deadline), None),
        ] {
            assert_eq!(outcome.exit_code(), code, "{outcome:?}");
        }
    }
}
