//! One connection: two loops that pass frames on, and what ends them.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;

use super::fault::{Action, Cut};
use super::gate::Direction;
use super::rate::PIECE;
use super::wiring::{Language, Line, Releases, Verdict, Wiring};
use crate::frames::{self, ConnectResponse, MAX_FRAME, ReplyHeader, RequestHead};

/// How long a peer may take to close after it was told the end of the stream, or to listen.
const LINGER: Duration = Duration::from_secs(5);

/// How soon a server that does not listen is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// Accepts connections for ever.
pub(super) async fn accept(listener: TcpListener, wiring: Arc<Wiring>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        match wiring.line() {
            Some(line) => {
                let wiring = Arc::clone(&wiring);
                connections.spawn(async move { serve(client, &line, &wiring).await });
            }
            None => end(client, Cut::Reset).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// What ended the loops of a connection.
enum End {
    /// A peer closed, or a fault cut both sides.
    Both(Cut),
    /// The client's side is to be cut; the server's once it has answered that request.
    ClientFirst(Cut, i32),
}

async fn serve(mut client: TcpStream, line: &Line, wiring: &Wiring) {
    let Ok(mut server) = reach(wiring).await else {
        wiring.hang_up(line);
        return end(client, Cut::Reset).await;
    };
    // A request that waits for a full segment would make every test slow. Here, and where an end is
    // passed on below, it fails if the stream is broken already.
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let how = tokio::select! {
        how = relay(&mut client, &mut server, line, wiring) => how,
        cut = line.is_cut() => End::Both(cut),
    };
    // From here on the connection is down as far as the test is concerned.
    wiring.hang_up(line);
    match how {
        End::Both(cut) => {
            tokio::join!(end(client, cut), end(server, cut));
        }
        End::ClientFirst(cut, xid) => {
            let answered = async {
                while let Ok(Some(message)) = frames::read(&mut server).await {
                    if ReplyHeader::decode(&message).is_ok_and(|header| header.xid == xid) {
                        break;
                    }
                }
                end(server, cut).await;
            };
            tokio::join!(end(client, cut), answered);
        }
    }
}

/// Connects to the server. A leader that was just elected may not listen yet, and a server that is
/// to follow it would hold another election instead of trying again.
async fn reach(wiring: &Wiring) -> io::Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(wiring.upstream).await {
            Err(_) if wiring.language == Language::Unknown && began.elapsed() < LINGER => {
                late(AGAIN).await;
            }
            outcome => return outcome,
        }
    }
}

async fn end(mut stream: TcpStream, cut: Cut) {
    match cut {
        // It fails only if the stream is broken already.
        Cut::Reset => {
            stream.set_zero_linger().ok();
        }
        // Closing with bytes unread would be a reset too, so they are read until the peer closes.
        Cut::Fin => {
            stream.shutdown().await.ok();
            let mut rest = tokio::io::sink();
            tokio::time::timeout(LINGER, tokio::io::copy(&mut stream, &mut rest)).await.ok();
        }
    }
}

async fn relay(
    client: &mut TcpStream,
    server: &mut TcpStream,
    line: &Line,
    wiring: &Wiring,
) -> End {
    let is_foreign = match wiring.language {
        Language::Frames => is_foreign(client).await,
        Language::Unknown => true,
    };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    if is_foreign {
        let requests = pass_on(from_client, to_server, (line, wiring), true);
        let replies = pass_on(from_server, to_client, (line, wiring), false);
        tokio::join!(requests, replies);
        return End::Both(Cut::Fin);
    }
    let unanswered = Unanswered::default();
    let relay = Relay { line, wiring, unanswered };
    let requests = async {
        match relay.requests(from_client, to_server).await {
            Ok(Some(end)) => end,
            // The client has closed; the server answers that by closing too.
            Ok(None) => std::future::pending().await,
            Err(_) => End::Both(Cut::Reset),
        }
    };
    tokio::select! {
        end = requests => end,
        end = relay.replies(from_server, to_client) => end.unwrap_or(End::Both(Cut::Reset)),
    }
}

async fn is_foreign(client: &TcpStream) -> bool {
    let mut first = [0; 4];
    // The length of the handshake, or the first bytes of another protocol, which would be a
    // length out of all reason.
    while !matches!(client.peek(&mut first).await, Ok(0 | 4) | Err(_)) {
        tokio::task::yield_now().await;
    }
    u32::from_be_bytes(first) as usize > MAX_FRAME
}

async fn line_and_link(line: &Line, wiring: &Wiring, is_request: bool) {
    wiring.gate.pass_bytes(is_request).await;
    line.gate.pass_bytes(is_request).await;
}

