//! What is kept of old files.

use super::directory::{DataDir, remove};
use super::error::FilesError;

/// As many snapshots as Apache ZooKeeper's autopurge keeps, at the least and by default.
const SNAPSHOTS: usize = 3;

/// Removes the snapshots before the newest three that can be read, and the logs that none of those needs. One
/// that could not be read, as after a full disk, is worth nothing, so it keeps no other from being kept.
///
/// # Errors
/// [`FilesError::Io`].
pub fn purge(directory: &DataDir) -> Result<(), FilesError> {
    let snapshots = directory.snapshots()?;
    let mut newest = snapshots.iter().rev().filter(|zxid| !directory.is_damaged(**zxid));
    let Some(oldest) = newest.nth(SNAPSHOTS - 1).copied() else { return Ok(()) };
    for zxid in snapshots.iter().take_while(|zxid| **zxid < oldest) {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_snapshot_that_cannot_be_read_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::take(root.path()).unwrap();
        for zxid in [10, 20, 30, 40, 50, 60] {
            fs::write(directory.snapshot(zxid), "").unwrap();
            fs::write(directory.log(zxid + 1), "").unwrap();
        }
        for damaged in [20, 50, 60] {
            directory.note_damaged(damaged);
        }
        purge(&directory).unwrap();
        assert_eq!(directory.snapshots().unwrap(), [10, 20, 30, 40, 50, 60], "only three are good");
        fs::write(directory.snapshot(70), "").unwrap();
        purge(&directory).unwrap();
        assert_eq!(directory.snapshots().unwrap(), [30, 40, 50, 60, 70]);
        assert_eq!(directory.logs().unwrap(), [31, 41, 51, 61]);
    }
}
