//! Writing logs.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use tracing::warn;

use super::directory::{DataDir, Unfinished};
use super::entry::LOG_HEADER;
use super::error::FilesError;

/// How logs are written.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Zeros are written ahead in steps of this many bytes: forcing what replaces them does not
    /// force the file's length and blocks, too.
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
    allocated: u64,
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
        let create = || -> io::Result<File> {
            let mut file = File::create(unfinished.path())?;
            file.write_all(&LOG_HEADER)?;
            if self.options.force_sync {
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = create().map_err(FilesError::io("create", unfinished.path()))?;
        let path = self.directory.log(first_zxid);
        unfinished.finish(&path)?;
        let position = u64::try_from(LOG_HEADER.len()).unwrap_or_default();
        Ok(Open { path, file, position, allocated: position })
    }
}

impl Open {
    fn append(&mut self, entries: &[u8], options: LogOptions) -> io::Result<()> {
        let end = self.position + u64::try_from(entries.len()).unwrap_or(u64::MAX);
        if end > self.allocated {
            let step = options.preallocation.max(1);
            let allocate = end.div_ceil(step) * step;
            // What is about to be written needs no zeros first.
            zeros(&self.file, end, allocate)?;
            self.allocated = allocate;
        }
        self.file.write_all_at(entries, self.position)?;
        if options.force_sync {
            self.file.sync_data()?;
        }
        self.position = end;
        Ok(())
    }

    /// Cuts off what was not kept. Whole txns of it may be in the file, or seem so as long as the
    /// system has the pages: a start would take them, and a power cut would take them back.
    fn give_up(&self) {
        if let Err(error) = self.file.set_len(self.position) {
            let path = self.path.display();
            warn!(%path, %error, "txns that were not answered may be in the log");
        }
    }

    fn close(self, options: LogOptions) -> Result<(), FilesError> {
        // Room that is no longer needed.
        self.file.set_len(self.position).map_err(FilesError::io("truncate", &self.path))?;
        if options.force_sync {
            self.file.sync_all().map_err(FilesError::io("sync", &self.path))?;
        }
        Ok(())
    }
}

fn zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let length = usize::try_from(to - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(ZEROS.get(..length).unwrap_or(&ZEROS), at)?;
        at += u64::try_from(length).unwrap_or(u64::MAX);
    }
    Ok(())
}
