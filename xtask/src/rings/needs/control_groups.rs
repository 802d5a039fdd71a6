//! Whether this machine lets us make control groups that the kernel kills as one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Makes one below our own, as wok does, has a process killed in it, and removes it.
///
/// # Errors
/// There are none to be had here; the error says why.
pub(super) fn can_be_made() -> Result<()> {
    let group = own_group()?.join(format!("probe-{}", std::process::id()));
    fs::create_dir(&group).with_context(|| format!("make {}", group.display()))?;
    let tried = kill_in(&group);
    fs::remove_dir(&group).with_context(|| format!("remove {}", group.display()))?;
    tried
}

fn kill_in(group: &Path) -> Result<()> {
    let mut process = Command::new("sleep").arg("60").spawn().context("start sleep")?;
    let killed = fs::write(group.join("cgroup.procs"), process.id().to_string())
        .and_then(|()| fs::write(group.join("cgroup.kill"), "1"))
        .with_context(|| format!("put a process into {} and kill it there", group.display()));
    if killed.is_err() {
        process.kill().context("kill sleep")?;
    }
    process.wait().context("wait for sleep")?;
    killed
}

/// The directory of our own group in the unified hierarchy, by cgroups(7) and proc(5).
fn own_group() -> Result<PathBuf> {
    let read = |path: &'static str| fs::read_to_string(path).context(path);
    let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = Path::new(own.context("cgroups v2 are not in use")?);
    let group = mounts.lines().filter(|line| line.contains(" - cgroup2 ")).find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(own.strip_prefix(root).ok()?))
    });
    group.context("cgroups v2 are not mounted")
}
