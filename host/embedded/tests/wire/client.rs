//! A client that speaks the protocol by hand and sees every frame.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wok_embedded::jute::{Reader, Writer};
use wok_embedded::protocol::{Acl, OpCode};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) session_id: i64,
    pub(crate) password: Vec<u8>,
    pub(crate) timeout_ms: i32,
    /// Events since last asked: kind and path.
    pub(crate) events: Vec<(i32, String)>,
    xid: i32,
}

/// A reply after its header's xid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Hello {
    pub(crate) timeout_ms: i32,
    pub(crate) session: Option<(i64, Vec<u8>)>,
    pub(crate) last_zxid: i64,
    pub(crate) has_read_only: bool,
}

impl Default for Hello {
    fn default() -> Self {
        Hello { timeout_ms: 10_000, session: None, last_zxid: 0, has_read_only: true }
    }
}

impl Client {
    pub(crate) fn connect(address: &str) -> Client {
        Client::greet(address, &Hello::default()).expect("a session")
    }

    /// `None` if the server closes the connection without an answer.
    pub(crate) fn greet(address: &str, hello: &Hello) -> Option<Client> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let events = Vec::new();
        let (session_id, timeout_ms) = (0, 0);
        let mut client =
            Client { stream, session_id, password: Vec::new(), timeout_ms, events, xid: 0 };
        let mut body = Writer::new();
        body.int(0);
        body.long(hello.last_zxid);
        body.int(hello.timeout_ms);
        let (id, password) = hello.session.clone().unwrap_or((0, vec![0; 16]));
        body.long(id);
        body.slice(Some(&password));
        if hello.has_read_only {
            body.bool(false);
        }
        client.send(&body.finish());
        let frame = client.frame()?;
        assert_eq!(frame.len(), if hello.has_read_only { 37 } else { 36 });
        let mut reader = Reader::new(&frame);
        reader.int().unwrap();
        client.timeout_ms = reader.int().unwrap();
        client.session_id = reader.long().unwrap();
        client.password = reader.buffer().unwrap().unwrap().to_vec();
        Some(client)
    }

    pub(crate) fn send(&mut self, body: &[u8]) {
        assert!(self.try_send(body), "the connection is there");
    }

    /// False if the connection is gone.
    pub(crate) fn try_send(&mut self, body: &[u8]) -> bool {
        let length = i32::try_from(body.len()).unwrap().to_be_bytes();
        self.stream.write_all(&[&length, body].concat()).is_ok()
    }

    /// The next frame, or `None` at the end.
    pub(crate) fn frame(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame).ok()?;
        Some(frame)
    }

    /// Sends a request and does not wait.
    pub(crate) fn ask(&mut self, op: OpCode, write: impl FnOnce(&mut Writer)) -> i32 {
        self.xid += 1;
        let mut body = Writer::new();
        body.int(self.xid);
        body.int(op.code());
        write(&mut body);
        self.send(&body.finish());
        self.xid
    }

    /// The next answer, or `None` at the end. Events before it are kept.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        loop {
            let frame = self.frame()?;
            let mut reader = Reader::new(&frame);
            let (xid, zxid, error) =
                (reader.int().unwrap(), reader.long().unwrap(), reader.int().unwrap());
            if xid != -1 {
                return Some(Answer { xid, zxid, error, body: reader.rest().to_vec() });
            }
            let (kind, _state) = (reader.int().unwrap(), reader.int().unwrap());
            self.events.push((kind, reader.string().unwrap()));
        }
    }

    pub(crate) fn call(&mut self, op: OpCode, write: impl FnOnce(&mut Writer)) -> Answer {
        let xid = self.ask(op, write);
        let answer = self.answer().expect("an answer");
        assert_eq!(answer.xid, xid);
        answer
    }

    pub(crate) fn create(&mut self, path: &str, flags: i32) -> Answer {
        self.call(OpCode::Create, |w| create(w, path, flags))
    }

    /// The path of a node that is created.
    pub(crate) fn created(&mut self, path: &str, flags: i32) -> String {
        let answer = self.create(path, flags);
        assert_eq!(answer.error, 0, "create {path}");
        Reader::new(&answer.body).string().unwrap()
    }

    pub(crate) fn delete(&mut self, path: &str) -> i32 {
        self.call(OpCode::Delete, |w| versioned(w, path, -1)).error
    }

    pub(crate) fn set(&mut self, path: &str, version: i32) -> Answer {
        self.call(OpCode::SetData, |w| set(w, path, version))
    }

    /// The error of exists, with a watch.
    pub(crate) fn exists(&mut self, path: &str, watch: bool) -> i32 {
        self.call(OpCode::Exists, |w| watched(w, path, watch)).error
    }

    pub(crate) fn get(&mut self, path: &str, watch: bool) -> i32 {
        self.call(OpCode::GetData, |w| watched(w, path, watch)).error
    }

    pub(crate) fn children(&mut self, path: &str, watch: bool) -> Vec<String> {
        let answer = self.call(OpCode::GetChildren, |w| watched(w, path, watch));
        assert_eq!(answer.error, 0, "children of {path}");
        Reader::new(&answer.body).list(Reader::string).unwrap()
    }

    pub(crate) fn add_watch(&mut self, path: &str, mode: i32) {
        let answer = self.call(OpCode::AddWatch, |w| versioned(w, path, mode));
        assert_eq!((answer.error, answer.body), (0, vec![0; 4]));
    }

    pub(crate) fn stat(&mut self, path: &str) -> Stat {
        let answer = self.call(OpCode::Exists, |w| watched(w, path, false));
        assert_eq!(answer.error, 0, "exists {path}");
        Stat::read(&mut Reader::new(&answer.body))
    }

    /// What has been told since last asked. The ping is answered behind all of it.
    pub(crate) fn told(&mut self) -> Vec<(i32, String)> {
        self.call(OpCode::Ping, |_| {});
        std::mem::take(&mut self.events)
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.frame().is_none()
    }
}

