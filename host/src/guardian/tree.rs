//! Which processes belong to a command, and ending them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;

use nix::unistd;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// The environment variable that every process of a command inherits. Its value differs from
/// command to command; the guardian itself does not carry it.
pub(super) const MARK: &str = "WOK_GUARDIAN";

/// A line of `/proc/<pid>/stat`, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// A zombie of one thread; a leader that ended before its other threads is none.
    pub(super) is_dead: bool,
}

/// All descendants of this process, the nearest first.
///
/// Complete only for those that existed before the call: the caller repeats it until `wait` finds
/// no child. That is enough because this process is a subreaper: a descendant that loses its parent
/// becomes this process's child, so none leaves the tree.
pub(super) fn descendants() -> io::Result<Vec<Pid>> {
    Ok(with_descendants(&processes()?, [getpid()]).skip(1).collect())
}

/// These processes and all of their descendants among `all`, the nearest first.
pub(super) fn with_descendants(
    all: &[Process],
    roots: impl IntoIterator<Item = Pid>,
) -> impl Iterator<Item = Pid> {
    let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found: Vec<Pid> = roots.into_iter().collect();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        // Removing also ends a cycle, which pids reused during the scan could make.
        found.extend(children.remove(&pid.as_raw_pid()).unwrap_or_default());
        next += 1;
    }
    found.into_iter()
}

/// Sends a signal to every descendant.
pub(super) fn signal_descendants(signal: Signal) {
    for pid in descendants().unwrap_or_default() {
        // Gone already, or not ours to signal: `wait` has the last word.
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to every descendant that is not in that process group.
pub(super) fn signal_those_apart(group: Pid, signal: Signal) {
    let all = processes().unwrap_or_default();
    let apart = |pid: &Pid| all.iter().any(|it| it.pid == *pid && it.group != group.as_raw_pid());
    for pid in with_descendants(&all, [getpid()]).filter(apart) {
        if pid != getpid() {
            // Gone already, or not ours to signal: `wait` has the last word.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Kills every descendant once.
pub(super) fn kill_descendants() {
    for child in children() {
        let _ = kill_process(child, Signal::KILL);
    }
    signal_descendants(Signal::KILL);
}

/// The direct children of this process's first thread, among them descendants that lost their
/// parents, without a look at the rest of the machine.
///
/// A process that forks, exits, and does the same in its child again has moved on by the time a
/// whole scan is done. Each of its generations becomes this process's child, and this is short
/// enough to meet one.
pub(super) fn children() -> Vec<Pid> {
    let own = getpid().as_raw_pid();
    // Absent on kernels without `CONFIG_PROC_CHILDREN`; the whole scan is then all there is.
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
    let children = children.unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// The session of this process, as `/proc` numbers it: zero if its leader is outside the namespace
/// of process ids, as for what a container's runtime starts. `rustix` has no such session.
pub(super) fn own_session() -> io::Result<i32> {
    Ok(unistd::getsid(None)?.as_raw())
}

/// The process group of this process; none if its leader is outside the namespace of process ids.
pub(super) fn own_group() -> Option<Pid> {
    Pid::from_raw(unistd::getpgrp().as_raw())
}

/// Whether a process has this line in its environment. One that may not be looked into has not.
pub(super) fn carries(pid: Pid, line: &[u8]) -> bool {
    fs::read(format!("/proc/{}/environ", pid.as_raw_pid()))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == line))
}

/// All processes of this namespace of process ids.
pub(super) fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = number(&name) else { continue };
        // A process that ends while the scan passes is no error.
        let Ok(line) = fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(process) = parse(&line)
            && seen.insert(pid)
        {
            found.push(process);
        }
    }
    Ok(found)
}

fn number(name: &OsStr) -> Option<i32> {
    std::str::from_utf8(name.as_bytes()).ok()?.parse().ok()
}

/// The fields of proc(5): pid, name in parentheses, state, ppid, pgrp, session, ..., num_threads
/// as the 20th. The name may hold anything, so the last parenthesis counts.
fn parse(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let mut fields = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let threads: i64 = fields.nth(13)?.parse().ok()?;
    let is_dead = matches!(state, "Z" | "X") && threads <= 1;
    Some(Process { pid: Pid::from_raw(pid)?, parent, group, session, is_dead })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_session_and_group_are_those_that_the_scan_finds() {
        let own = processes().unwrap().into_iter().find(|it| it.pid == getpid()).unwrap();
        assert_eq!(own.session, own_session().unwrap());
        assert_eq!(own.group, own_group().map_or(0, Pid::as_raw_pid));
    }

    #[test]
    fn a_stat_line_is_read_whatever_the_name_of_the_program() {
        let tail = "S 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 900";
        let want = Process {
            pid: Pid::from_raw(42).unwrap(),
            parent: 7,
            group: 42,
            session: 43,
            is_dead: false,
        };
        for name in ["sh", "a b", "a) R 1 1 1 (", ") Z 0"] {
            assert_eq!(parse(format!("42 ({name}) {tail}").as_bytes()), Some(want), "{name}");
        }
        let dead = parse(b"42 (sh) Z 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 900");
        assert_eq!(dead, Some(Process { is_dead: true, ..want }));
        let threads_left = parse(b"42 (sh) Z 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 900");
        assert_eq!(threads_left, Some(want));
        for broken in ["", "42", "42 (sh)", "42 (sh) S 7", "x (sh) S 7 42 43"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn the_scan_finds_this_process() {
        let own = getpid();
        let found = processes().unwrap();
        let parent = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        assert!(found.iter().any(|process| process.pid == own && process.parent == parent));
    }
}
