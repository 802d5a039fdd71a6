//! The children of this process: the helpers that it started, and the orphans that came to it.
//!
//! A guardian is the subreaper of its command, so what the command starts stays below the guardian.
//! When the guardian is killed, its children go to the next subreaper above, which is the keeper.
//! When the keeper is killed as well, they go to wok if wok is a subreaper. Then wok finds all of them,
//! also those that have left their session, their group and their environment. Where wok is no
//! subreaper, it misses some of them.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use tokio::process::{Child, Command};

use super::tree::{self, Process};

static FAMILY: Mutex<Family> =
    Mutex::new(Family { helpers: BTreeSet::new(), inherited: BTreeSet::new(), adopts: false });

/// What is known of the children of this process.
#[derive(Debug)]
pub(super) struct Family {
    /// Keepers, and the guardians that they have started. A guardian whose keeper was killed is an
    /// orphan, too, if this process adopts them.
    helpers: BTreeSet<i32>,
    /// The children that this process had when it began to adopt, as from a shell that has become it by an
    /// `exec`. Nobody takes their statuses, so no other process gets their numbers.
    inherited: BTreeSet<i32>,
    adopts: bool,
}

/// Has the orphans of commands come to this process when a guardian and its keeper are killed, so
/// that all of them are found and killed.
///
/// This is a property of the whole process (`PR_SET_CHILD_SUBREAPER`), and of a child that this
/// process did not start as a guardian it is taken for granted that it belonged to a command. So
/// this is for a program like `wok` that starts nothing else. A program that embeds this library
/// and starts processes of its own leaves it alone: where control groups cannot be made, a command
/// whose guardian and keeper are killed is then found by its process group and environment only.
///
/// # Errors
/// The kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    let mut family = family();
    family.inherited = tree::children().into_iter().map(Pid::as_raw_pid).collect();
    set_child_subreaper(Some(getpid()))?;
    family.adopts = true;
    Ok(())
}

/// The family. Nobody is born into it as long as this is held.
pub(super) fn family() -> MutexGuard<'static, Family> {
    // No panic can leave it half changed.
    FAMILY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Family {
    /// Starts a helper.
    pub(super) fn start(&mut self, command: &mut Command) -> io::Result<Child> {
        let child = command.spawn()?;
        self.helpers.extend(id(&child).map(Pid::as_raw_pid));
        Ok(child)
    }

    /// A guardian, which its keeper has started, has said who it is.
    pub(super) fn welcome(&mut self, guardian: Pid) {
        self.helpers.insert(guardian.as_raw_pid());
    }

    /// The helper's status was taken: its number may be given to another process.
    pub(super) fn forget(&mut self, helper: Option<Pid>) {
        if let Some(helper) = helper {
            self.helpers.remove(&helper.as_raw_pid());
        }
    }

    /// Whether this is a helper of wok's.
    pub(super) fn is_helper(&self, pid: Pid) -> bool {
        self.helpers.contains(&pid.as_raw_pid())
    }

    fn was_inherited(&self, pid: Pid) -> bool {
        self.inherited.contains(&pid.as_raw_pid())
    }

    /// Whether this process came here because its guardian died.
    pub(super) fn is_orphan(&self, process: &Process) -> bool {
        self.adopts
            && process.parent == getpid().as_raw_pid()
            && !self.is_helper(process.pid)
            && !self.was_inherited(process.pid)
    }

    /// Kills the orphans themselves, not what is below them.
    pub(super) fn kill_orphans(&self) {
        if !self.adopts {
            return;
        }
        for child in tree::children() {
            if !self.is_helper(child) && !self.was_inherited(child) {
                let _ = kill_process(child, Signal::KILL);
            }
        }
    }

    /// Whether a guardian whose keeper was killed has yet to end. If it has ended as a child of this
    /// process, its status is taken.
    pub(super) fn is_about_to_end(&self, guardian: Option<Pid>) -> bool {
        guardian.is_some_and(|it| matches!(waitpid(Some(it), WaitOptions::NOHANG), Ok(None)))
    }

    /// Takes the status of an orphan that has ended.
    pub(super) fn bury(&self, orphan: &Process) {
        if self.is_orphan(orphan) {
            // Taken already, or not quite dead: the next look sees.
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }
    }
}

/// A child's process id; none once its status was taken.
pub(super) fn id(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}
