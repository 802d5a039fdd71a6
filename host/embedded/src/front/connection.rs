//! One connection: one reader and one writer, in one task.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::actor::Message;
use super::backlog::{Backlog, Load, Out};
use super::clock::Clock;
use crate::protocol::{BadLength, next_frame};
use crate::words::Word;

/// How much is read at once.
const READ_SIZE: usize = 64 << 10;
/// How much is written at once, unless a single frame is larger.
const WRITE_SIZE: usize = 256 << 10;
/// How much of a buffer is kept for the next frames.
const KEPT: usize = 2 * WRITE_SIZE;

/// What a connection needs to know of its server.
#[derive(Debug, Clone)]
pub(super) struct Wires {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) jute_max_buffer: usize,
    pub(super) max_outstanding: usize,
    pub(super) first_frame_timeout: Duration,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
}

/// Serves a connection until either side ends it.
pub(super) async fn run(id: u64, stream: TcpStream, address: SocketAddr, wires: Wires) {
    // Answers are small and waited for. It fails if the connection is over, which the reader notices.
    stream.set_nodelay(true).ok();
    let backlog = Arc::new(Backlog::new());
    let (outgoing, queue) = mpsc::unbounded_channel();
    let opened = Message::Opened { id, address, outgoing, backlog: backlog.clone() };
    if wires.inbox.send(opened).await.is_err() {
        return;
    }
    let (input, output) = stream.into_split();
    let reader = Reader { id, input, buffer: BytesMut::new(), backlog: &backlog, wires: &wires };
    let writer = Writer { id, output, queue, backlog: &backlog, wires: &wires };
    // Both borrow the halves of one socket: whichever ends first, the connection is over, and
    // what the other had in hand is of no use to anybody.
    tokio::select! {
        () = reader.run() => {}
        () = writer.run() => {}
        () = backlog.is_over() => {}
        () = wires.stop.cancelled() => {}
    }
    // It fails if the server has ended, and forgotten the connection with the rest.
    wires.inbox.send(Message::Closed { id }).await.ok();
}

struct Reader<'a> {
    id: u64,
    input: OwnedReadHalf,
    buffer: BytesMut,
    backlog: &'a Backlog,
    wires: &'a Wires,
}

impl Reader<'_> {
    async fn run(mut self) {
        let mut next = timeout(self.wires.first_frame_timeout, self.first()).await.ok().flatten();
        while let Some(frames) = next {
            self.backlog.arrived(&frames);
            let message = Message::Frames { id: self.id, frames, arrived: self.wires.clock.now() };
            if self.wires.inbox.send(message).await.is_err() {
                return;
            }
            self.backlog.has_room(self.wires.max_outstanding).await;
            next = self.frames().await;
        }
    }

    /// The first frames. Answers a four-letter word, which only the first bytes of a connection can
    /// be. `None` if the connection is over.
    async fn first(&mut self) -> Option<Vec<Bytes>> {
        while self.buffer.len() < 4 {
            self.fill().await?;
        }
        let word = self.buffer.first_chunk::<4>().and_then(|head| Word::from_bytes(*head));
        let Some(word) = word else { return self.frames().await };
        let (reply, answer) = oneshot::channel();
        let ask = Message::Word { id: self.id, word, reply };
        self.wires.inbox.send(ask).await.ok()?;
        // The writer sends it and closes; until then, or until the server ends, there is nothing to
        // do here.
        answer.await.ok();
        std::future::pending().await
    }

    /// What comes in next, at least one frame. `None` if the connection is over.
    async fn frames(&mut self) -> Option<Vec<Bytes>> {
        loop {
            let frames = self.whole_frames().inspect_err(|BadLength(length)| {
                debug!(connection = self.id, length, "a frame of this length is refused");
            });
            match frames.ok()? {
                frames if frames.is_empty() => self.fill().await?,
                frames => return Some(frames),
            }
        }
    }

    async fn fill(&mut self) -> Option<()> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = BytesMut::new();
        }
        // Grows with what has come in, so a claimed length costs nothing.
        self.buffer.reserve(READ_SIZE.min(self.wires.jute_max_buffer + 4));
        match self.input.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    fn whole_frames(&mut self) -> Result<Vec<Bytes>, BadLength> {
        let mut frames = Vec::new();
        loop {
            match next_frame(&mut self.buffer, self.wires.jute_max_buffer) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return Ok(frames),
                // What came before it is still served.
                Err(_) if !frames.is_empty() => return Ok(frames),
                Err(error) => return Err(error),
            }
        }
    }
}

struct Writer<'a> {
    id: u64,
    output: OwnedWriteHalf,
    queue: mpsc::UnboundedReceiver<Out>,
    backlog: &'a Backlog,
    wires: &'a Wires,
}

impl Writer<'_> {
    async fn run(mut self) {
        let mut buffer = BytesMut::new();
        while let Some(first) = self.queue.recv().await {
            let mut next = Some(first);
            let (mut is_last, mut load) = (false, Load::default());
            while let Some(out) = next {
                load.add(&out);
                match out {
                    Out::Reply(frame) | Out::Event(frame) => buffer.extend_from_slice(&frame),
                    Out::Close => is_last = true,
                }
                if is_last || buffer.len() >= WRITE_SIZE {
                    break;
                }
                // Nothing more for now, or ever: what there is goes out either way.
                next = self.queue.try_recv().ok();
            }
            if self.output.write_all(&buffer).await.is_err() {
                return;
            }
            buffer.clear();
            if buffer.capacity() > KEPT {
                buffer = BytesMut::new();
            }
            if self.backlog.sent(&load)
                && self.wires.inbox.send(Message::Drained { id: self.id }).await.is_err()
            {
                return;
            }
            if is_last {
                // It fails if the client has closed first.
                self.output.shutdown().await.ok();
                return;
            }
        }
    }
}
