//! The keeper: a process between wok and the guardian that kills what a dead guardian leaves.
//!
//! It is the one who is left when wok and the guardian are killed in the same moment. It is the
//! guardian's parent and a subreaper, so the command's processes become its children when the
//! guardian dies, whatever they have done to their session, group and environment. It waits for the
//! guardian and knows of no deadline.
//!
//! The guardian has the command's words among its arguments, and who kills processes by such words
//! finds it. So the keeper, once it has started the guardian, executes itself again without them.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait, waitpid};
use rustix::time::Timespec;

use super::cgroup::Cgroup;
use super::record::{self, Report};
use super::tree;
use super::watchdog::{self, Arguments};
use super::words::say;

/// The hidden first argument of this process while it starts the guardian.
pub(super) const NAME: &str = "__keeper";

/// The hidden first argument from then on.
pub(super) const KEEPS: &str = "__keeps";

/// What `ps` shows. Like the guardian's it does not contain "wok": see there.
pub(super) const SHOWN: &str = "claim-keeper";

/// How often what is left is killed until nothing is: at first, and at most.
const SWEEP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// Starts the guardian and goes on as its keeper. The words are the guardian's.
pub(super) fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    if let Err(error) = be_ready() {
        return refused(&error);
    }
    let words: Vec<OsString> = words.collect();
    let Some(arguments) = Arguments::read(words.iter().cloned()) else {
        return refused(&"started by wok itself, never by hand; see `wok hold --help`");
    };
    let guardian = Command::new("/proc/self/exe")
        .arg0(watchdog::SHOWN)
        .arg(watchdog::NAME)
        .args(words)
        .process_group(0)
        .spawn();
    let guardian = match guardian {
        Ok(guardian) => guardian.id(),
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            // If nobody listens, nobody waits for the reason either.
            let _ = record::tell(io::stdin(), Report::NotStarted(errno.raw_os_error()));
            return refused(&error);
        }
    };
    let cgroup = arguments.cgroup;
    let directory = cgroup.as_ref().map(|it| it.directory().as_os_str().to_owned());
    // Nothing of the channel stays here: its end is to close with the guardian. If this fails, a
    // keeper that shows the command's words is better than none.
    let _ = Command::new("/proc/self/exe")
        .arg0(SHOWN)
        .args([KEEPS, &guardian.to_string()])
        .args(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .exec();
    keep(guardian, cgroup.as_ref())
}

/// Is the keeper of a guardian that it has started: its process id, and the control group's
/// directory if there is one.
pub(super) fn main_of_keeper(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    // An exec keeps the children, the mask and the place as a subreaper.
    let guardian = words.next().and_then(|pid| pid.to_str()?.parse().ok());
    let cgroup = words.next().map(|directory| Cgroup::at(PathBuf::from(directory)));
    match guardian {
        Some(guardian) => keep(guardian, cgroup.as_ref()),
        None => ExitCode::FAILURE,
    }
}

fn be_ready() -> io::Result<()> {
    SigSet::all().thread_block()?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

fn refused(reason: &dyn std::fmt::Display) -> ExitCode {
    say(format_args!("wok keeper: {reason}"));
    ExitCode::FAILURE
}

/// Waits for the guardian's end, and then kills until nothing is left.
fn keep(guardian: u32, cgroup: Option<&Cgroup>) -> ExitCode {
    let _ = std::fs::write("/proc/self/comm", SHOWN);
    let guardian = i32::try_from(guardian).ok().and_then(Pid::from_raw);
    // As long as the guardian lives, orphans are its own and this process has no other child.
    while matches!(waitpid(guardian, WaitOptions::empty()), Err(Errno::INTR)) {}
    let mut pause = SWEEP.0;
    loop {
        match bury_children() {
            Children::Gone if !cgroup.is_some_and(Cgroup::is_populated) => break,
            // Some processes fork and end, again and again: no generation may get ahead.
            Children::Ended => pause = SWEEP.0,
            Children::Gone | Children::Left => {}
        }
        tree::kill_descendants();
        // Behind that: the kernel may have this wait for other control groups that are made or removed just now.
        if let Some(cgroup) = cgroup {
            cgroup.kill();
        }
        // Of nothing: neither the group nor the end of a child has a descriptor here.
        let _ = poll(&mut [], Some(&Timespec::try_from(pause).unwrap_or_default()));
        pause = (pause * 2).min(SWEEP.1);
    }
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    ExitCode::SUCCESS
}

/// What became of this process's children since the last look.
enum Children {
    /// There are none any more.
    Gone,
    /// Some have ended, and others are left.
    Ended,
    /// None of them has ended.
    Left,
}

/// Takes the statuses of all children that have ended.
fn bury_children() -> Children {
    let mut children = Children::Left;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => children = Children::Ended,
            Ok(None) => return children,
            Err(Errno::INTR) => {}
            // The only proof: a descendant that lost its parent would be a child of this one.
            Err(_) => return Children::Gone,
        }
    }
}
