//! A script's run on one server.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::connection::{Connection, Hello, Line, Lost, Said, Welcome};
use super::message::{self, Message};
use super::socket::Socket;
use super::spelling::{Spelling, hex};
use crate::frames::{Opcode, SessionKey};
use crate::patience::PATIENCE;

/// The xid of an event.
const EVENT: i32 = -1;

/// More requests than any connection of a run makes.
const REQUESTS: i32 = 100_000;

/// A session of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who(usize);

/// An answer, for scripts that go by it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The header's zxid.
    pub zxid: i64,
    /// The header's error.
    pub error: i32,
    /// What follows the header.
    pub body: Vec<u8>,
}

#[derive(Debug)]
struct Client {
    name: String,
    /// Gone when the script or the server has closed it.
    connection: Option<Connection>,
    key: SessionKey,
    is_open: bool,
    last_zxid: i64,
}

/// Where a script's clients connect to when they do not say to which server.
pub(super) trait Ground: Debug {
    /// A way to a server.
    fn dial(&self) -> Result<Box<dyn Line>>;

    /// A server's `host:port`.
    fn address(&self) -> Result<&str>;

    /// What the servers' clocks say, in milliseconds since 1970.
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// One server, by its `host:port`.
impl Ground for String {
    fn dial(&self) -> Result<Box<dyn Line>> {
        Ok(Box::new(Socket::open(self)?))
    }

    fn address(&self) -> Result<&str> {
        Ok(self)
    }
}

/// A script's sessions on one server, and the transcript of all that is said.
#[derive(Debug)]
pub struct Run {
    ground: Rc<dyn Ground>,
    clients: Vec<Client>,
    spelling: Spelling,
    pub(super) lines: Vec<String>,
    /// Whether the events before the next answer come in no particular order.
    unordered: Vec<Who>,
}

impl Run {
    pub(super) fn start(ground: Rc<dyn Ground>) -> Result<Run> {
        let mut run = Run {
            spelling: Spelling::new(Rc::clone(&ground), 0),
            ground,
            clients: Vec::new(),
            lines: Vec::new(),
            unordered: Vec::new(),
        };
        // A session of its own says where the server's zxids are.
        let first = run.connect("first")?;
        let base = run.call(first, message::close_session())?.context("no answer")?.zxid;
        run.end(first)?;
        run.spelling = Spelling::new(Rc::clone(&run.ground), base);
        run.clients.clear();
        run.lines.clear();
        Ok(run)
    }

    /// A new session.
    ///
    /// # Errors
    /// If the server does not grant it.
    pub fn connect(&mut self, name: &str) -> Result<Who> {
        let who = self.greet(name, &Hello::default())?;
        who.with_context(|| format!("{name} was not welcome"))
    }

    /// A connection that begins with that; none if the server closes it without an answer.
    ///
    /// # Errors
    /// If the server cannot be reached, or answers something else.
    pub fn greet(&mut self, name: &str, hello: &Hello) -> Result<Option<Who>> {
        let line = self.ground.dial()?;
        self.greet_on(line, name, hello)
    }

    pub(super) fn greet_on(
        &mut self,
        line: Box<dyn Line>,
        name: &str,
        hello: &Hello,
    ) -> Result<Option<Who>> {
        let mut connection = self.connection_over(line);
        let Some(welcome) = connection.greet(hello)? else {
            self.note(format_args!("{name} is sent away"));
            return Ok(None);
        };
        let Welcome { timeout, session, rest } = welcome;
        if session.id != 0 && hello.session.as_ref().is_none_or(|old| old.id != session.id) {
            self.spelling.name(session.id, name);
        }
        let is_open = session.id != 0;
        let password = match (&hello.session, session.password.iter().all(|byte| *byte == 0)) {
            (_, true) => "none",
            (Some(old), false) if old.password == session.password => "the old",
            (_, false) => "new",
        };
        let called = self.spelling.session(session.id);
        self.lines.push(format!(
            "{name} has session {called} for {timeout:?}, password {password} of {} bytes, {}",
            session.password.len(),
            hex(&rest)
        ));
        let client = Client {
            name: name.to_owned(),
            connection: Some(connection),
            key: session,
            is_open,
            last_zxid: 0,
        };
        self.clients.push(client);
        Ok(Some(Who(self.clients.len() - 1)))
    }

    /// What proves a session.
    ///
    /// # Errors
    /// If there is no such session.
    pub fn key(&self, who: Who) -> Result<SessionKey> {
        Ok(self.clients.get(who.0).context("no such session")?.key.clone())
    }

    /// The newest zxid that was told to a session.
    ///
    /// # Errors
    /// If there is no such session.
    pub fn last_zxid(&self, who: Who) -> Result<i64> {
        Ok(self.clients.get(who.0).context("no such session")?.last_zxid)
    }

    /// Asks, and waits for the answer; none if the connection ends instead.
    ///
    /// # Errors
    /// If the server falls silent.
    pub fn call(&mut self, who: Who, message: impl Into<Message>) -> Result<Option<Reply>> {
        self.send(who, &[message.into()])?;
        self.reply(who)
    }

    /// Sends requests in one piece, and waits for nothing.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn send(&mut self, who: Who, messages: &[Message]) -> Result<()> {
        for message in messages {
            let line = format!("{} {}", self.client(who)?.name, message.text);
            self.lines.push(line);
        }
        self.connection(who)?.send(messages)
    }

