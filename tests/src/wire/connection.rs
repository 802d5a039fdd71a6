//! A client's connection. It blocks, and its patience only stops a hang.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;

use crate::frames::{ConnectRequest, ConnectResponse, Fields, SessionKey, frame};

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

/// A way to a server, for bytes to it and frames from it. Dropped, it is closed.
pub(super) trait Line: Debug {
    /// Sends bytes as they are. What a server no longer takes is no error: it has closed the
    /// connection, and reading tells so.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;

    /// The next message without its length, or nothing at the end of the connection.
    fn frame(&mut self) -> Result<Option<Vec<u8>>>;

    /// Has the next request be lost, or its reply, and the connection with it.
    fn lose_next(&mut self, lost: Lost) -> Result<()>;
}

/// What is lost when a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The request.
    Request,
    /// The reply to a request that is carried out.
    Reply,
}

#[derive(Debug)]
pub(super) struct Connection {
    line: Box<dyn Line>,
    xid: i32,
    /// The xids that are still to be answered.
    pub(super) asked: VecDeque<(i32, crate::frames::Opcode)>,
}

impl Connection {
    /// A connection whose requests are numbered from there on. Servers tell the requests of a
    /// session apart by their numbers, also those of two connections.
    pub(super) fn over(line: Box<dyn Line>, xid: i32) -> Self {
        Connection { line, xid, asked: VecDeque::new() }
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
        let Some(answer) = self.line.frame()? else { return Ok(None) };
        let ConnectResponse { timeout, session } = ConnectResponse::decode(&answer)?;
        let rest = answer.get(20 + session.password.len()..).unwrap_or_default().to_vec();
        Ok(Some(Welcome { timeout, session, rest }))
    }

    /// Sends bytes as they are.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.line.send(bytes)
    }

    /// Has the next request be lost, or its reply.
    pub(super) fn lose_next(&mut self, lost: Lost) -> Result<()> {
        self.line.lose_next(lost)
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
        let Some(message) = self.line.frame()? else { return Ok(None) };
        let mut fields = Fields::new(&message);
        let (xid, zxid, error) = (fields.int()?, fields.long()?, fields.int()?);
        Ok(Some(Said { xid, zxid, error, body: fields.rest().to_vec() }))
    }
}
