//! What a start makes of a data directory.

use std::fs::File;
use std::io::{self, BufRead, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info, warn};

use super::directory::DataDir;
use super::entry::{HIGHEST_ZXID, ROOM};
use super::error::FilesError;
use super::log_reader::{LogReader, Next};
use super::log_writer::zeros;
use super::retention::first_needed;
use super::snapshot_reader::{Snapshot, nobody, read_snapshot};
use super::snapshot_writer::write_whole_snapshot;
use crate::replica::Replica;

/// The first txn of a new ensemble, whose first leader begins the epoch 1.
const FIRST_OF_AN_ENSEMBLE: i64 = 0x1_0000_0001;

/// What a start has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The snapshot it began with. `None`: there was none.
    pub snapshot: Option<PathBuf>,
    /// Newer snapshots that cannot be read.
    pub unreadable: Vec<PathBuf>,
    /// How many txns of the logs were applied.
    pub replayed: u64,
    /// Txns that were being written when a server ended. Nobody was told that they happened.
    pub torn: Vec<TornTail>,
    /// How many nodes there are, the root and those of `/zookeeper` among them.
    pub nodes: usize,
    /// How many of them have a time to live.
    pub ttls: usize,
    /// How many sessions there are.
    pub sessions: usize,
    /// The newest txn.
    pub last_zxid: i64,
    /// Why the snapshot that was due could not be written. The logs have what would be in it.
    pub snapshot_failure: Option<String>,
}

/// The beginning of a txn that was never written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The log that ends with it.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
}

/// Reads a data directory: the newest snapshot that can be read, and every txn since. A torn end
/// is cut off, and the rest forced to disk. Then a snapshot is written if there is none, or if so
/// many txns were applied; an empty directory's first snapshot says that its first txn follows
/// `first_zxid`.
///
/// # Errors
/// See [`FilesError`]; the directory is then as it was.
pub fn recover(
    directory: &Arc<DataDir>,
    first_zxid: i64,
    snapshot_count: u64,
) -> Result<(Replica, Recovery), FilesError> {
    let mut recovery = Recovery::default();
    let Snapshot { mut replica, lacks_lists, newest_zxid } =
        newest_snapshot(directory, &mut recovery)?;
    let logs = directory.logs()?;
    if recovery.snapshot.is_none() {
        match logs.first() {
            None => {
                let (tree, sessions) = (crate::tree::Tree::new(), Default::default());
                replica = Replica::restored(tree, sessions, first_zxid);
            }
            Some(first) if *first != 1 && *first != FIRST_OF_AN_ENSEMBLE => {
                return Err(FilesError::NoSnapshot { path: directory.log(*first) });
            }
            Some(_) => {}
        }
    }
    if let Some(path) = recovery.snapshot.as_ref().filter(|_| logs.is_empty())
        && replica.last_zxid() > 0
    {
        let log = directory.log(replica.last_zxid().saturating_add(1));
        return Err(FilesError::NoLogs { path: path.clone(), log });
    }
    let needed = first_needed(&logs, replica.last_zxid());
    let mut rest = logs.iter().skip(needed).peekable();
    while let Some(zxid) = rest.next() {
        let path = directory.log(*zxid);
        let mut log = LogReader::open(&path)?;
        let Replayed { txns, torn } = replay(&mut log, &mut replica)?;
        recovery.replayed += txns;
        recovery.torn.extend(torn);
        // The snapshot ends before the next log begins, so the txns are this log's.
        let found = replica.last_zxid();
        if let Some(next) = rest.next_if(|next| **next <= found) {
            return Err(FilesError::LogsOverlap { path, found, next: directory.log(*next) });
        }
    }
    check_end(directory, &recovery, &replica, newest_zxid)?;
    if lacks_lists {
        check_lists(&recovery, &replica)?;
    }
    recovery.nodes = replica.tree().len();
    recovery.ttls = replica.tree().ttls().count();
    recovery.sessions = replica.sessions().len();
    recovery.last_zxid = replica.last_zxid();
    for torn in &recovery.torn {
        let TornTail { path, offset, bytes } = torn;
        warn!(path = %path.display(), offset, bytes, "a txn that was never finished is cut off");
        cut(torn).map_err(FilesError::io("cut", path))?;
    }
    // A server that was killed may have written what it did not come to force. A client that sees
    // those txns now must find them after a power cut, too, or the next log would begin behind a
    // gap.
    force_logs(directory, logs.iter().skip(needed))?;
    directory.sync()?;
    if recovery.snapshot.is_none() {
        // Apache ZooKeeper takes no directory without one.
        write_whole_snapshot(directory, &replica)?;
    } else if recovery.replayed >= snapshot_count
        && let Err(error) = write_whole_snapshot(directory, &replica)
    {
        error!(%error, "no snapshot could be written: the logs since the last one are kept");
        recovery.snapshot_failure = Some(error.to_string());
    }
    let Recovery { replayed, last_zxid, .. } = recovery;
    info!(directory = %directory.root().display(), replayed, last_zxid, "the data is loaded");
    Ok((replica, recovery))
}

