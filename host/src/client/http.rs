//! One request to the daemon, and its answer.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::{ClientError, HostError};
use super::lines::Lines;
use super::socket::Socket;
use crate::tasks::Tasks;

/// How large an answer, or one line of it, may be: as large as a module's memory is by default.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// How long the daemon may take to begin an answer that waits for nothing. On a machine that is too
/// busy it takes seconds; one that is stopped never answers.
pub(super) const PROMPT: Duration = Duration::from_secs(10);

/// A client of the daemon at one socket. Each request has a connection of its own, whose end tells
/// the daemon that nobody waits for the answer any more.
#[derive(Debug, Clone)]
pub struct Client {
    socket: Socket,
    tasks: Tasks,
}

/// An answer whose body is still to be read. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    pub(super) body: Incoming,
    _open: DropGuard,
}

impl Client {
    /// A client that runs its connections as tasks of `tasks`.
    pub fn new(socket: Socket, tasks: Tasks) -> Self {
        Client { socket, tasks }
    }

    /// Where it looks for the daemon.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The tasks that its connections are.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Asks for something that the daemon knows at once.
    ///
    /// # Errors
    /// It cannot be asked, or refuses; or its answer is of another type.
    ///
    /// # Cancellation
    /// Closes the connection.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.promptly(async {
            let answer = self.request(Method::GET, path, None).await?;
            let bytes = self.whole(answer).await?;
            serde_json::from_slice(&bytes).map_err(|error| self.not_ours(error))
        })
        .await
    }

    /// Asks for lines.
    ///
    /// # Errors
    /// As of [`get`](Client::get).
    ///
    /// # Cancellation
    /// As of [`get`](Client::get).
    pub async fn lines(&self, path: &str) -> Result<Lines, ClientError> {
        self.stream(Method::GET, path, None).await
    }

    pub(super) async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Lines, ClientError> {
        let answer = self.promptly(self.request(method, path, body)).await?;
        Ok(Lines::new(answer, self.socket.clone()))
    }

    /// Has something done that answers nothing of interest, however long it takes.
    pub(super) async fn command(&self, method: Method, path: &str) -> Result<(), ClientError> {
        let answer = self.request(method, path, None).await?;
        self.whole(answer).await.map(drop)
    }

    async fn promptly<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let silent = |_elapsed| ClientError::Silent { socket: self.socket.clone(), limit: PROMPT };
        tokio::time::timeout(PROMPT, request).await.map_err(silent)?
    }

    /// An answer that is no error.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        let stream = self.connect().await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| self.unanswered(&error))?;
        let open = CancellationToken::new();
        let (closed, open) = (open.clone(), open.drop_guard());
        self.tasks.spawn("api", async move {
            // Reading the answer fails with what goes wrong here.
            drop(closed.run_until_cancelled(connection).await);
        });
        // Of the two names that the daemon answers to on a Unix socket; no server looks at it here.
        let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        let mut bytes = Bytes::new();
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json");
            bytes = Bytes::from(body.to_string());
        }
        // Nothing else can be wrong: what is in a path is escaped.
        let request = request.body(Full::new(bytes)).map_err(|_too_long| too_long())?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| self.unanswered(&error))?;
        let (head, body) = response.into_parts();
        let answer = Answer { status: head.status, body, _open: open };
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(self.refusal(answer).await)
    }

    async fn connect(&self) -> Result<UnixStream, ClientError> {
        let socket = || self.socket.clone();
        let stream = UnixStream::connect(self.socket.path()).await.map_err(|error| {
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ClientError::NobodyListens { socket: socket() }
                }
                // Its queue of connections is full.
                io::ErrorKind::WouldBlock => {
                    ClientError::Silent { socket: socket(), limit: Duration::ZERO }
                }
                _ => ClientError::Refused { socket: socket(), source: error },
            }
        })?;
        let peer = stream.peer_cred();
        let peer = peer.map_err(|source| ClientError::Refused { socket: socket(), source })?;
        if !self.socket.trusts(peer.uid()) {
            return Err(self.not_ours(format!("it belongs to the user {}", peer.uid())));
        }
        Ok(stream)
    }

    /// What an error says.
    async fn refusal(&self, answer: Answer) -> ClientError {
        let status = answer.status;
        let bytes = match self.whole(answer).await {
            Ok(bytes) => bytes,
            Err(error) => return error,
        };
        if status == StatusCode::CONFLICT
            && let Ok(Value::Object(mut error)) = serde_json::from_slice(&bytes)
            && let Some(error) = error.remove("error")
        {
            return ClientError::Operation(error);
        }
        match serde_json::from_slice::<HostError>(&bytes) {
            Ok(error) => ClientError::Host(error),
            // The daemon says no more to a head that is too large.
            Err(_) if status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => too_long(),
            Err(_) => self.not_ours(format!("it answers {status}, and does not say why")),
        }
    }

    async fn whole(&self, answer: Answer) -> Result<Bytes, ClientError> {
        let Answer { body, _open, .. } = answer;
        match Limited::new(body, MOST_BYTES).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) => Err(match error.downcast_ref::<hyper::Error>() {
                Some(error) => self.broken(error),
                None => self.not_ours(format!("it answers more than {} MiB", MOST_BYTES >> 20)),
            }),
        }
    }

    /// What is wrong before there is the head of an answer.
    fn unanswered(&self, error: &hyper::Error) -> ClientError {
        match self.broken(error) {
            ClientError::Gone { socket } => ClientError::Unanswered { socket },
            other => other,
        }
    }

    fn broken(&self, error: &hyper::Error) -> ClientError {
        match error.is_parse() || error.is_parse_too_large() {
            true => self.not_ours(error),
            false => ClientError::Gone { socket: self.socket.clone() },
        }
    }

    fn not_ours(&self, what: impl std::fmt::Display) -> ClientError {
        ClientError::NotOurs { socket: self.socket.clone(), what: what.to_string() }
    }
}

/// What is said of a name that fits into no request.
fn too_long() -> ClientError {
    ClientError::Host(HostError {
        kind: "too-large".to_owned(),
        message: "a name is too long for the daemon: the head of a request has 16 KiB at most"
            .to_owned(),
        reason: None,
        cause: None,
    })
}

/// A path of these segments, whatever is in them.
pub fn path<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut path = String::from("/v1");
    for segment in segments {
        path.push('/');
        for byte in segment.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                    path.push(char::from(byte));
                }
                // A segment of dots alone means another place.
                byte => path.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    path
}

#[cfg(test)]
mod tests;
