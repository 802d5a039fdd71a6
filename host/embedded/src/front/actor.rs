//! The task that owns the state.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::backlog::{Backlog, IN_HAND, Out, Outgoing};
use super::clock::Clock;
use super::journal::{Journal, Kept};
use super::snapshots::{Progress, Snapshots};
use super::status::Status;
use crate::files::FilesError;
use crate::serve::Delivery;
use crate::standalone::Standalone;
use crate::time::Now;
use crate::words::{self, Settings, Word};

/// How many messages are worked off before their txns are forced, all at once.
const BATCH: usize = 256;
/// How many frames of one connection are served before it is the others' turn.
const TURN: usize = 64;
/// How many reads may wait for a write of their connection. Their answers are all made when it is
/// committed, whether or not the client takes them.
const MAX_WAITING_READS: usize = 16;

/// What a user who hands a directory over must know, told when the server leaves the directory.
const TTLS_AT_APACHE: &str = "there are nodes with a time to live: Apache ZooKeeper drops them when it \
                              starts here, unless it has `extendedTypesEnabled=true`";

/// What connections tell the state's task.
#[derive(Debug)]
pub(super) enum Message {
    Opened { id: u64, address: SocketAddr, outgoing: Outgoing, backlog: Arc<Backlog> },
    Frames { id: u64, frames: Vec<Bytes>, arrived: Now },
    Drained { id: u64 },
    Word { id: u64, word: Word, reply: oneshot::Sender<()> },
    Closed { id: u64 },
}

struct Peer {
    outgoing: Outgoing,
    backlog: Arc<Backlog>,
    /// Frames that wait because too much is unsent or unanswered. The reader stops at a number.
    parked: VecDeque<(Bytes, Now)>,
}

/// What makes the state outlive the process.
pub(super) struct Keeping {
    pub(super) journal: Journal,
    pub(super) snapshots: Snapshots,
    pub(super) status: Status,
}

/// The state and its surroundings.
pub(super) struct Actor {
    pub(super) state: Standalone,
    pub(super) keeping: Keeping,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) max_outstanding: usize,
    peers: BTreeMap<u64, Peer>,
    /// Whose turn was over before all was served.
    unfinished: VecDeque<u64>,
}

impl Actor {
    pub(super) fn new(
        state: Standalone,
        keeping: Keeping,
        clock: Clock,
        settings: Settings,
        max_outstanding: usize,
    ) -> Self {
        let (peers, unfinished) = (BTreeMap::new(), VecDeque::new());
        Actor { state, keeping, clock, settings, max_outstanding, peers, unfinished }
    }

