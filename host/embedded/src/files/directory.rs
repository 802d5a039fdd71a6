//! A data directory and the names in it.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::error::FilesError;

const LOCK: &str = "wok.lock";
const VERSION: &str = "version-2";
const UNFINISHED: &str = "unfinished";

/// What Apache ZooKeeper appends to the name of a snapshot that it compresses.
const COMPRESSED: [&str; 2] = [".gz", ".snappy"];

/// How long a lock may be held by nobody but a process that this one has just started: the new
/// process has a copy of every open file, a server's that ended meanwhile among them, until it runs
/// its program.
const HANDED_DOWN: Duration = Duration::from_millis(500);

/// After this the lock is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// A data directory that this server alone uses, until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    version: PathBuf,
    /// The zxids of snapshots that could not be read.
    damaged: Mutex<BTreeSet<i64>>,
    _lock: File,
}

impl DataDir {
    /// Takes a directory, which is created if it is not there, and clears away what an earlier
    /// server left unfinished.
    ///
    /// # Errors
    /// [`FilesError::Locked`] if another server has it, [`FilesError::WithinData`], [`FilesError::Io`].
    pub fn take(root: &Path) -> Result<DataDir, FilesError> {
        let version = root.join(VERSION);
        // A tree of nothing where there is one, one level higher, would be the worst of all answers.
        if !version.exists() && has_data(root) {
            let above = root.join("..");
            let above = above.canonicalize().unwrap_or(above);
            return Err(FilesError::WithinData { path: root.to_owned(), above });
        }
        create(&version)?;
        let path = root.join(LOCK);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(FilesError::io("open", &path))?;
        let tried = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tried.elapsed() < HANDED_DOWN => {
                    #[allow(clippy::disallowed_methods, reason = "nothing tells of the release")]
                    thread::sleep(TRY_AGAIN);
                }
                Err(TryLockError::WouldBlock) => return Err(FilesError::Locked { path }),
                Err(TryLockError::Error(cause)) => return Err(FilesError::io("lock", path)(cause)),
            }
        }
        let damaged = Mutex::default();
        let directory = DataDir { root: root.to_owned(), version, damaged, _lock: lock };
        for name in directory.names()? {
            if name.starts_with(UNFINISHED) {
                remove(&directory.version.join(name))?;
            }
        }
        Ok(directory)
    }

    /// The directory as it was named.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the files are.
    pub fn version_dir(&self) -> &Path {
        &self.version
    }

    /// The log that begins with a zxid.
    pub fn log(&self, zxid: i64) -> PathBuf {
        self.version.join(format!("log.{zxid:x}"))
    }

    /// The snapshot begun at a zxid.
    pub fn snapshot(&self, zxid: i64) -> PathBuf {
        self.version.join(format!("snapshot.{zxid:x}"))
    }

    /// The zxids of all logs, in order.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn logs(&self) -> Result<Vec<i64>, FilesError> {
        self.zxids("log")
    }

    /// The zxids of all snapshots, in order.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn snapshots(&self) -> Result<Vec<i64>, FilesError> {
        self.zxids("snapshot")
    }

    /// The snapshot begun at that zxid cannot be read.
    pub(super) fn note_damaged(&self, zxid: i64) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(zxid);
    }

    /// Whether the snapshot begun at that zxid could not be read.
    pub(super) fn is_damaged(&self, zxid: i64) -> bool {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).contains(&zxid)
    }

    /// The newest snapshot that Apache ZooKeeper has compressed, and its zxid.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn compressed_snapshot(&self) -> Result<Option<(i64, PathBuf)>, FilesError> {
        let names = self.names()?;
        let compressed = names.iter().filter_map(|name| {
            let plain = COMPRESSED.iter().find_map(|suffix| name.strip_suffix(suffix))?;
            Some((zxid_of(plain, "snapshot")?, self.version.join(name)))
        });
        Ok(compressed.max())
    }

    /// Has the names of all files on disk.
    pub(super) fn sync(&self) -> Result<(), FilesError> {
        sync(&self.version)
    }

    fn zxids(&self, prefix: &str) -> Result<Vec<i64>, FilesError> {
        let names = self.names()?;
        let mut zxids: Vec<i64> = names.iter().filter_map(|name| zxid_of(name, prefix)).collect();
        zxids.sort_unstable();
        Ok(zxids)
    }

    fn names(&self) -> Result<Vec<String>, FilesError> {
        names_in(&self.version).map_err(FilesError::io("list", &self.version))
    }
}

