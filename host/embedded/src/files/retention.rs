//! What is kept of old files.

use super::directory::{DataDir, remove};
use super::error::FilesError;

/// As many snapshots as Apache ZooKeeper's autopurge keeps, at the least and by default.
const SNAPSHOTS: usize = 3;

/// Removes the snapshots before the newest three, and the logs that none of those needs.
///
/// # Errors
/// [`FilesError::Io`].
pub fn purge(directory: &DataDir) -> Result<(), FilesError> {
    let snapshots = directory.snapshots()?;
    let Some(kept) = snapshots.len().checked_sub(SNAPSHOTS) else { return Ok(()) };
    let Some(oldest) = snapshots.get(kept).copied() else { return Ok(()) };
    for zxid in snapshots.iter().take(kept) {
        remove(&directory.snapshot(*zxid))?;
    }
    let logs = directory.logs()?;
    for zxid in logs.iter().take(first_needed(&logs, oldest)) {
        remove(&directory.log(*zxid))?;
    }
    Ok(())
}

/// The index of the log that has the first txn after a snapshot.
pub(super) fn first_needed(logs: &[i64], snapshot: i64) -> usize {
    logs.partition_point(|zxid| *zxid <= snapshot.saturating_add(1)).saturating_sub(1)
}
