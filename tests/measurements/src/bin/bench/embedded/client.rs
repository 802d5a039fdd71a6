//! A client that keeps many requests in flight and costs next to nothing itself.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail, ensure};

use super::PATIENCE;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const GET_DATA: i32 = 4;
const CLOSE: i32 = -11;

/// A session on one connection.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    next_xid: i32,
    answered: i32,
}

impl Client {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let mut writer = TcpStream::connect(address).with_context(|| address.to_owned())?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let mut hello = Frame::new();
        hello.int(0).long(0).int(30_000).long(0).buffer(&[0; 16]).byte(0);
        writer.write_all(&hello.finish())?;
        let mut reader = BufReader::with_capacity(1 << 16, writer.try_clone()?);
        let welcome = read_frame(&mut reader)?;
        ensure!(welcome.len() >= 36, "a welcome of {} bytes", welcome.len());
        Ok(Client { reader, writer, next_xid: 1, answered: 0 })
    }

    pub(super) fn create(&mut self, path: &str, data: &[u8]) -> Result<()> {
        let frame = self.creation(path, data);
        self.writer.write_all(&frame)?;
        self.reply()
    }

    /// Creates and deletes one znode below `path`, over and over: `count` requests.
    pub(super) fn create_and_delete(
        &mut self,
        path: &str,
        count: usize,
        in_flight: usize,
    ) -> Result<()> {
        let path = format!("{path}/x");
        self.pipeline(count, in_flight, |client, number| match number % 2 {
            0 => client.creation(&path, &[b'x'; 100]),
            _ => client.request(DELETE, |frame| {
                frame.string(&path).int(-1);
            }),
        })
    }

    pub(super) fn get(&mut self, path: &str, count: usize, in_flight: usize) -> Result<()> {
        self.pipeline(count, in_flight, |client, _| {
            client.request(GET_DATA, |frame| {
                frame.string(path).byte(0);
            })
        })
    }

    /// Creates that many znodes below `path`.
    pub(super) fn fill(
        &mut self,
        path: &str,
        count: usize,
        data: &[u8],
        in_flight: usize,
    ) -> Result<()> {
        self.create(path, b"")?;
        self.pipeline(count, in_flight, |client, number| {
            client.creation(&format!("{path}/{number}"), data)
        })
    }

    pub(super) fn close(mut self) -> Result<()> {
        let frame = self.request(CLOSE, |_| {});
        self.writer.write_all(&frame)?;
        self.reply()
    }

    fn creation(&mut self, path: &str, data: &[u8]) -> Vec<u8> {
        self.request(CREATE, |frame| {
            frame.string(path).buffer(data);
            frame.int(1).int(31).string("world").string("anyone").int(0);
        })
    }

    fn request(&mut self, opcode: i32, body: impl FnOnce(&mut Frame)) -> Vec<u8> {
        let mut frame = Frame::new();
        frame.int(self.next_xid).int(opcode);
        self.next_xid += 1;
        body(&mut frame);
        frame.finish()
    }

    fn pipeline(
        &mut self,
        count: usize,
        in_flight: usize,
        mut make: impl FnMut(&mut Self, usize) -> Vec<u8>,
    ) -> Result<()> {
        let (mut sent, mut done) = (0, 0);
        while done < count {
            let mut batch = Vec::new();
            // In halves, so that neither side ever waits for a single frame.
            while sent < count && sent - done < in_flight {
                batch.extend(make(self, sent));
                sent += 1;
            }
            self.writer.write_all(&batch)?;
            let left = (sent - done).min((in_flight / 2).max(1));
            for _ in 0..left {
                self.reply()?;
            }
            done += left;
        }
        Ok(())
    }

    fn reply(&mut self) -> Result<()> {
        let frame = read_frame(&mut self.reader)?;
        let int = |at: usize| -> Result<i32> {
            let bytes = frame.get(at..at + 4).context("a short reply")?;
            Ok(i32::from_be_bytes(bytes.try_into()?))
        };
        self.answered += 1;
        ensure!(int(0)? == self.answered, "a reply out of order");
        match int(12)? {
            0 => Ok(()),
            error => bail!("refused with {error}"),
        }
    }
}

fn read_frame(reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length).min(1 << 20) as usize];
    reader.read_exact(&mut frame)?;
    Ok(frame)
}

/// A frame as it is written; its length stands first.
struct Frame(Vec<u8>);

impl Frame {
    fn new() -> Self {
        Frame(vec![0; 4])
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn byte(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    fn int(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    fn long(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX)).raw(bytes)
    }

    fn string(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX).to_be_bytes();
        self.0.splice(..4, length);
        self.0
    }
}
