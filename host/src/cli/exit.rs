//! Exit codes, decided in one place. The numbers below 128 are those of `sysexits.h`, except that
//! 76 means a lost claim.

use std::process::ExitCode;

/// An invariant was broken in simulation: as of a test, not of an error.
pub(super) const BROKEN: u8 = 1;
const USAGE: u8 = 64;
const UNREACHABLE: u8 = 69;
const MODULE_FAILED: u8 = 70;
const NOT_ACQUIRED: u8 = 75;
const LOST: u8 = 76;
const CONFIG: u8 = 78;

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
    /// The claim was not acquired in time.
    #[error("{0}")]
    NotAcquired(String),
    /// The claim was lost.
    #[error("{0}")]
    Lost(String),
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

impl Failure {
    /// Its exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) => USAGE,
            Failure::Unreachable(_) => UNREACHABLE,
            Failure::Module(_) => MODULE_FAILED,
            Failure::NotAcquired(_) => NOT_ACQUIRED,
            Failure::Lost(_) => LOST,
            Failure::Config(_) => CONFIG,
            Failure::NotStarted { code, .. } => *code,
            Failure::Signalled(signal) => 128_u8.saturating_add(*signal),
        })
    }

    /// Its kind in one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Usage(_) => "usage",
            Failure::Unreachable(_) => "unreachable",
            Failure::Module(_) => "module",
            Failure::NotAcquired(_) => "not-acquired",
            Failure::Lost(_) => "lost",
            Failure::Config(_) => "config",
            Failure::NotStarted { .. } => "not-started",
            Failure::Signalled(_) => "signalled",
        }
    }
}

/// Prints what clap has to say, with our exit code for wrong usage.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a closed standard output here.
    error.print().ok();
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}