fn names_in(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        // A server names its files in ASCII, so a name that is not UTF-8 is another program's.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Whether a directory has logs or snapshots itself. One that cannot be listed is refused when it is opened.
fn has_data(directory: &Path) -> bool {
    let is_of_data =
        |name: &String| ["log", "snapshot"].iter().any(|prefix| zxid_of(name, prefix).is_some());
    names_in(directory).is_ok_and(|names| names.iter().any(is_of_data))
}

/// A file that is not yet what it is to be. It is removed when dropped, whatever the reason: on a
/// full disk the log needs the room.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    /// Until the file is gone, no other server may begin one of that name.
    directory: Arc<DataDir>,
}

impl Unfinished {
    pub(super) fn new(directory: &Arc<DataDir>, name: &str) -> Self {
        let path = directory.version.join(format!("{UNFINISHED}.{name}"));
        Unfinished { path, directory: directory.clone() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives a finished file its name, for good.
    pub(super) fn finish(self, name: &Path) -> Result<(), FilesError> {
        fs::rename(&self.path, name).map_err(FilesError::io("rename", &self.path))?;
        self.directory.sync()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It fails if there is none, or no longer. Any other reason stops the next start, which
        // tries again.
        fs::remove_file(&self.path).ok();
    }
}

/// The bytes of all files of a data directory, as four-letter words tell them.
pub(crate) fn size_of(version_dir: &Path) -> u64 {
    let entries = fs::read_dir(version_dir).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Where the files of a data directory are.
pub(crate) fn version_dir(root: &Path) -> PathBuf {
    root.join(VERSION)
}

pub(super) fn remove(path: &Path) -> Result<(), FilesError> {
    fs::remove_file(path).map_err(FilesError::io("remove", path))
}

/// Creates a directory and those above it that are not there; their names are on disk afterwards.
fn create(directory: &Path) -> Result<(), FilesError> {
    let new: Vec<_> = directory.ancestors().take_while(|it| !is_there(it)).collect();
    // From above, each once the one before is on disk: a server that is killed here leaves at most the
    // lowest one that is there in doubt.
    let lowest = new.last().map_or(Some(directory), |highest| highest.parent());
    if let Some(lowest) = lowest.filter(|lowest| !lowest.as_os_str().is_empty()) {
        match sync_name(lowest) {
            // The user who created that directory has seen to its name.
            Err(FilesError::Io { cause, .. }) if cause.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    for missing in new.into_iter().rev() {
        match fs::create_dir(missing) {
            // Another server begins there, too: one of the two will have the lock.
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists && missing.is_dir() => {}
            created => created.map_err(FilesError::io("create", directory))?,
        }
        sync_name(missing)?;
    }
    Ok(())
}

/// Has a directory's name on disk, in the one above it.
fn sync_name(directory: &Path) -> Result<(), FilesError> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))
}

/// The empty path is where the program runs.
fn is_there(directory: &Path) -> bool {
    directory.as_os_str().is_empty() || directory.exists()
}

/// A directory's entries are on disk only once the directory itself is.
fn sync(directory: &Path) -> Result<(), FilesError> {
    let force = || File::open(directory)?.sync_all();
    force().map_err(FilesError::io("sync", directory))
}

/// The zxid in a name. Only names as they are written: each zxid has one file.
fn zxid_of(name: &str, prefix: &str) -> Option<i64> {
    let hex = name.strip_prefix(prefix)?.strip_prefix('.')?;
    let zxid = i64::from_str_radix(hex, 16).ok().filter(|zxid| *zxid >= 0)?;
    (format!("{zxid:x}") == hex).then_some(zxid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_taken_for_files_of_a_zxid() {
        assert_eq!(zxid_of("log.1f", "log"), Some(0x1f));
        for name in ["log.", "log.g", "log.1.gz", "log.-1", "log.+1", "log.01", "logs.1", "log1"] {
            assert_eq!(zxid_of(name, "log"), None, "{name}");
        }
    }

    #[test]
    fn a_directory_is_created_with_those_above_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("a/b");
        let directory = DataDir::take(&root).unwrap();
        assert!(directory.version_dir().is_dir());
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        let error = DataDir::take(&file.join("c")).unwrap_err().to_string();
        let expected =
            format!("create {}/c/version-2: Not a directory (os error 20)", file.display());
        assert_eq!(error, expected);
    }

    #[test]
    fn a_directory_has_one_server_and_is_free_again_after_it() {
        let scratch = tempfile::tempdir().unwrap();
        let first = DataDir::take(scratch.path()).unwrap();
        let second = DataDir::take(scratch.path()).unwrap_err();
        assert!(matches!(second, FilesError::Locked { .. }), "{second}");
        drop(first);
        DataDir::take(scratch.path()).unwrap();
    }
}
