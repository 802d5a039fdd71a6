//! An app's side: hyper on a Unix socket, and nothing of wok.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::patience::within;

/// Closes the connection when it is dropped.
type Connection = AbortOnDropHandle<()>;

/// An answer that has come whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body; null if it is empty.
    pub body: Value,
}

/// An app that speaks HTTP through a socket. Each request has a connection of its own.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// An app at that socket.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Client { socket: socket.into() }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// Nobody answers, or not with JSON.
    pub async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        let (response, _connection) = self.send(method, path, body).await?;
        let status = response.status().as_u16();
        let body = within("the body of an answer", response.into_body().collect()).await??;
        let body = body.to_bytes();
        let body = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body)
                .with_context(|| format!("{status}: {}", String::from_utf8_lossy(&body)))?,
        };
        Ok(Answer { status, body })
    }

    /// Gets.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask("GET", path, &Value::Null).await
    }

    /// Posts.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.ask("POST", path, body).await
    }

    /// Posts, and follows the lines of the answer.
    ///
    /// # Errors
    /// Nobody answers, or with another status than 200.
    pub async fn stream(&self, path: &str, body: &Value) -> Result<Events> {
        self.follow("POST", path, body).await
    }

    /// Sends a request, and follows the lines of the answer.
    ///
    /// # Errors
    /// Nobody answers, or with another status than 200.
    pub async fn follow(&self, method: &str, path: &str, body: &Value) -> Result<Events> {
        let (response, connection) = self.send(method, path, body).await?;
        if response.status() != 200 {
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(Events { body: response.into_body(), read: Vec::new(), _connection: connection })
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(Response<Incoming>, Connection)> {
        let stream = within("a connection", UnixStream::connect(&self.socket)).await??;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = Handle::current().spawn(async move {
            // How it ends is seen by who reads the answer.
            connection.await.ok();
        });
        let connection = AbortOnDropHandle::new(connection);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header("Host", "wok");
        let request = request.body(Full::new(Bytes::from(body)))?;
        let response = within("an answer", sender.send_request(request)).await??;
        Ok((response, connection))
    }
}

/// The lines of an answer, as they come. Dropping it closes the connection.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    read: Vec<u8>,
    _connection: Connection,
}

impl Events {
    /// The next line; none when the answer is over.
    ///
    /// # Errors
    /// It does not come, or is no JSON, or the answer breaks off in a line.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match within("a line", self.body.frame()).await? {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                None if self.read.is_empty() => return Ok(None),
                None => bail!("broken off: {}", String::from_utf8_lossy(&self.read)),
            }
        }
    }

    /// The next line of that event; others are passed over.
    ///
    /// # Errors
    /// As [`next`](Self::next), or the answer is over before.
    pub async fn until(&mut self, event: &str) -> Result<Value> {
        let mut passed = Vec::new();
        while let Some(line) = self.next().await? {
            if line.get("event").is_some_and(|it| it == event) {
                return Ok(line);
            }
            passed.push(line);
        }
        bail!("it was over without {event:?}: {passed:#?}")
    }
}
