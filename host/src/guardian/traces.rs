//! A command's processes as wok sees them, who is not their ancestor while the guardian lives.

use std::collections::HashSet;
use std::io;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::cgroup::Cgroup;
use super::family::family;
use super::tree::{self, Process};

/// By what they are found: any one will do.
#[derive(Debug, Clone)]
pub(super) struct Traces {
    /// The command's control group, if it could have one.
    pub(super) cgroup: Option<Cgroup>,
    /// The keeper, whose descendants they are as long as it lives. Once it is dead and the guardian
    /// as well, they are orphans of wok's, if wok adopts them.
    pub(super) keeper: Option<Pid>,
    /// The guardian, once it has said who it is and as long as it lives.
    pub(super) guardian: Option<Pid>,
    /// The value of [`tree::MARK`] in their environment.
    pub(super) mark: String,
    /// The command's process group, if it got as far.
    pub(super) group: Option<i32>,
    /// Its session. A group's number may be used again by another; hardly ever in this session.
    pub(super) session: i32,
}

impl Traces {
    /// Kills them all once; answers who was alive.
    pub(super) fn kill(&self) -> io::Result<Vec<Pid>> {
        let alive = self.kill_found();
        // Behind that: the kernel may have this wait for other control groups that are made or removed just now.
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        alive
    }

    fn kill_found(&self) -> io::Result<Vec<Pid>> {
        let family = family();
        family.kill_orphans();
        let all = tree::processes()?;
        let orphans = all.iter().filter(|it| family.is_orphan(it)).map(|it| it.pid);
        let roots = orphans.chain(self.keeper).chain(self.guardian);
        let kin: HashSet<Pid> = tree::with_descendants(&all, roots).collect();
        let line = [tree::MARK.as_bytes(), b"=", self.mark.as_bytes()].concat();
        let mut alive = Vec::new();
        for process in &all {
            if process.pid == getpid() || family.is_helper(process.pid) {
                continue;
            }
            let is_ours = kin.contains(&process.pid)
                || self.has_member(process)
                || tree::carries(process.pid, &line);
            if is_ours && process.is_dead {
                family.bury(process);
            } else if is_ours {
                alive.push(process.pid);
                // Gone already, or not ours to signal: the next look has the last word.
                let _ = kill_process(process.pid, Signal::KILL);
            }
        }
        Ok(alive)
    }

    /// Whether a process is alive in the control group, which may have been hidden from a look
    /// round.
    pub(super) fn is_populated(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::is_populated)
    }

    fn has_member(&self, process: &Process) -> bool {
        self.group.is_some_and(|group| group == process.group && self.session == process.session)
    }
}
