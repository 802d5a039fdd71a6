//! A way to a server by TCP.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::connection::{Line, Lost};
use crate::patience::PATIENCE;
use crate::proxy::{Action, Cut, Match, Proxy};

#[derive(Debug)]
pub(super) struct Socket {
    stream: BufReader<TcpStream>,
    /// What is between the two ends, for faults.
    proxy: Option<Arc<Proxy>>,
}

impl Socket {
    pub(super) fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Socket { stream: BufReader::new(stream), proxy: None })
    }

    /// A connection whose requests and replies can be lost.
    pub(super) fn through(proxy: &Arc<Proxy>) -> Result<Self> {
        Ok(Socket { proxy: Some(Arc::clone(proxy)), ..Socket::open(proxy.address())? })
    }
}

impl Line for Socket {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self.stream.get_mut().write_all(bytes) {
            Err(error) if is_end(&error) => Ok(()),
            outcome => outcome.context("send a request"),
        }
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

    fn lose_next(&mut self, lost: Lost) -> Result<()> {
        let proxy = self.proxy.as_ref().context("only a connection by a proxy loses anything")?;
        let action = match lost {
            Lost::Request => Action::CutBefore(Cut::Fin),
            Lost::Reply => Action::DropReplyAndCut(Cut::Fin),
        };
        proxy.inject(Match::any(), action);
        Ok(())
    }
}

/// Whether the other side has closed the connection, politely or not.
fn is_end(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}