    /// Works until the server ends.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Message>,
        sweep_every: Duration,
        stop: CancellationToken,
    ) {
        // However it ends, by a panic even: nobody may wait for a server without a state.
        let _end = stop.clone().drop_guard();
        let tick = Duration::from_millis(self.state.leader().sessions().tick_ms());
        let mut ticks = self.clock.every(tick);
        let mut sweeps = self.clock.every(sweep_every);
        let mut batch = Vec::with_capacity(BATCH);
        self.state.close_unknown_sessions(self.clock.now());
        let mut result = self.settle();
        while result.is_ok() {
            // All branches may lose: messages stay in the inbox, ticks come again, and what the
            // disk has done is still told.
            result = tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => {
                    self.state.tick(self.clock.now());
                    Ok(())
                }
                _ = sweeps.tick() => {
                    self.state.sweep(self.clock.now());
                    Ok(())
                }
                kept = self.keeping.journal.kept() => kept.map(|through| self.commit(through)),
                progress = self.keeping.snapshots.progress() => {
                    self.snapshot(progress);
                    Ok(())
                }
                count = inbox.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        break;
                    }
                    for message in batch.drain(..) {
                        self.take(message);
                    }
                    Ok(())
                }
                // The connections' own tasks get a turn, too.
                () = tokio::task::yield_now(), if !self.unfinished.is_empty() => Ok(()),
            };
            if let Some(id) = self.unfinished.pop_front() {
                self.serve(id);
            }
            result = result.and_then(|()| self.settle());
        }
        if let Err(error) = result {
            // What was not kept must not be answered, and nothing after it can be.
            error!(%error, "the data cannot be kept: the server ends");
            self.keeping.status.fail(error);
        }
        let nodes = self.state.member().replica().tree().ttls().count();
        if self.keeping.journal.directory().is_some() && nodes > 0 {
            warn!(nodes, "{TTLS_AT_APACHE}");
        }
        self.keeping.snapshots.close().await;
        self.keeping.journal.close().await;
    }

    /// Appends everything prepared to the journal unless a write is in flight, then answers what is durable.
    fn settle(&mut self) -> Result<(), FilesError> {
        while !self.keeping.journal.is_busy() && !self.state.is_idle() {
            let through = self.state.leader().last_zxid();
            match self.keeping.journal.append(self.state.prepared(), through)? {
                Kept::Now => self.commit(through),
                Kept::Later => break,
            }
        }
        self.deliver();
        Ok(())
    }

    /// Applies and answers what is kept, and serves what that sets free.
    fn commit(&mut self, through: i64) {
        self.state.commit(through, self.clock.now());
        self.deliver();
        let parked: Vec<u64> =
            self.peers.iter().filter(|(_, p)| !p.parked.is_empty()).map(|(id, _)| *id).collect();
        for id in parked {
            self.serve(id);
        }
        let Keeping { journal, snapshots, status } = &mut self.keeping;
        let begun = snapshots.begin_if_due(journal, self.state.member().replica());
        if begun.is_err() {
            snapshot_ended(status, &begun);
        }
    }

    fn snapshot(&mut self, progress: Progress) {
        match progress {
            Progress::Wanted => self.keeping.snapshots.hand_over(self.state.member().replica()),
            Progress::Ended(result) => snapshot_ended(&self.keeping.status, &result),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Opened { id, address, outgoing, backlog } => {
                self.peers.insert(id, Peer { outgoing, backlog, parked: VecDeque::new() });
                self.state.open(id, address, self.clock.now());
            }
            Message::Frames { id, frames, arrived } => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    self.state.heard(id, frames.iter().map(|frame| &**frame), self.clock.now());
                    peer.parked.extend(frames.into_iter().map(|frame| (frame, arrived)));
                    self.serve(id);
                }
            }
            Message::Drained { id } => self.serve(id),
            Message::Closed { id } => {
                self.peers.remove(&id);
                self.state.disconnected(id);
            }
            Message::Word { id, word, reply } => {
                let text = words::answer(word, &mut self.state, &self.settings, self.clock.now());
                if let Some(peer) = self.peers.get(&id) {
                    let text = Out::Reply(Bytes::from(text));
                    peer.backlog.queued(&text);
                    // They fail if the connection has just ended, and with it what they are for.
                    peer.outgoing.send(text).ok();
                    peer.outgoing.send(Out::Close).ok();
                    peer.backlog.close();
                }
                // It fails if the connection has just ended, and nobody waits any more.
                reply.send(()).ok();
            }
        }
    }

    /// Serves what a connection has sent, as long as it takes what it is sent and it is its turn.
    fn serve(&mut self, id: u64) {
        for _ in 0..TURN {
            let Some(peer) = self.peers.get_mut(&id) else { return };
            if peer.backlog.is_full() {
                peer.backlog.park();
                // The writer may have caught up before it could see that it is waited for.
                if peer.backlog.is_full() {
                    return;
                }
            }
            let connection = self.state.member().connection(id);
            let is_waiting = connection.is_some_and(|connection| {
                connection.outstanding() >= self.max_outstanding
                    || connection.outstanding_bytes() >= IN_HAND
                    || connection.outstanding_reads() >= MAX_WAITING_READS
            });
            // Then it is served when those have been answered: see `commit`.
            if is_waiting {
                return;
            }
            let Some((frame, arrived)) = peer.parked.pop_front() else { return };
            peer.backlog.served(&frame);
            self.state.receive_late(id, &frame, arrived, self.clock.now());
            self.deliver();
        }
        if !self.unfinished.contains(&id) {
            self.unfinished.push_back(id);
        }
    }

    fn deliver(&mut self) {
        for delivery in self.state.take_deliveries() {
            match delivery {
                Delivery::Reply { connection, frame } => self.send(connection, Out::Reply(frame)),
                Delivery::Event { connection, frame } => {
                    let peer = self.peers.get(&connection);
                    if peer.is_some_and(|peer| peer.backlog.is_full_of_events()) {
                        debug!(connection, "it does not take its events: it is closed");
                        if let Some(peer) = self.peers.remove(&connection) {
                            peer.backlog.kill();
                        }
                        self.state.disconnected(connection);
                    } else {
                        self.send(connection, Out::Event(frame));
                    }
                }
                Delivery::Close { connection } => {
                    if let Some(peer) = self.peers.remove(&connection) {
                        // It fails if the connection has just ended by itself.
                        peer.outgoing.send(Out::Close).ok();
                        peer.backlog.close();
                    }
                }
            }
        }
    }

    fn send(&mut self, connection: u64, out: Out) {
        if let Some(peer) = self.peers.get(&connection) {
            peer.backlog.queued(&out);
            // It fails if the connection has just ended, which its own message will tell.
            peer.outgoing.send(out).ok();
        }
    }
}

/// A snapshot that failed is no reason to end: the logs have what would be in it.
fn snapshot_ended(status: &Status, result: &Result<(), FilesError>) {
    if let Err(error) = result {
        error!(%error, "no snapshot could be written: the logs since the last one are kept");
    }
    status.snapshot_ended(result);
}
