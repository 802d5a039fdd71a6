//! The directory in which cargo compiles, which many workspaces share.
//!
//! What they have in common, std and the SDK's dependencies, is compiled once: it is nearly all of the
//! time that the first build of a recipe takes. To cargo, though, two packages of one name and one place
//! in their workspaces are the same, and it would take the one's module for the other's. So one build
//! works there at a time, and begins by having cargo forget the packages of the workspace before.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::cargo::{self, Workspace};

/// The file that is locked while somebody builds. It holds the path of the last workspace.
const LAST: &str = "wok-workspace";

/// The place, as long as this build has it to itself.
pub(crate) struct Place {
    directory: PathBuf,
    /// Locked until it is dropped.
    last: File,
}

impl Place {
    /// Waits until nobody else builds there. Where files cannot be locked, the user is told to see to it.
    ///
    /// # Errors
    /// If the directory or its file cannot be made, or if the wait for the lock fails.
    pub(crate) fn enter(directory: &Path, progress: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let file = directory.join(LAST);
        let error = |action| told_of(action, &file);
        fs::create_dir_all(directory).map_err(error("make the directory of"))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let last = options.open(&file).map_err(error("open"))?;
        match last.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress(&format!("Waiting for another build in {}", directory.display()));
                last.lock().map_err(error("lock"))?;
            }
            // As over some network file systems, which cargo does not lock, either.
            Err(TryLockError::Error(source)) => progress(&format!(
                "Cannot lock {} ({source}): let no other build work there before this one is over",
                file.display()
            )),
        }
        Ok(Place { directory: directory.to_owned(), last })
    }

    /// Where cargo is to compile this workspace.
    ///
    /// # Errors
    /// If cargo cannot forget the packages of the one before.
    pub(crate) fn prepare(&mut self, workspace: &Workspace) -> Result<&Path, Error> {
        let root = workspace.root.as_os_str().as_encoded_bytes();
        let file = self.directory.join(LAST);
        if self.read().map_err(told_of("read", &file))? != root {
            cargo::forget(workspace, &self.directory)?;
            // Only now: the build after one that was interrupted has cargo forget them again.
            self.write(root).map_err(told_of("write", &file))?;
        }
        Ok(&self.directory)
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut root = Vec::new();
        self.last.rewind()?;
        self.last.read_to_end(&mut root)?;
        Ok(root)
    }

    fn write(&mut self, root: &[u8]) -> io::Result<()> {
        self.last.set_len(0)?;
        self.last.rewind()?;
        self.last.write_all(root)
    }
}

fn told_of(action: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { action, path: file.to_owned(), source }
}
