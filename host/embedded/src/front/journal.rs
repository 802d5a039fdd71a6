//! Where txns go before they are applied and answered.

use std::path::Path;
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;
use tracing::{error, warn};

use super::options::ServerOptions;
use crate::files::{
    DataDir, FilesError, LogOptions, LogWriter, Recovery, encode_entry, purge, recover,
};
use crate::prepare::Proposal;
use crate::replica::Replica;

/// What outlives the process.
#[derive(Debug)]
pub(super) enum Journal {
    /// Nothing: the state is in memory, and is gone when the server stops.
    Memory,
    /// A data directory.
    Files(FileJournal),
}

/// Whether txns are safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// They are.
    Now,
    /// [`Journal::kept`] will tell.
    Later,
}

/// The thread that writes the log, seen from the runtime.
#[derive(Debug)]
pub(super) struct FileJournal {
    directory: Arc<DataDir>,
    orders: mpsc::Sender<Order>,
    /// Which log the next txns go to.
    log: Log,
    in_flight: Option<Flight>,
    ended: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Flight {
    through: i64,
    kept: oneshot::Receiver<Result<(), FilesError>>,
}

/// Txns to be written.
#[derive(Debug)]
struct Order {
    log: Log,
    first_zxid: i64,
    entries: Vec<u8>,
    kept: oneshot::Sender<Result<(), FilesError>>,
}

#[derive(Debug, Clone, Copy)]
enum Log {
    Same,
    Another,
}

/// A data directory that has been read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) journal: FileJournal,
    pub(super) replica: Replica,
    pub(super) recovery: Recovery,
}

impl Journal {
    /// Whether txns are on their way to the disk.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Journal::Files(FileJournal { in_flight: Some(_), .. }))
    }

    /// Keeps txns, all of them at once, the newest being `through`. Not while it is busy.
    pub(super) fn append<'a>(
        &mut self,
        proposals: impl Iterator<Item = &'a Proposal>,
        through: i64,
    ) -> Result<Kept, FilesError> {
        let Journal::Files(files) = self else { return Ok(Kept::Now) };
        let mut proposals = proposals.peekable();
        let Some(first) = proposals.peek() else { return Ok(Kept::Now) };
        let first_zxid = first.header.zxid;
        let mut entries = Vec::new();
        for proposal in proposals {
            encode_entry(&proposal.header, &proposal.txn, &mut entries);
        }
        let (kept, answer) = oneshot::channel();
        let log = std::mem::replace(&mut files.log, Log::Same);
        let order = Order { log, first_zxid, entries, kept };
        files.orders.send(order).map_err(|_| FilesError::Ended)?;
        files.in_flight = Some(Flight { through, kept: answer });
        Ok(Kept::Later)
    }

    /// Returns once the txns on their way are safe, with the newest of them. Never, if none are.
    ///
    /// # Errors
    /// If that is not certain: then nothing may be answered any more.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn kept(&mut self) -> Result<i64, FilesError> {
        let Journal::Files(FileJournal { in_flight: in_flight @ Some(_), .. }) = self else {
            return std::future::pending().await;
        };
        let Some(flight) = in_flight else { return std::future::pending().await };
        let result = (&mut flight.kept).await;
        let through = flight.through;
        *in_flight = None;
        result.unwrap_or(Err(FilesError::Ended)).map(|()| through)
    }

    /// Begins another log with the next txn.
    pub(super) fn roll(&mut self) {
        if let Journal::Files(files) = self {
            files.log = Log::Another;
        }
    }

    /// The directory to put snapshots in.
    pub(super) fn directory(&self) -> Option<&Arc<DataDir>> {
        match self {
            Journal::Memory => None,
            Journal::Files(files) => Some(&files.directory),
        }
    }

    /// Writes what is on its way, and gives the directory free.
    pub(super) async fn close(self) {
        if let Journal::Files(FileJournal { directory, orders, ended, .. }) = self {
            drop((directory, orders));
            // It fails when the thread has ended, which is what is waited for.
            ended.await.ok();
        }
    }
}

impl FileJournal {
    /// Takes and reads a data directory, on the thread that then writes to it.
    ///
    /// # Errors
    /// See [`FilesError`].
    pub(super) async fn open(root: &Path, options: &ServerOptions) -> Result<Opened, FilesError> {
        let (orders, inbox) = mpsc::channel();
        let (reply, opened) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let (first_zxid, snapshot_count) = (options.first_zxid, options.snapshot_count);
        let ServerOptions { preallocation, force_sync, .. } = *options;
        let log = LogOptions { preallocation, force_sync };
        let owned = root.to_owned();
        let work = move || {
            // Dropped last: the directory is free by then.
            let _end: oneshot::Sender<()> = end;
            let open = || {
                let directory = Arc::new(DataDir::take(&owned)?);
                let (replica, recovery) = recover(&directory, first_zxid, snapshot_count)?;
                if let Err(error) = purge(&directory) {
                    warn!(%error, "old files are not removed");
                }
                Ok((directory, replica, recovery))
            };
            match open() {
                Ok(found) => {
                    let writer = LogWriter::new(found.0.clone(), log);
                    // If nobody waits any more, there will be no orders either.
                    reply.send(Ok(found)).ok();
                    write(writer, &inbox);
                }
                Err(error) => {
                    reply.send(Err(error)).ok();
                }
            }
        };
        std::thread::Builder::new()
            .name("zookeeper-log".to_owned())
            .spawn(work)
            .map_err(FilesError::io("start a thread for", root))?;
        let (directory, replica, recovery) = opened.await.map_err(|_| FilesError::Ended)??;
        let journal = FileJournal { directory, orders, log: Log::Same, in_flight: None, ended };
        Ok(Opened { journal, replica, recovery })
    }
}

/// Works until there are no more orders, or the disk fails.
fn write(mut writer: LogWriter, inbox: &mpsc::Receiver<Order>) {
    for Order { log, first_zxid, entries, kept } in inbox {
        let rolled = match log {
            Log::Same => Ok(()),
            Log::Another => writer.roll(),
        };
        let result = rolled.and_then(|()| writer.append(first_zxid, &entries));
        let is_over = result.is_err();
        // If nobody waits any more, the server has ended, and the log is as it is.
        kept.send(result).ok();
        if is_over {
            // What is on disk is not known any more: not another byte.
            return;
        }
    }
    if let Err(error) = writer.roll() {
        error!(%error, "the log cannot be ended: it is whole, but may be longer");
    }
}
