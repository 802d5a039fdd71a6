//! Small disks of one's own, in a process that alone sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

const PLACE: &str = "WOK_MOUNTS";

/// Who may mount what a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Any user who may have a name space of users.
    AnyUser,
    /// Only root has loop devices.
    Root,
}

/// A place for mounts, all of which are gone with the process.
pub(crate) struct Mounts {
    place: PathBuf,
}

/// Runs the test of this name once more where it may mount. `None` in the process that did so, once
/// that has passed.
pub(crate) fn inside(test: &str, right: Right) -> Option<Mounts> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Some(Mounts { place: place.into() });
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    match right {
        _ if is_root => {}
        Right::AnyUser => {
            unshare.args(["--user", "--map-root-user"]);
        }
        Right::Root => panic!("only root can mount a file: run {test} as root"),
    }
    let scratch = tempfile::tempdir().unwrap();
    unshare.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture", test]);
    let status = unshare.env(PLACE, scratch.path()).status().unwrap();
    assert!(status.success(), "{test}, in a name space of its own: {status}");
    None
}

impl Mounts {
    /// A disk in memory.
    pub(crate) fn memory(&self, name: &str, size: &str) -> PathBuf {
        let disk = self.directory(name);
        let size = format!("size={size}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&disk));
        disk
    }

    /// A disk in a file, whose blocks are taken when they are first written.
    pub(crate) fn disk(&self, name: &str, image: &Path, size: &str) -> PathBuf {
        let disk = self.directory(name);
        run(Command::new("truncate").args(["-s", size]).arg(image));
        run(Command::new("mkfs.ext4").args(["-q", "-O", "^has_journal"]).arg(image));
        run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&disk));
        disk
    }

    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.place.join(name);
        std::fs::create_dir(&directory).unwrap();
        directory
    }
}

fn run(command: &mut Command) {
    // What only an administrator needs is not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default();
    let status = command.env("PATH", format!("{path}:/usr/sbin:/sbin")).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