/// Sends bytes as fast as the link carries them.
async fn send(
    mut bytes: &[u8],
    to: &mut WriteHalf<'_>,
    wiring: &Wiring,
    is_request: bool,
) -> io::Result<()> {
    while wiring.rate.is_limited() && bytes.len() > PIECE {
        let (piece, rest) = bytes.split_at(PIECE);
        wiring.rate.pass(is_request, piece.len()).await;
        to.write_all(piece).await?;
        bytes = rest;
    }
    wiring.rate.pass(is_request, bytes.len()).await;
    to.write_all(bytes).await
}

/// Passes bytes on unread until the stream ends or fails.
async fn pass_on(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    (line, wiring): (&Line, &Wiring),
    is_request: bool,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        line_and_link(line, wiring, is_request).await;
        if to.write_all(bytes.get(..length).unwrap_or_default()).await.is_err() {
            break;
        }
    }
    wiring.gate.pass_end(is_request).await;
    to.shutdown().await.ok();
}

/// What is to be done about the reply to a request.
#[derive(Clone, Copy)]
enum AtReply {
    Pass,
    Drop,
    DropAndCut(Cut),
    Refuse(i32),
    Stall(Releases),
}

/// The requests whose replies have not come, by xid: their place in the log and their fate.
#[derive(Default)]
struct Unanswered(Mutex<HashMap<i32, (usize, AtReply)>>);

impl Unanswered {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, (usize, AtReply)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Relay<'a> {
    line: &'a Line,
    wiring: &'a Wiring,
    unanswered: Unanswered,
}

impl Relay<'_> {
    /// Passes requests on until the client closes (none) or a fault ends the connection.
    async fn requests(
        &self,
        mut from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
    ) -> io::Result<Option<End>> {
        let mut is_handshake = true;
        while let Some(mut message) = frames::read(&mut from).await? {
            let mut cut_after = None;
            if !std::mem::take(&mut is_handshake)
                && let Ok(head) = RequestHead::decode(&message)
            {
                let xid = head.xid;
                let Verdict { place, action, releases } =
                    self.wiring.saw_request(self.line, head, message.len());
                let at_reply = match action {
                    Some(Action::CutBefore(cut)) => return Ok(Some(End::Both(cut))),
                    Some(Action::Refuse(error)) => {
                        // The server answers it in its turn.
                        message = RequestHead::harmless(xid);
                        AtReply::Refuse(error)
                    }
                    Some(Action::DropReply) => AtReply::Drop,
                    Some(Action::DropReplyAndCut(cut)) => AtReply::DropAndCut(cut),
                    Some(Action::StallReplies) => AtReply::Stall(releases),
                    _ => AtReply::Pass,
                };
                self.unanswered.lock().insert(xid, (place, at_reply));
                match action {
                    Some(Action::StallRequests) => self.stall(Direction::Requests, releases),
                    Some(Action::HalfOpen) => self.stall(Direction::Both, releases),
                    Some(Action::Delay(time)) => late(time).await,
                    Some(Action::CutAfter(cut)) => cut_after = Some(End::ClientFirst(cut, xid)),
                    _ => {}
                }
            }
            line_and_link(self.line, self.wiring, true).await;
            send(&frames::frame(&message), &mut to, self.wiring, true).await?;
            if cut_after.is_some() {
                return Ok(cut_after);
            }
        }
        line_and_link(self.line, self.wiring, true).await;
        to.shutdown().await?;
        Ok(None)
    }

    /// Passes replies and notifications on until the server closes or a fault ends the connection.
    async fn replies(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<End> {
        let mut is_handshake = true;
        while let Some(mut message) = frames::read(&mut from).await? {
            if std::mem::take(&mut is_handshake) {
                if let Ok(response) = ConnectResponse::decode(&message) {
                    self.wiring.saw_session(response);
                }
            } else if let Ok(header) = ReplyHeader::decode(&message) {
                match self.fate(header) {
                    AtReply::Pass => {}
                    AtReply::Refuse(error) => message = ReplyHeader { error, ..header }.encode(),
                    AtReply::Drop => continue,
                    AtReply::DropAndCut(cut) => return Ok(End::Both(cut)),
                    AtReply::Stall(releases) => self.stall(Direction::Replies, releases),
                }
            }
            line_and_link(self.line, self.wiring, false).await;
            send(&frames::frame(&message), &mut to, self.wiring, false).await?;
        }
        line_and_link(self.line, self.wiring, false).await;
        Ok(End::Both(Cut::Fin))
    }

    fn stall(&self, direction: Direction, releases: Releases) {
        self.wiring.stall_line(self.line, direction, releases);
    }

    fn fate(&self, header: ReplyHeader) -> AtReply {
        if header.xid == ReplyHeader::NOTIFICATION {
            return AtReply::Pass;
        }
        let Some((place, at_reply)) = self.unanswered.lock().remove(&header.xid) else {
            return AtReply::Pass;
        };
        self.wiring.saw_answer(place, header);
        at_reply
    }
}

async fn late(time: Duration) {
    // tidy: the wait is the fault that the test asked for, or between two attempts
    tokio::time::sleep(time).await;
}
