//! Somebody at the other end of a socket who says what a test has written down.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{Client, Socket};
use crate::tasks::Tasks;

/// It answers one connection after another.
pub(super) struct Peer {
    directory: TempDir,
    requests: Receiver<String>,
}

impl Peer {
    /// Says one of the scripts to each connection, as it stands, and closes it.
    pub(super) fn saying<const N: usize>(scripts: [&str; N]) -> Peer {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("s")).unwrap();
        let (heard, requests) = channel();
        let scripts = scripts.map(str::to_owned);
        thread::spawn(move || {
            for script in scripts {
                let (mut stream, _) = listener.accept().unwrap();
                // A test that asks for no requests has dropped its end.
                heard.send(request(&mut stream)).ok();
                // A client that has heard enough closes early.
                stream.write_all(script.as_bytes()).ok();
            }
        });
        Peer { directory, requests }
    }

    /// A client of it.
    pub(super) fn client(&self) -> Client {
        let socket = Socket::new(Some(self.directory.path().join("s")));
        Client::new(socket, Tasks::on(Handle::current()))
    }

    /// The next request that it has heard: first line and body.
    pub(super) fn heard(&self) -> String {
        self.requests.recv().unwrap()
    }
}

/// Lines as a daemon sends them that goes on sending: each in a chunk, and no end.
pub(super) fn stream(lines: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\
         \r\n{:x}\r\n{lines}\r\n",
        lines.len()
    )
}

/// The same, and its end.
pub(super) fn whole_stream(lines: &str) -> String {
    format!("{}0\r\n\r\n", stream(lines))
}

/// A whole answer.
pub(super) fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn request(stream: &mut UnixStream) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with("\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.push(char::from(byte[0]));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    format!("{} {}", text.lines().next().unwrap(), String::from_utf8(body).unwrap())
}
