//! Writing logs.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::directory::DataDir;
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
    open: Option<Open>,
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
        LogWriter { directory, options, open: None }
    }

    /// Appends entries made by [`super::encode_entry`], and returns once they are on disk.
    ///
    /// # Errors
    /// [`FilesError::Io`]. Then it is not known what is on disk, and trying again would not tell:
    /// the writer must not be used any more.
    pub fn append(&mut self, first_zxid: i64, entries: &[u8]) -> Result<(), FilesError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create(first_zxid)?,
        };
        let result = open.append(entries, self.options);
        result.map_err(FilesError::io("write", &open.path))?;
        self.open = Some(open);
        Ok(())
    }

    /// Ends the log: the next txn begins another.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn roll(&mut self) -> Result<(), FilesError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        // Room that is no longer needed.
        open.file.set_len(open.position).map_err(FilesError::io("truncate", &open.path))?;
        if self.options.force_sync {
            open.file.sync_all().map_err(FilesError::io("sync", &open.path))?;
        }
        Ok(())
    }

    /// A log has its name only once it has its header: Apache ZooKeeper trips over an empty one.
    fn create(&self, first_zxid: i64) -> Result<Open, FilesError> {
        let unfinished = self.directory.unfinished("log");
        let create = || -> io::Result<File> {
            let mut file = File::create(&unfinished)?;
            file.write_all(&LOG_HEADER)?;
            if self.options.force_sync {
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = create().map_err(FilesError::io("create", &unfinished))?;
        let path = self.directory.log(first_zxid);
        self.directory.finish(&unfinished, &path)?;
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
