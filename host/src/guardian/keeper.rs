//! The keeper: a process that kills a command's control group when the guardian is no more.
//!
//! It is the one who is left when wok and the guardian are killed in the same moment, and it needs
//! to know nothing but the group. There is no keeper where there is no control group.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use tokio::process::{Child, Command};

use super::cgroup::Cgroup;
use super::family::family;
use super::record::{self, Order, Received};

/// The hidden first argument of this process.
pub(super) const NAME: &str = "__keeper";

/// What `ps` shows. Like the guardian's it does not contain "wok": see there.
const SHOWN: &str = "claim-keeper";

/// How often the group is killed until nobody is alive in it: at first, and at most.
const SWEEP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// Starts the keeper of a group, which acts when the other end of `line` is closed.
pub(super) fn start(cgroup: &Cgroup, line: OwnedFd) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(SHOWN).arg(NAME).arg(cgroup.directory());
    command.stdin(Stdio::from(line)).stdout(Stdio::null()).stderr(Stdio::null());
    family().start(command.process_group(0).kill_on_drop(false))
}

/// Is the keeper until the guardian is no more and nothing is alive in the group.
pub(super) fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(cgroup) = words.next().map(|directory| Cgroup::at(PathBuf::from(directory))) else {
        return ExitCode::FAILURE;
    };
    if SigSet::all().thread_block().is_err() {
        return ExitCode::FAILURE;
    }
    let _ = std::fs::write("/proc/self/comm", SHOWN);
    let line = io::stdin();
    while record::hear::<Order>(line.as_fd()) != Received::Closed {
        // An interruption is a reason to look, like any other.
        let _ = poll(&mut [PollFd::new(&line, PollFlags::IN)], None);
    }
    let mut pause = SWEEP.0;
    cgroup.kill();
    while cgroup.is_populated() {
        // Of nothing: the line is closed, and the group has no word for being empty.
        let _ = poll(&mut [], Some(&Timespec::try_from(pause).unwrap_or_default()));
        pause = (pause * 2).min(SWEEP.1);
        cgroup.kill();
    }
    cgroup.remove();
    ExitCode::SUCCESS
}