fn newest_snapshot(directory: &DataDir, recovery: &mut Recovery) -> Result<Snapshot, FilesError> {
    let mut newest_error = None;
    let snapshots = directory.snapshots()?;
    if let Some((zxid, path)) = directory.compressed_snapshot()?
        && snapshots.last().is_none_or(|newest| *newest < zxid)
    {
        let error = FilesError::CompressedSnapshot { path: path.clone() };
        warn!(%error, "an older snapshot takes its place");
        recovery.unreadable.push(path);
        newest_error = Some(error);
    }
    for zxid in snapshots.into_iter().rev() {
        let path = directory.snapshot(zxid);
        match read_snapshot(&path, zxid) {
            Ok(snapshot) => {
                recovery.snapshot = Some(path);
                return Ok(snapshot);
            }
            Err(error @ FilesError::DamagedSnapshot { .. }) => {
                warn!(%error, "an older snapshot takes its place");
                recovery.unreadable.push(path);
                directory.note_damaged(zxid);
                newest_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    // An empty tree instead of one that was there would be the worst of all answers.
    let empty = || Ok(Snapshot { replica: Replica::new(), lacks_lists: false, newest_zxid: 0 });
    newest_error.map_or_else(empty, Err)
}

/// What a log has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many of its txns were applied; the others the replica showed already.
    pub txns: u64,
    /// What it ends with, if that is no whole txn.
    pub torn: Option<TornTail>,
}

/// Applies what a log has beyond a replica.
///
/// # Errors
/// [`FilesError::MissingTxns`], and as [`LogReader::next`]. The replica then shows the txns before.
pub fn replay<R: BufRead + Seek>(
    log: &mut LogReader<R>,
    replica: &mut Replica,
) -> Result<Replayed, FilesError> {
    let mut replayed = Replayed::default();
    loop {
        // A log knows the zxids that it has read itself.
        let next = log.next().map_err(|error| error.at_least(replica.last_zxid()))?;
        match next {
            Next::Txn(header, txn) => {
                let last = replica.last_zxid();
                if header.zxid <= last {
                    continue;
                }
                if !follows(last, header.zxid) {
                    let path = log.path().to_owned();
                    return Err(FilesError::MissingTxns {
                        path,
                        after_zxid: last,
                        found: header.zxid,
                    });
                }
                replica.apply(&header, &txn);
                replayed.txns += 1;
            }
            Next::End => return Ok(replayed),
            Next::Torn { bytes } => {
                let (path, offset) = (log.path().to_owned(), log.offset());
                return Ok(Replayed { torn: Some(TornTail { path, offset, bytes }), ..replayed });
            }
        }
    }
}

/// Every request takes the next zxid. Only a new leader of an ensemble begins a new epoch, and the first
/// txn of an epoch has the number 1.
fn follows(last: i64, next: i64) -> bool {
    let begins = next & 0xffff_ffff == 1;
    next == last.wrapping_add(1) || begins && next >> 32 > last >> 32
}

/// A server that went on where the logs end would give zxids once more that a snapshot shows. A
/// damaged snapshot shows the zxid of its name, at the least.
fn check_end(
    directory: &DataDir,
    recovery: &Recovery,
    replica: &Replica,
    newest: i64,
) -> Result<(), FilesError> {
    let last_zxid = replica.last_zxid();
    if let Some((zxid, path)) = directory.compressed_snapshot()?
        && zxid > last_zxid
    {
        return Err(FilesError::CompressedSnapshot { path });
    }
    let begun = directory.snapshots()?.into_iter().filter(|zxid| *zxid <= HIGHEST_ZXID).max();
    let begun = begun.unwrap_or_default();
    let (path, found) = match &recovery.snapshot {
        Some(path) if begun <= newest => (path.clone(), newest),
        _ => (directory.snapshot(begun), begun),
    };
    if found <= last_zxid {
        return Ok(());
    }
    Err(FilesError::SnapshotBeyondLogs { path, found, last_zxid })
}

/// Has on disk whatever the logs have that a snapshot needs: it must not outlive the txns that it
/// shows.
///
/// # Errors
/// [`FilesError::Io`].
pub(crate) fn force_logs_of(directory: &DataDir, snapshot: i64) -> Result<(), FilesError> {
    let logs = directory.logs()?;
    force_logs(directory, logs.iter().skip(first_needed(&logs, snapshot)))
}

fn force_logs<'a>(
    directory: &DataDir,
    logs: impl Iterator<Item = &'a i64>,
) -> Result<(), FilesError> {
    for zxid in logs {
        let path = directory.log(*zxid);
        let forced = File::open(&path).and_then(|log| log.sync_all());
        forced.map_err(FilesError::io("sync", &path))?;
    }
    Ok(())
}

/// Apache ZooKeeper's snapshots may have nodes whose access list is told by a later txn only.
fn check_lists(recovery: &Recovery, replica: &Replica) -> Result<(), FilesError> {
    let nobody = nobody();
    let tree = replica.tree();
    let mut next = tree.root();
    while let Some((path, node)) = next {
        if **node.acl() == *nobody {
            return Err(FilesError::DamagedSnapshot {
                path: recovery.snapshot.clone().unwrap_or_default(),
                offset: 0,
                reason: format!("neither it nor the logs have the access list of {path:?}"),
            });
        }
        next = tree.following(&path);
    }
    Ok(())
}

/// The bytes of a torn txn are zeros before the file is made shorter: a server that is killed in
/// between leaves a torn txn, and not a file without its room.
fn cut(torn: &TornTail) -> io::Result<()> {
    let file = File::options().write(true).open(&torn.path)?;
    zeros(&file, torn.offset, torn.offset + torn.bytes)?;
    file.sync_data()?;
    file.set_len(torn.offset + ROOM)?;
    file.sync_all()
}
