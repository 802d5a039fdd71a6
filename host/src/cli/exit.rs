//! Exit codes, decided in one place. The numbers below 128 are those of `sysexits.h`, except that
//! 76 means a lost claim.

use std::borrow::Cow;
use std::path::PathBuf;
use std::process::ExitCode;

use super::stdout;
use crate::guest::Fault;
use crate::participant::{Ending, Loss};

/// Exit code of a failed test, not of an error: an invariant was broken in simulation.
pub(super) const BROKEN: u8 = 1;
/// Nothing was broken in simulation, and nobody judged all of it or called all operations.
pub(super) const INCOMPLETE: u8 = 2;
/// Stopped by Ctrl-C, as a shell has it.
pub(super) const INTERRUPTED: u8 = 130;
const USAGE: u8 = 64;
const UNREACHABLE: u8 = 69;
const MODULE_FAILED: u8 = 70;
const NO_OUTPUT: u8 = 74;
const NOT_ACQUIRED: u8 = 75;
/// The claim was lost, or the command was ended with it.
pub(super) const LOST: u8 = 76;
/// A config is wrong, and what is wrong with it has been printed.
pub(super) const CONFIG: u8 = 78;

/// What is said where an operation was under way that was not answered, as the API says it.
const MAY_BE_DONE: &str = "; the operation was under way, and what it was to write for good may have been \
                           written, so look before you call it again";

/// Why a command did not do what it was asked to. Each kind has its exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// ZooKeeper cannot be reached, or refuses.
    #[error("{0}")]
    Unreachable(String),
    /// The module failed, or answered an error.
    #[error("{0}")]
    Module(String),
    /// What the command is to tell cannot be written. What the command did stands.
    #[error("cannot write to standard output: {0}")]
    Output(&'static std::io::Error),
    /// A file that was asked for cannot be written.
    #[error("cannot write {}: {error}; name a place that can be written to", path.display())]
    File {
        /// The file, or the directory of several.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The claim was not acquired in time.
    #[error("{0}")]
    NotAcquired(String),
    /// The claim, or the session before there was one, was lost.
    #[error("{what}: {loss}")]
    Lost {
        /// What was under way.
        what: String,
        /// What was lost.
        loss: LossInWords,
    },
    /// The command was ended because the claim was over for another reason than a loss.
    #[error("{0}")]
    CommandEnded(String),
    /// A config or a module in it is wrong.
    #[error("{0}")]
    Config(String),
    /// The command cannot be started, with a shell's code for that.
    #[error("{message}")]
    NotStarted {
        /// What and why.
        message: String,
        /// 126 or 127.
        code: u8,
    },
    /// Withdrawn by a signal, with a shell's code for that.
    #[error("ended by signal {0} before anything was held")]
    Signalled(u8),
}

/// A loss as it is told, by a participant of this process or by the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossInWords {
    /// The reason in one word, for programs.
    pub reason: Cow<'static, str>,
    /// What is behind the reason, in one word.
    pub cause: Cow<'static, str>,
    /// For people.
    pub message: String,
}

impl From<&Loss> for LossInWords {
    fn from(loss: &Loss) -> Self {
        let (reason, cause) = (loss.reason().into(), loss.cause().into());
        LossInWords { reason, cause, message: loss.to_string() }
    }
}

impl LossInWords {
    /// The module gave the claim up, and the command was stopped first.
    pub(super) fn by_module() -> Self {
        LossInWords {
            reason: "released".into(),
            cause: "module".into(),
            message:
                "the module gave the claim up: the command was stopped, or was not started any \
                      more"
                    .to_owned(),
        }
    }

    /// The daemon gave the claim up, and the command was stopped first.
    pub(super) fn by_daemon(why: &str) -> Self {
        LossInWords {
            reason: "released".into(),
            cause: "daemon".into(),
            message: format!(
                "the daemon was asked to give the claim up, so the command was stopped: {why}"
            ),
        }
    }
}

impl std::fmt::Display for LossInWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    /// Its exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) => USAGE,
            Failure::Unreachable(_) => UNREACHABLE,
            Failure::Module(_) => MODULE_FAILED,
            Failure::Output(_) | Failure::File { .. } => NO_OUTPUT,
            Failure::NotAcquired(_) => NOT_ACQUIRED,
            Failure::Lost { .. } | Failure::CommandEnded(_) => LOST,
            Failure::Config(_) => CONFIG,
            Failure::NotStarted { code, .. } => *code,
            Failure::Signalled(signal) => 128_u8.saturating_add(*signal),
        })
    }

    /// Why an operation came to nothing because its participant ended first.
    pub(super) fn of_ending(what: String, ending: Ending) -> Self {
        match ending {
            Ending::Lost(loss) => Failure::Lost { what, loss: LossInWords::from(&loss) },
            Ending::Failed(fault) => match *fault {
                Fault::ConfigRefused { .. } => Failure::Config(fault.to_string()),
                _ => Failure::Module(fault.to_string()),
            },
            Ending::Left => Failure::Module(format!("{what}: it ended")),
        }
    }

    /// The same, of an operation that was under way: nobody knows what of it was done.
    pub(super) fn of_unanswered(self) -> Self {
        match self {
            Failure::Lost { what, mut loss } => {
                loss.message += MAY_BE_DONE;
                Failure::Lost { what, loss }
            }
            Failure::Unreachable(message) => Failure::Unreachable(message + MAY_BE_DONE),
            other => other,
        }
    }

    /// What was lost, if that is why.
    pub(super) fn loss(&self) -> Option<&LossInWords> {
        match self {
            Failure::Lost { loss, .. } => Some(loss),
            _ => None,
        }
    }

    /// Its kind in one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Usage(_) => "usage",
            Failure::Unreachable(_) => "unreachable",
            Failure::Module(_) => "module",
            Failure::Output(_) | Failure::File { .. } => "output",
            Failure::NotAcquired(_) => "not-acquired",
            Failure::Lost { .. } | Failure::CommandEnded(_) => "lost",
            Failure::Config(_) => "config",
            Failure::NotStarted { .. } => "not-started",
            Failure::Signalled(_) => "signalled",
        }
    }
}

/// Prints what clap has to say, with our exit code for wrong usage.
///
/// # Errors
/// Help that was asked for cannot be written.
pub(super) fn usage(error: &clap::Error) -> Result<ExitCode, Failure> {
    let is_help = !error.use_stderr();
    match error.print() {
        Err(error) if is_help => stdout::note(error),
        // Nothing can be said where standard error is closed.
        _ => {}
    }
    match stdout::failure() {
        Some(error) => Err(Failure::Output(error)),
        None => Ok(ExitCode::from(if is_help { 0 } else { USAGE })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionLoss;

    #[test]
    fn who_called_is_told_that_it_may_have_happened_by_the_same_exit_code() {
        let lost = Ending::Lost(Loss::Session(SessionLoss::Expired));
        for failure in [
            Failure::of_ending("counter add".to_owned(), lost),
            Failure::Unreachable("the daemon is gone".to_owned()),
        ] {
            let (kind, said) = (failure.kind(), failure.to_string());
            let called = failure.of_unanswered();
            assert_eq!((called.kind(), called.to_string()), (kind, format!("{said}{MAY_BE_DONE}")));
        }
        let refused = Failure::Module("counter add: it does not fit".to_owned());
        assert_eq!(refused.of_unanswered().to_string(), "counter add: it does not fit");
    }
}
