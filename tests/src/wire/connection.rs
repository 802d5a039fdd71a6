//! A client's connection. It blocks, and its patience only stops a hang.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::frames::{ConnectRequest, ConnectResponse, Fields, SessionKey, frame};
use crate::patience::PATIENCE;

/// Whether the first message has its last field, which old clients leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlyByte {
    /// It has.
    Sent,
    /// It ends before it.
    LeftOut,
}

/// What a client says first.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The session timeout it asks for.
    pub timeout: Duration,
    /// The session it comes back to.
    pub session: Option<SessionKey>,
    /// The newest zxid it has seen.
    pub last_zxid: i64,
    /// Whether it knows of read-only servers.
    pub read_only: ReadOnlyByte,
}

impl Default for Hello {
    fn default() -> Self {
        let timeout = Duration::from_secs(10);
        Hello { timeout, session: None, last_zxid: 0, read_only: ReadOnlyByte::Sent }
    }
}

/// What the server says to that.
#[derive(Clone, Debug)]
pub(super) struct Welcome {
    pub(super) timeout: Duration,
    pub(super) session: SessionKey,
    /// What follows the password.
    pub(super) rest: Vec<u8>,
}

/// A message of the server.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) xid: i32,
    pub(super) zxid: i64,
    pub(super) error: i32,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    xid: i32,
    /// The xids that are still to be answered.
    pub(super) asked: VecDeque<(i32, crate::frames::Opcode)>,
}

impl Connection {
    pub(super) fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection { stream: BufReader::new(stream), xid: 0, asked: VecDeque::new() })
    }

    /// Nothing if the server closes the connection instead of an answer.
    pub(super) fn greet(&mut self, hello: &Hello) -> Result<Option<Welcome>> {
        let session = hello.session.clone();
        let session = session.unwrap_or(SessionKey { id: 0, password: vec![0; 16] });
        let (last_zxid, timeout) = (hello.last_zxid, hello.timeout);
        let mut message = ConnectRequest { last_zxid, timeout, session }.encode();
        if hello.read_only == ReadOnlyByte::LeftOut {
            message.pop();
        }
        self.send_raw(&frame(&message))?;
        let Some(answer) = self.frame()? else { return Ok(None) };
        let ConnectResponse { timeout, session } = ConnectResponse::decode(&answer)?;
        let rest = answer.get(20 + session.password.len()..).unwrap_or_default().to_vec();
        Ok(Some(Welcome { timeout, session, rest }))
    }

    /// Sends bytes as they are. What a server no longer takes is no error: it has closed the
    /// connection, and reading tells so.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        match self.stream.get_mut().write_all(bytes) {
            Err(error) if is_end(&error) => Ok(()),
            outcome => outcome.context("send a request"),
        }
    }

    /// Sends requests in one piece, without waiting for answers.
    pub(super) fn send(&mut self, messages: &[super::Message]) -> Result<()> {
        let mut bytes = Vec::new();
        for message in messages {
            let xid = message.xid.unwrap_or_else(|| {
                self.xid += 1;
                self.xid
            });
            self.asked.push_back((xid, message.opcode));
            bytes.extend(frame(&message.encode(xid)));
        }
        self.send_raw(&bytes)
    }

    /// The next message, or nothing at the end of the connection.
    pub(super) fn receive(&mut self) -> Result<Option<Said>> {
        let Some(message) = self.frame()? else { return Ok(None) };
        let mut fields = Fields::new(&message);
        let (xid, zxid, error) = (fields.int()?, fields.long()?, fields.int()?);
        Ok(Some(Said { xid, zxid, error, body: fields.rest().to_vec() }))
    }

    fn frame(&mut self) -> Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        match self.stream.fill_buf() {
            Ok([]) => return Ok(None),
            Err(error) if is_end(&error) => return Ok(None),
            outcome => outcome.context("wait for the server")?,
        };
        self.stream.read_exact(&mut length)?;
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut message)?;
        Ok(Some(message))
    }
}

/// Whether the other side has closed the connection, politely or not.
fn is_end(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}
