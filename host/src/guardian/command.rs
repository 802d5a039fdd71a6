//! What a guardian runs.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::Signal;

/// A command that runs under guard, wherever it is named: in a config, on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedCommand {
    /// The program, looked up in `PATH` as a shell does, and its arguments.
    pub words: Vec<OsString>,
    /// Variables added to the environment that it shares with wok.
    pub env: Vec<(OsString, OsString)>,
    /// The signal that asks it to end.
    pub stop_signal: Signal,
    /// How long it has between that and the kill.
    pub stop_timeout: Duration,
    /// Who works with it.
    pub attendance: Attendance,
}

/// Who works with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// Perhaps a person: it reads wok's standard input, and where wok is the terminal's foreground
    /// job, the command takes that place.
    Attended,
    /// Nobody: its standard input is empty, and the terminal stays wok's.
    Unattended,
}
