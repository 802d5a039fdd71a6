//! Writing logs.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use tracing::warn;

use super::directory::{DataDir, Unfinished};
use super::entry::{LOG_HEADER, ROOM};
use super::error::FilesError;

/// How logs are written.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Zeros are written ahead in steps of this many bytes: forcing what replaces them does not
    /// force the file's length and blocks, too. Where the disk has no room for so many, fewer are.
    pub preallocation: u64,
    /// Whether to wait for the disk. Without, a power cut loses what was answered.
    pub force_sync: bool,
}

/// Appends txns to the newest log.
#[derive(Debug)]
pub struct LogWriter {
    directory: Arc<DataDir>,
    options: LogOptions,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The next txn begins a log.
    Closed,
    Open(Open),
    Failed,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    position: u64,
    /// The file's length.
    allocated: u64,
    /// By how much it grows.
    step: u64,
}

impl LogWriter {
    /// A writer that begins a new log.
    pub fn new(directory: Arc<DataDir>, options: LogOptions) -> LogWriter {
        LogWriter { directory, options, state: State::Closed }
    }

    /// Appends entries made by [`super::encode_entry`], and returns once they are on disk.
    ///
    /// # Errors
    /// [`FilesError::Io`]. Then it is not known what of them is on disk, and forcing the file again
    /// would not tell: the system may have given up the pages and report success. So every later
    /// call is [`FilesError::Ended`]. The entries are cut off as far as that is still possible.
    pub fn append(&mut self, first_zxid: i64, entries: &[u8]) -> Result<(), FilesError> {
        let mut open = match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(open) => open,
            State::Closed => self.create(first_zxid)?,
            State::Failed => return Err(FilesError::Ended),
        };
        if let Err(error) = open.append(entries, self.options) {
            open.give_up();
            return Err(FilesError::io("write", open.path)(error));
        }
        self.state = State::Open(open);
        Ok(())
    }

    /// Ends the log: the next txn begins another.
    ///
    /// # Errors
    /// [`FilesError::Io`], with the consequences of a failed [`LogWriter::append`].
    pub fn roll(&mut self) -> Result<(), FilesError> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(open) => open.close(self.options)?,
            State::Closed => {}
            State::Failed => return Err(FilesError::Ended),
        }
        self.state = State::Closed;
        Ok(())
    }

    /// A log has its name only once it has its header: Apache ZooKeeper trips over an empty one.
    fn create(&self, first_zxid: i64) -> Result<Open, FilesError> {
        let unfinished = Unfinished::new(&self.directory, "log");
        let position = u64::try_from(LOG_HEADER.len()).unwrap_or_default();
        let create = || -> io::Result<File> {
            let mut file = File::create(unfinished.path())?;
            file.write_all(&LOG_HEADER)?;
            file.set_len(position + ROOM)?;
            if self.options.force_sync {
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = create().map_err(FilesError::io("create", unfinished.path()))?;
        let path = self.directory.log(first_zxid);
        unfinished.finish(&path)?;
        let step = self.options.preallocation.max(1);
        Ok(Open { path, file, position, allocated: position + ROOM, step })
    }
}

impl Open {
    fn append(&mut self, entries: &[u8], options: LogOptions) -> io::Result<()> {
        let end = self.position + u64::try_from(entries.len()).unwrap_or(u64::MAX);
        if end + ROOM > self.allocated {
            self.grow(end + ROOM)?;
            if options.force_sync {
                // Or a power cut could leave the txn and not the room behind it, as if somebody had cut
                // the file.
                self.file.sync_data()?;
            }
        }
        self.file.write_all_at(entries, self.position)?;
        if options.force_sync {
            self.file.sync_data()?;
        }
        self.position = end;
        Ok(())
    }

    /// Makes the file that long at the least, and longer by a step where there is room for one.
    fn grow(&mut self, least: u64) -> io::Result<()> {
        let wanted = self.step;
        while let Err(error) = self.lengthen(least.div_ceil(self.step) * self.step) {
            if self.step == 1 || !is_full(&error) {
                return Err(error);
            }
            self.step = (self.step / STEPS).max(1);
        }
        if self.step < wanted {
            let path = self.path.display();
            warn!(%path, "the disk is nearly full: make room on it, or the server ends when it is");
        }
        Ok(())
    }

    fn lengthen(&mut self, length: u64) -> io::Result<()> {
        if let Err(error) = zeros(&self.file, self.allocated, length) {
            // Others may need what did fit.
            self.file.set_len(self.allocated)?;
            return Err(error);
        }
        self.allocated = length;
        Ok(())
    }

    /// Cuts off what was not kept. Whole txns of it may be in the file, or seem so as long as the
    /// system has the pages: a start would take them, and a power cut would take them back.
    fn give_up(&self) {
        // What cannot be written over could not be written before.
        zeros(&self.file, self.position, self.position + ROOM).ok();
        if let Err(error) = self.file.set_len(self.position + ROOM) {
            let path = self.path.display();
            warn!(%path, %error, "txns that were not answered may be in the log");
        }
    }

    fn close(self, options: LogOptions) -> Result<(), FilesError> {
        // Room that is no longer needed.
        self.file.set_len(self.position + ROOM).map_err(FilesError::io("truncate", &self.path))?;
        if options.force_sync {
            self.file.sync_all().map_err(FilesError::io("sync", &self.path))?;
        }
        Ok(())
    }
}

/// How many times smaller the next step is that is tried where one does not fit.
const STEPS: u64 = 16;

/// Whether less might still fit.
fn is_full(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Writes zeros from a byte of the file up to another.
pub(super) fn zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let length = usize::try_from(to - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(ZEROS.get(..length).unwrap_or(&ZEROS), at)?;
        at += u64::try_from(length).unwrap_or(u64::MAX);
    }
    Ok(())
}
