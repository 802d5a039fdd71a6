//! Reading a log, txn by txn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::entry::{END, HEAD, HIGHEST_ZXID, LOG_HEADER, ROOM, checksum, decode_record, has_entry};
use super::error::FilesError;
use crate::path;
use crate::txn::{Txn, TxnHeader};

/// What a log has next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A txn.
    Txn(TxnHeader, Txn),
    /// Nothing: the file ends, or only room for more follows.
    End,
    /// The beginning of a txn that was never written out; nothing follows but the room for it.
    Torn {
        /// How many bytes of it there are.
        bytes: u64,
    },
}

/// Reads a log. It never holds more than one txn, unless the log is damaged, and never more than
/// the file.
#[derive(Debug)]
pub struct LogReader<R = BufReader<File>> {
    path: PathBuf,
    input: R,
    length: u64,
    offset: u64,
    record: Vec<u8>,
    last_zxid: i64,
    /// Whether [`ROOM`] follows the last txn. Apache ZooKeeper's logs mostly have some, too.
    keeps_room: bool,
}

/// How a piece of the file may be wrong.
enum Bad {
    /// It is not whole, as it is when the power goes. It says how long it would be.
    Unfinished { claimed: u64 },
    /// It is whole, and wrong.
    Damaged(&'static str),
}

impl LogReader {
    /// Opens a log.
    ///
    /// # Errors
    /// [`FilesError::NoLog`], [`FilesError::Io`].
    pub fn open(path: &Path) -> Result<LogReader, FilesError> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((BufReader::with_capacity(256 << 10, file), length))
        };
        let (input, length) = open().map_err(FilesError::io("open", path))?;
        LogReader::new(path, input, length)
    }
}

impl<R: BufRead + Seek> LogReader<R> {
    /// Reads a log of so many bytes from its first one on. Errors name the path.
    ///
    /// # Errors
    /// [`FilesError::NoLog`], [`FilesError::Io`].
    pub fn new(path: &Path, mut input: R, length: u64) -> Result<LogReader<R>, FilesError> {
        let path = path.to_owned();
        let mut header = [0; LOG_HEADER.len()];
        let offset = as_u64(header.len());
        if length < offset {
            return Err(FilesError::NoLog { path, length });
        }
        input.read_exact(&mut header).map_err(FilesError::io("read", &path))?;
        if header.first_chunk::<8>() != LOG_HEADER.first_chunk::<8>() {
            return Err(FilesError::NoLog { path, length });
        }
        let keeps_room = header == LOG_HEADER;
        Ok(LogReader { path, input, length, offset, record: Vec::new(), last_zxid: 0, keeps_room })
    }

    /// What errors call it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next txn begins, or would.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next txn.
    ///
    /// # Errors
    /// [`FilesError::DamagedLog`], [`FilesError::Io`].
    #[allow(clippy::should_implement_trait, reason = "its end has a meaning of its own")]
    pub fn next(&mut self) -> Result<Next, FilesError> {
        match self.entry().map_err(FilesError::io("read", &self.path))? {
            Err(bad) => self.end(bad),
            Ok(length) => match decode_record(&self.record) {
                Ok((header, _)) if header.zxid <= self.last_zxid => {
                    Err(self.damaged("its zxid is not higher than the one before"))
                }
                Ok((header, _)) if header.zxid > HIGHEST_ZXID => {
                    Err(self.damaged("its zxid is beyond those that servers give"))
                }
                Ok((_, txn)) if !creates_where_nodes_can_be(&txn) => {
                    Err(self.damaged("it creates a node of a path that no server takes"))
                }
                Ok((header, txn)) => {
                    self.offset += length;
                    self.last_zxid = header.zxid;
                    Ok(Next::Txn(header, txn))
                }
                Err(_) => Err(self.damaged("a txn of a kind that is not known")),
            },
        }
    }