    pub(super) fn lose_next(&mut self, who: Who, lost: Lost) -> Result<()> {
        let line = format!("{} will lose its {lost:?}", self.client(who)?.name);
        self.lines.push(line);
        self.connection(who)?.lose_next(lost)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn send_raw(&mut self, who: Who, bytes: &[u8]) -> Result<()> {
        self.connection(who)?.send_raw(bytes)
    }

    /// The next answer and the events before it; none if the connection ends instead.
    ///
    /// # Errors
    /// If the server falls silent.
    pub fn reply(&mut self, who: Who) -> Result<Option<Reply>> {
        let mut events = Vec::new();
        let said = loop {
            match self.connection(who)?.receive()? {
                Some(said) if said.xid == EVENT => events.push(self.spell_event(who, &said)?),
                said => break said,
            }
        };
        if self.unordered.contains(&who) {
            self.unordered.retain(|other| *other != who);
            events.sort();
        }
        self.lines.append(&mut events);
        let name = self.client(who)?.name.clone();
        let Some(Said { xid, zxid, error, body }) = said else {
            self.close(who)?;
            self.note(format_args!("{name} <- end"));
            return Ok(None);
        };
        let (asked, opcode) =
            self.connection(who)?.asked.pop_front().unwrap_or((xid, Opcode::Other(0)));
        let order = if asked == xid { "" } else { " OUT OF TURN" };
        let told = match error {
            0 => self.spelling.body(opcode, &body),
            error => format!("error {error} {}", hex(&body)),
        };
        self.lines.push(format!("{name} <- {} {told}{order}", self.spelling.zxid(zxid)));
        let client = self.client(who)?;
        client.last_zxid = client.last_zxid.max(zxid);
        if opcode == Opcode::CloseSession {
            client.is_open = false;
        }
        Ok(Some(Reply { zxid, error, body }))
    }

    /// Waits for the next message, which must be an event.
    ///
    /// # Errors
    /// If it is none.
    pub fn event(&mut self, who: Who) -> Result<()> {
        match self.connection(who)?.receive()? {
            Some(said) if said.xid == EVENT => {
                let line = self.spell_event(who, &said)?;
                self.lines.push(line);
                Ok(())
            }
            other => bail!("no event but {other:?}"),
        }
    }

    /// Waits until the server has closed the connection; what it says before is told, too.
    ///
    /// # Errors
    /// If it falls silent instead.
    pub fn end(&mut self, who: Who) -> Result<()> {
        while self.client(who)?.connection.is_some() {
            self.reply(who)?;
        }
        Ok(())
    }

    /// The events before the next answer come in no particular order: those of a session that
    /// has ended, whose nodes are a set.
    pub fn unordered(&mut self) {
        self.unordered = (0..self.clients.len()).map(Who).collect();
    }

    /// Drops the connection; the session goes on.
    ///
    /// # Errors
    /// If there is no such session.
    pub fn close(&mut self, who: Who) -> Result<()> {
        self.client(who)?.connection = None;
        Ok(())
    }

    /// Writes into the transcript.
    pub fn note(&mut self, text: impl std::fmt::Display) {
        self.lines.push(text.to_string());
    }

    /// Does something that is not told: what an answer holds depends on who was faster.
    ///
    /// # Errors
    /// Those of what is done.
    pub fn aside<T>(&mut self, act: impl FnOnce(&mut Run) -> Result<T>) -> Result<T> {
        let told = self.lines.len();
        let outcome = act(self)?;
        self.lines.truncate(told);
        Ok(outcome)
    }

    /// Asks by a four-letter word. The answer is not in the transcript.
    ///
    /// # Errors
    /// If there is none.
    pub fn word(&self, word: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.ground.address()?)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Opens a connection that says those bytes first, and waits until the server closes it.
    ///
    /// # Errors
    /// If it does not.
    pub fn closed_after(&mut self, bytes: &[u8]) -> Result<()> {
        let mut connection = self.connection_over(self.ground.dial()?);
        connection.send_raw(bytes)?;
        let said = connection.receive()?;
        self.note(format_args!("{} -> {said:?}", hex(bytes)));
        Ok(())
    }

    /// Ends the sessions that are still there, so that the next run finds a quiet server.
    ///
    /// Answers the transcript, and how the script went whose outcome this is.
    pub(super) fn finish(mut self, script: Result<()>) -> (Vec<String>, Result<()>) {
        if let Err(error) = &script {
            self.note(format_args!("the script fails: {error:#}"));
        }
        let closed = self.aside(Run::close_sessions).context("close the script's sessions");
        (self.lines, script.and(closed))
    }

    fn close_sessions(&mut self) -> Result<()> {
        for index in 0..self.clients.len() {
            let who = Who(index);
            let client = self.client(who)?;
            if !client.is_open {
                continue;
            }
            if client.connection.is_none() {
                let session = Some(client.key.clone());
                let mut connection = self.connection_over(self.ground.dial()?);
                let hello = Hello { session, ..Hello::default() };
                if connection.greet(&hello)?.is_none_or(|welcome| welcome.session.id == 0) {
                    continue;
                }
                self.client(who)?.connection = Some(connection);
            }
            self.call(who, message::close_session())?;
        }
        Ok(())
    }

    /// A connection with numbers of its own for what it asks.
    fn connection_over(&self, line: Box<dyn Line>) -> Connection {
        let before = i32::try_from(self.clients.len()).unwrap_or(0);
        Connection::over(line, before.saturating_mul(REQUESTS))
    }

    fn spell_event(&mut self, who: Who, said: &Said) -> Result<String> {
        let text = self.spelling.event(&said.body);
        let zxid = self.spelling.zxid(said.zxid);
        Ok(format!("{} <- event {text} {zxid} {}", self.client(who)?.name, said.error))
    }

    fn client(&mut self, who: Who) -> Result<&mut Client> {
        self.clients.get_mut(who.0).context("no such session")
    }

    fn connection(&mut self, who: Who) -> Result<&mut Connection> {
        let client = self.client(who)?;
        let name = &client.name;
        client.connection.as_mut().with_context(|| format!("{name} has no connection"))
    }
}
