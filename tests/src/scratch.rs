//! Temporary directories that are gone after the tests, even when those were killed.
//!
//! Every test process has one root, which it holds locked for its life. A directory whose lock is
//! free belongs to a process that is gone, and the next test process removes it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use tempfile::TempDir;

pub(crate) const PREFIX: &str = "wok-tests-";
const LOCK: &str = "lock";

/// A new empty directory, removed when the value is dropped.
///
/// # Errors
/// If the system's temporary directory is not writable.
pub fn dir() -> Result<TempDir> {
    TempDir::new_in(root()?).context("create a temporary directory")
}

/// The name of this test process's root, for things that are no files: they are left over once there
/// is no such directory any more.
///
/// # Errors
/// As [`dir`].
pub(crate) fn name() -> Result<String> {
    let name = root()?.file_name().context("the root's name")?;
    Ok(name.to_string_lossy().into_owned())
}

/// Whether a root of that name is there: its process lives, or nobody has swept after it yet.
pub(crate) fn exists(name: &str) -> bool {
    std::env::temp_dir().join(name).exists()
}

struct Root {
    path: PathBuf,
    _lock: File,
}

fn root() -> Result<&'static Path> {
    static ROOT: OnceLock<Result<Root, String>> = OnceLock::new();
    match ROOT.get_or_init(|| new_root().map_err(|error| format!("{error:#}"))) {
        Ok(root) => Ok(&root.path),
        Err(text) => Err(anyhow::anyhow!("{text}")),
    }
}

fn new_root() -> Result<Root> {
    let parent = std::env::temp_dir();
    sweep(&parent);
    // Locked before it gets the name that a sweep looks for.
    let unnamed = tempfile::Builder::new().prefix("wok-new-").tempdir_in(&parent)?.keep();
    let lock = File::create(unnamed.join(LOCK))?;
    lock.lock().context("lock the tests' temporary directory")?;
    let suffix = unnamed.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let path = parent.join(format!("{PREFIX}{}", suffix.trim_start_matches("wok-new-")));
    fs::rename(&unnamed, &path)?;
    Ok(Root { path, _lock: lock })
}

/// Removes what dead test processes left in `parent`. What cannot be removed is left alone: it may
/// be another user's.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_takes_what_the_dead_left_and_nothing_else() {
        let parent = dir().unwrap();
        let directory = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            (File::create(path.join(LOCK)).unwrap(), path)
        };
        let (_, dead) = directory("wok-tests-dead");
        let (lock, living) = directory("wok-tests-living");
        lock.lock().unwrap();
        let (_, foreign) = directory("something-else");

        sweep(parent.path());

        assert!(!dead.exists());
        assert!(living.exists());
        assert!(foreign.exists());
    }
}