    /// Reads an entry's record, and tells its whole length.
    fn entry(&mut self) -> io::Result<Result<u64, Bad>> {
        let left = self.length - self.offset;
        if left < as_u64(HEAD) {
            return Ok(Err(Bad::Unfinished { claimed: 0 }));
        }
        let (mut sum, mut length) = ([0; 8], [0; 4]);
        self.input.read_exact(&mut sum)?;
        self.input.read_exact(&mut length)?;
        let length = u64::from(u32::from_be_bytes(length));
        let claimed = as_u64(HEAD) + length + 1;
        if length == 0 || claimed > left {
            let claimed = if length == 0 { 0 } else { claimed };
            return Ok(Err(Bad::Unfinished { claimed }));
        }
        // It fits the file, so no more is allocated than there is.
        self.record.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
        self.input.read_exact(&mut self.record)?;
        let mut end = [0];
        self.input.read_exact(&mut end)?;
        if end != [END] {
            return Ok(Err(Bad::Unfinished { claimed }));
        }
        if i64::from_be_bytes(sum) != i64::from(checksum(&self.record)) {
            return Ok(Err(Bad::Damaged("a txn does not fit its checksum")));
        }
        Ok(Ok(claimed))
    }

    /// Nothing can be read here: tells whether that is as it should be.
    fn end(&mut self, bad: Bad) -> Result<Next, FilesError> {
        let used = self.used().map_err(FilesError::io("read", &self.path))?;
        let rest = self.rest(used).map_err(FilesError::io("read", &self.path))?;
        match bad {
            Bad::Damaged(reason) => Err(self.damaged(reason)),
            Bad::Unfinished { .. }
                if has_entry(rest.get(1..).unwrap_or_default(), self.last_zxid) =>
            {
                Err(self.damaged("a txn is not whole, but others follow it"))
            }
            Bad::Unfinished { claimed } if self.has_lost_its_end(used, claimed) => {
                Err(self.damaged("the file has lost its end, and maybe txns that were answered"))
            }
            Bad::Unfinished { .. } if used == 0 => Ok(Next::End),
            Bad::Unfinished { .. } => Ok(Next::Torn { bytes: used }),
        }
    }

    /// Whether the file ends where none does that was only torn. In our logs the room behind a txn is
    /// on disk before the txn. Apache ZooKeeper's have room, too, when they are not quite full.
    fn has_lost_its_end(&self, used: u64, claimed: u64) -> bool {
        let left = self.length - self.offset;
        if self.keeps_room { used.max(claimed) + ROOM > left } else { used > 0 && used == left }
    }

    /// How many bytes from here on there are before nothing but zeros.
    fn used(&mut self) -> io::Result<u64> {
        self.input.seek(SeekFrom::Start(self.offset))?;
        let (mut at, mut used) = (0, 0);
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                self.input.seek(SeekFrom::Start(self.offset))?;
                return Ok(used);
            }
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                used = at + as_u64(last) + 1;
            }
            let length = bytes.len();
            at += as_u64(length);
            self.input.consume(length);
        }
    }

    fn rest(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.input.by_ref().take(bytes).read_to_end(&mut rest)?;
        // A caller that asks again is told the same.
        self.input.seek(SeekFrom::Start(self.offset))?;
        Ok(rest)
    }

    fn damaged(&self, reason: &'static str) -> FilesError {
        FilesError::DamagedLog {
            path: self.path.clone(),
            offset: self.offset,
            after_zxid: self.last_zxid,
            reason,
        }
    }
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Whether all that it creates has a path by which the server was asked for it. One without a name
/// would make the root its own child.
fn creates_where_nodes_can_be(txn: &Txn) -> bool {
    let can_be = |path: &str| path != "/" && path::is_valid(path);
    match txn {
        Txn::Create(create) => can_be(&create.path),
        Txn::CreateContainer(create) => can_be(&create.path),
        Txn::CreateTtl(create) => can_be(&create.path),
        Txn::Multi(txns) => txns.iter().all(|sub| creates_where_nodes_can_be(&sub.txn)),
        _ => true,
    }
}
