//! Why a data directory cannot be used.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use thiserror::Error;

use super::entry::ROOM;

/// Too many files are open, in this process and in all.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// Why a data directory cannot be used, or no longer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilesError {
    /// Another server has the directory.
    #[error(
        "lock {}: another server has this data directory: stop it, or give this one its own",
        path.display()
    )]
    Locked {
        /// The lock's file.
        path: PathBuf,
    },
    /// The system refused an operation.
    #[error("{operation} {}: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not. It is part of the text, and so not the error's source.
        cause: io::Error,
    },
    /// A log is damaged where more than its end is at stake.
    #[error(
        "read {}: damaged at byte {offset}, after zxid {after_zxid:#x}: {reason}; \
         put back a copy of the file; or, to give up every txn after that zxid, move the logs and \
         snapshots of higher zxids away and run `truncate -s {offset} {} && truncate -s +{ROOM} {}`",
        path.display(), path.display(), path.display()
    )]
    DamagedLog {
        /// The log.
        path: PathBuf,
        /// Where its readable part ends.
        offset: u64,
        /// The newest txn that can be read.
        after_zxid: i64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A log without its beginning. Nothing of it can be read.
    #[error(
        "read {}: it has {length} bytes, and no log begins like that: it was cut or overwritten, or \
         Apache ZooKeeper was killed as it began it; put back a copy of the file; or, to give up \
         every txn that it had, move it and the logs and snapshots of higher zxids away",
        path.display()
    )]
    NoLog {
        /// The log.
        path: PathBuf,
        /// How long it is.
        length: u64,
    },
    /// Txns are missing between two that are there.
    #[error(
        "read {}: zxid {found:#x} follows {after_zxid:#x}: the txns between them are missing; put \
         back the logs and snapshots that have them; or, to give up every txn after \
         {after_zxid:#x}, move this log and those of higher zxids away",
        path.display()
    )]
    MissingTxns {
        /// The log with the later txn.
        path: PathBuf,
        /// The txn before the gap.
        after_zxid: i64,
        /// The txn behind it.
        found: i64,
    },
    /// Logs without the snapshot that they follow. Apache ZooKeeper does not start with them, either.
    #[error(
        "read {}: no snapshot shows what was there before it: put back the snapshots that were \
         beside it; or, to begin with nothing, move the logs away",
        path.display()
    )]
    NoSnapshot {
        /// The first log.
        path: PathBuf,
    },
    /// A snapshot without the logs that it goes on from: they may tell more than it shows.
    #[error(
        "read {}: there is no log beside it, and what was answered since may be in one: put back the logs, \
         which Apache ZooKeeper keeps in its `dataLogDir`; or, if the snapshot is all that is wanted, write \
         an empty log beside it, by `printf 'ZKLG\\0\\0\\0\\2\\0\\0\\0\\0\\0\\0\\0\\0' > {}`",
        path.display(),
        log.display()
    )]
    NoLogs {
        /// The snapshot.
        path: PathBuf,
        /// The log that would follow.
        log: PathBuf,
    },
    /// Two logs that tell different txns of the same zxids.
    #[error(
        "read {}: it goes up to zxid {found:#x}, though {} begins before that: two servers have had this \
         directory at once, and what was answered by one of them is in one of the two logs. Keep a copy of \
         the directory; then, to go on with what the first of them tells, move the other one away, and all \
         logs and snapshots of higher zxids",
        path.display(),
        next.display()
    )]
    LogsOverlap {
        /// The log that goes on for too long.
        path: PathBuf,
        /// Its newest txn.
        found: i64,
        /// The log that begins before that.
        next: PathBuf,
    },
    /// A directory that is the part of a data directory in which the files are.
    #[error(
        "open {}: it has logs or snapshots itself, as the directory `version-2` within a data directory \
         has: name the data directory, {}",
        path.display(),
        above.display()
    )]
    WithinData {
        /// The directory.
        path: PathBuf,
        /// The one above.
        above: PathBuf,
    },
    /// Apache ZooKeeper has compressed a snapshot, and the other files do not show all that it shows.
    #[error(
        "read {}: the snapshot is compressed, and only Apache ZooKeeper can read it: start Apache \
         ZooKeeper with this directory once more, without `snapshot.compression.method`, so that it \
         writes one that is not compressed",
        path.display()
    )]
    CompressedSnapshot {
        /// The snapshot.
        path: PathBuf,
    },
    /// A snapshot is not as it was written.
    #[error(
        "read {}: damaged at byte {offset}: {reason}; put back a copy of it, or an older \
         snapshot with all logs since",
        path.display()
    )]
    DamagedSnapshot {
        /// The snapshot.
        path: PathBuf,
        /// Where reading ended.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A snapshot shows txns that are later than the end of the logs.
    #[error(
        "read {}: it shows zxid {found:#x}, but the logs end with {last_zxid:#x}: put back the logs \
         up to there; or, to give up every txn after {last_zxid:#x}, move this snapshot away, so \
         that an older one and the logs since take its place",
        path.display()
    )]
    SnapshotBeyondLogs {
        /// The snapshot.
        path: PathBuf,
        /// The newest txn that it shows.
        found: i64,
        /// The newest txn of the logs.
        last_zxid: i64,
    },
    /// Nothing more is written, because of what an earlier error has told, or a panic.
    #[error("write the data directory: an earlier failure has ended that")]
    Ended,
}

/// What the reader of an error of the system can do about it.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; make room on its disk: nothing that was answered is lost"
        }
        // The standard library has no name for these.
        _ if matches!(cause.raw_os_error(), Some(EMFILE | ENFILE)) => {
            "; raise the limit of open files: nothing that was answered is lost"
        }
        _ => "",
    }
}

impl FilesError {
    /// Where a log is damaged, the newest txn before that is this one, if the log itself has none.
    pub(crate) fn at_least(mut self, zxid: i64) -> FilesError {
        if let FilesError::DamagedLog { after_zxid, .. } = &mut self {
            *after_zxid = zxid.max(*after_zxid);
        }
        self
    }

    /// Whether the same directory may be usable later, without anybody changing the directory or how it is
    /// named: another server has it, or the system was short of something.
    pub fn may_pass(&self) -> bool {
        match self {
            FilesError::Locked { .. } => true,
            FilesError::Io { cause, .. } => !matches!(
                cause.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::NotADirectory
                    | ErrorKind::IsADirectory
                    | ErrorKind::AlreadyExists
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::InvalidInput
            ),
            _ => false,
        }
    }

    /// Names the operation and the file that an error of the system is about.
    pub(crate) fn io(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> FilesError {
        let path = path.into();
        move |cause| FilesError::Io { operation, path, cause }
    }
}