/// The fields of a stat that tests look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) version: i32,
    pub(crate) cversion: i32,
    pub(crate) owner: i64,
    pub(crate) children: i32,
    pub(crate) pzxid: i64,
}

impl Stat {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Stat {
        let (czxid, mzxid) = (reader.long().unwrap(), reader.long().unwrap());
        let (_ctime, _mtime) = (reader.long().unwrap(), reader.long().unwrap());
        let (version, cversion, _aversion) =
            (reader.int().unwrap(), reader.int().unwrap(), reader.int().unwrap());
        let owner = reader.long().unwrap();
        let (_length, children) = (reader.int().unwrap(), reader.int().unwrap());
        let pzxid = reader.long().unwrap();
        Stat { czxid, mzxid, version, cversion, owner, children, pzxid }
    }
}

pub(crate) fn create(writer: &mut Writer, path: &str, flags: i32) {
    writer.string(path);
    writer.slice(Some(b"x"));
    Acl::encode_list(&Acl::open(), writer);
    writer.int(flags);
}

pub(crate) fn versioned(writer: &mut Writer, path: &str, version: i32) {
    writer.string(path);
    writer.int(version);
}

pub(crate) fn set(writer: &mut Writer, path: &str, version: i32) {
    writer.string(path);
    writer.slice(Some(b"y"));
    writer.int(version);
}

pub(crate) fn watched(writer: &mut Writer, path: &str, watch: bool) {
    writer.string(path);
    writer.bool(watch);
}

/// One operation of a multi, with its header.
pub(crate) fn part(writer: &mut Writer, op: OpCode, write: impl FnOnce(&mut Writer)) {
    writer.int(op.code());
    writer.bool(false);
    writer.int(-1);
    write(writer);
}

pub(crate) fn end(writer: &mut Writer) {
    writer.int(-1);
    writer.bool(true);
    writer.int(-1);
}

/// Sends a four-letter word.
pub(crate) fn word(address: &str, word: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(word.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
