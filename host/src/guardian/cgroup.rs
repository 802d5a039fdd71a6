//! A control group for a command: a set of processes that none of them can leave by a fork, a new
//! session or another environment, and that the kernel kills as one.
//!
//! Only the unified hierarchy (cgroups v2) has `cgroup.kill`, since Linux 5.14, and only root and
//! the owner of a delegated subtree may make a group. Everywhere else a command goes without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the groups of commands are called: behind it are wok's process id and the command's mark.
const PREFIX: &str = "wok-";

/// A command's group, below the group that wok runs in.
#[derive(Debug, Clone)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// A new one; none where this process may not make one that can be killed.
    pub(super) fn create(mark: &str) -> Option<Self> {
        let own = own_directory()?;
        sweep(&own);
        let directory = own.join(format!("{PREFIX}{}-{mark}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let group = Cgroup(directory);
        // A group inside a threaded one takes no processes.
        let is_domain =
            fs::read_to_string(group.file("cgroup.type")).is_ok_and(|it| it.trim() == "domain");
        if is_domain && group.file("cgroup.kill").exists() {
            return Some(group);
        }
        group.remove();
        None
    }

    /// One that exists.
    pub(super) fn at(directory: PathBuf) -> Self {
        Cgroup(directory)
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.0
    }

    /// Moves a process into it. What the process starts from then on is in it as well.
    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.file("cgroup.procs"), pid.to_string())
    }

    /// Kills every process in it, and every one that is being forked meanwhile.
    pub(super) fn kill(&self) {
        // Whether it worked is asked of `is_populated`, and of the processes themselves.
        let _ = fs::write(self.file("cgroup.kill"), "1");
    }

    /// Whether a process in it is alive.
    pub(super) fn is_populated(&self) -> bool {
        fs::read_to_string(self.file("cgroup.events"))
            .is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }

    /// Removes it, with the groups that the command made in it. Nobody is alive in them; if
    /// somebody is, it stays, which is all that can be done here.
    pub(super) fn remove(&self) {
        remove(&self.0);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Removes the empty groups that a wok left behind because it was killed with all of its helpers.
///
/// A wok that seems dead because it is in another namespace of process ids loses its group at worst
/// before its command is in it, and the command goes without.
fn sweep(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let wok = rest.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        let is_left = wok.is_some_and(|wok| !Path::new(&format!("/proc/{wok}")).exists());
        let group = Cgroup(entry.path());
        if is_left && !group.is_populated() {
            group.remove();
        }
    }
}

fn remove(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // The files in it are the kernel's and go along.
    let _ = fs::remove_dir(directory);
}

/// The directory of this process's own group in the unified hierarchy.
fn own_directory() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    locate(&groups, &mounts)
}

/// From cgroups(7): the line `0::<path>`; and proc(5): `<id> <parent> <device> <root> <mount
/// point> <options> [<tag>...] - <type> <source> <options>`.
fn locate(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        if file_system.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // Not below the root of this mount: it shows another part of the hierarchy. Names with
        // spaces are written with escapes; such a mount is passed over.
        let below = Path::new(path).strip_prefix(root).ok()?;
        let is_plain = !point.contains('\\') && !path.contains("/..");
        is_plain.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(groups: &str, mounts: &str, directory: Option<&str>) {
        assert_eq!(locate(groups, mounts), directory.map(PathBuf::from), "{groups} in {mounts}");
    }

    #[test]
    fn the_own_group_is_found_below_the_mount_that_shows_it() {
        let v2 = "35 24 0:29 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        check("0::/user.slice/a.scope\n", v2, Some("/sys/fs/cgroup/user.slice/a.scope"));
        check("0::/\n", v2, Some("/sys/fs/cgroup"));
        let hybrid = "30 24 0:25 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      31 24 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
        check("8:pids:/a\n0::/b\n", hybrid, Some("/sys/fs/cgroup/unified/b"));
        let part = "40 24 0:29 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        check("0::/docker/1/own\n", part, Some("/sys/fs/cgroup/own"));
        check("0::/docker/2\n", part, None);
        check("0::/../elsewhere\n", v2, None);
        check("8:pids:/a\n", v2, None);
        check("0::/a\n", "", None);
    }
}
