//! Between the guardian's fork and the user's command.
//!
//! A stage of its own, because only the process itself can ask to die with its parent, and because
//! the signal mask it starts with is the guardian's.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::record::{self, Report};
use super::terminal::Terminal;
use super::tree;
use crate::descriptors;

/// The hidden first argument of this stage.
pub(super) const NAME: &str = "__exec";

/// What `ps` shows until it is the command. As with the guardian, "wok" is not in it.
const SHOWN: &str = "claim-command";

/// Where a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// As the terminal's foreground group.
    Foreground,
    /// In the background, or where there is no terminal.
    Background,
}

impl Place {
    fn word(self) -> &'static str {
        match self {
            Place::Foreground => "foreground",
            Place::Background => "background",
        }
    }
}

/// Starts the stage before a command of these words, as the leader of a new process group. That
/// waits for [`go_on`]. The command's processes are found by `mark` if the guardian is
/// no more.
pub(super) fn start(words: &[OsString], mark: &str, place: Place) -> io::Result<Launching> {
    let (channel, theirs) = record::channel()?;
    let child = Command::new("/proc/self/exe")
        .arg0(SHOWN)
        .arg(NAME)
        .arg(getpid().as_raw_pid().to_string())
        .arg(place.word())
        .args(words)
        .env(tree::MARK, mark)
        .stdin(Stdio::from(theirs))
        .process_group(0)
        .spawn()?;
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Launching { channel, leader: leader.ok_or(Errno::SRCH)? })
}

/// The stage before the command.
pub(super) struct Launching {
    /// Says `NotStarted`, or closes when the command runs.
    pub(super) channel: OwnedFd,
    /// The process that will be the command, and its group.
    pub(super) leader: Pid,
}

/// Lets the command start that the stage at the other end of the channel waits to become, with this standard
/// input.
pub(super) fn go_on(channel: &OwnedFd, stdin: OwnedFd) -> Result<(), Errno> {
    record::hand_over(channel, stdin.as_fd())
}

/// Becomes the command.
pub(super) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let stdin = io::stdin();
    // A duplicate, which closes on exec: the command gets another standard input.
    let Ok(channel) = stdin.as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let errno = become_command(&mut arguments, &channel);
    // If nobody listens, nobody waits for the reason either.
    let _ = record::tell(&channel, Report::NotStarted(errno.raw_os_error()));
    ExitCode::FAILURE
}

fn become_command(arguments: &mut impl Iterator<Item = OsString>, channel: &OwnedFd) -> Errno {
    let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
    let in_foreground = arguments.next().is_some_and(|place| place == Place::Foreground.word());
    let Some(program) = arguments.next() else {
        return Errno::INVAL;
    };

    if let Err(errno) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return errno;
    }
    // The order matters: a guardian that died before the request above sends no signal.
    if getppid() != parent.and_then(Pid::from_raw) {
        return Errno::SRCH;
    }
    let stdin = match record::take_over(channel) {
        Ok(stdin) => stdin,
        Err(errno) => return errno,
    };
    // Done here and not by the guardian: the command must not find itself in the background when
    // it first reads.
    if in_foreground && let Some(terminal) = Terminal::open(getpid()) {
        terminal.give(getpid());
    }
    // The guardian blocks every signal, and a mask is inherited.
    if SigSet::empty().thread_set_mask().is_err() {
        return Errno::INVAL;
    }
    let memo = descriptors::restore();
    let error =
        Command::new(program).args(arguments).env_remove(memo).stdin(Stdio::from(stdin)).exec();
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}
