//! Snapshots, taken piece by piece while the server goes on.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::journal::Journal;
use crate::files::{DataDir, FilesError, SnapshotNode, SnapshotWriter, force_logs_of, purge};
use crate::replica::Replica;

/// How many nodes are taken at a time: less than a millisecond for the state's task.
const PIECE: usize = 256;
/// How many pieces wait for the disk. Their data is shared with the tree.
const PIECES: usize = 4;

/// When snapshots are due, and the one that is being taken.
#[derive(Debug)]
pub(super) struct Snapshots {
    every: u64,
    /// The zxid at which the last one was begun.
    last: i64,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    /// `None` once all nodes have been handed over.
    pieces: Option<mpsc::Sender<Piece>>,
    /// The last node that was handed over.
    at: Option<Arc<str>>,
    done: oneshot::Receiver<Result<(), FilesError>>,
}

#[derive(Debug)]
enum Piece {
    Nodes(Vec<SnapshotNode>),
    End,
}

/// What a snapshot waits for.
#[derive(Debug)]
pub(super) enum Progress {
    /// The next piece, which there is room for.
    Wanted,
    /// Nothing: it is on disk, or has failed.
    Ended(Result<(), FilesError>),
}

impl Snapshots {
    /// Snapshots every so many txns, the last one having been taken at a zxid.
    pub(super) fn new(every: u64, last: i64) -> Self {
        Snapshots { every: every.max(1), last, current: None }
    }

    /// Begins a snapshot if one is due. Every txn so far has been applied and is in the log.
    ///
    /// # Errors
    /// If no thread can be had.
    pub(super) fn begin_if_due(
        &mut self,
        journal: &mut Journal,
        replica: &Replica,
    ) -> Result<(), FilesError> {
        let Some(directory) = journal.directory() else { return Ok(()) };
        let zxid = replica.last_zxid();
        let is_due = u64::try_from(zxid - self.last).is_ok_and(|txns| txns >= self.every);
        if !is_due || self.current.is_some() {
            return Ok(());
        }
        let (pieces, inbox) = mpsc::channel(PIECES);
        let (reply, done) = oneshot::channel();
        let (directory, sessions) = (directory.clone(), replica.sessions().clone());
        let root = directory.root().to_owned();
        let work = move || {
            let begin = SnapshotWriter::begin(directory.clone(), sessions);
            let result = begin.and_then(|writer| write(writer, inbox, zxid, &directory));
            // The directory is free before anybody learns of the end. A server that has ended does not
            // want to.
            drop(directory);
            reply.send(result).ok();
        };
        // However this one ends, the next is due after as many txns again.
        self.last = zxid;
        std::thread::Builder::new()
            .name("zookeeper-snapshot".to_owned())
            .spawn(work)
            .map_err(FilesError::io("start a thread for", root))?;
        journal.roll();
        self.current = Some(Current { pieces: Some(pieces), at: None, done });
        Ok(())
    }

    /// Returns when the current snapshot wants something. Never, if there is none.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn progress(&mut self) -> Progress {
        let Some(current) = &mut self.current else { return std::future::pending().await };
        if let Some(pieces) = &current.pieces
            && let Ok(_room) = pieces.reserve().await
        {
            return Progress::Wanted;
        }
        // All is handed over, or nobody takes it any more: the outcome says why.
        let result = (&mut current.done).await;
        self.current = None;
        Progress::Ended(result.unwrap_or(Err(FilesError::Ended)))
    }

    /// Hands over the next nodes.
    pub(super) fn hand_over(&mut self, replica: &Replica) {
        let Some(current) = &mut self.current else { return };
        let tree = replica.tree();
        let mut nodes = Vec::with_capacity(PIECE);
        while nodes.len() < PIECE {
            let next = match &current.at {
                None => tree.root(),
                Some(at) => tree.following(at),
            };
            let Some((path, node)) = next else { break };
            nodes.push(SnapshotNode::of(path.clone(), node));
            current.at = Some(path);
        }
        let piece = if nodes.is_empty() { Piece::End } else { Piece::Nodes(nodes) };
        let is_end = matches!(piece, Piece::End);
        // There is room. If nobody takes it, the outcome says why.
        let is_taken = current.pieces.as_ref().is_some_and(|pieces| pieces.try_send(piece).is_ok());
        if is_end || !is_taken {
            current.pieces = None;
        }
    }

    /// Gives the current snapshot up, and waits until it has let go of the directory.
    pub(super) async fn close(self) {
        if let Some(Current { pieces, done, .. }) = self.current {
            drop(pieces);
            // However it ended.
            done.await.ok();
        }
    }
}

fn write(
    mut writer: SnapshotWriter,
    mut pieces: mpsc::Receiver<Piece>,
    zxid: i64,
    directory: &DataDir,
) -> Result<(), FilesError> {
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Nodes(nodes) => writer.add(&nodes)?,
            Piece::End => {
                // It shows txns that came after it was begun. They are in the log, but a server that
                // forces nothing may lose them.
                force_logs_of(directory, zxid)?;
                writer.finish(zxid)?;
                tracing::info!(zxid, "a snapshot is written");
                if let Err(error) = purge(directory) {
                    tracing::warn!(%error, "old files are not removed");
                }
                return Ok(());
            }
        }
    }
    // The server ends: the next start removes what was begun.
    Ok(())
}
