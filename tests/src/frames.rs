//! ZooKeeper's wire format, as far as a proxy and a judge need it: a big-endian length and that
//! many bytes, the first frame each way being the handshake.
//!
//! Written by hand rather than taken from a client crate, so that what is tested does not judge
//! itself.

use std::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

mod messages;
mod opcode;

pub use messages::{ConnectRequest, ConnectResponse, ReplyHeader, RequestHead, SessionKey};
pub use opcode::Opcode;

/// No frame of ZooKeeper's is longer by default; a longer one is not ZooKeeper's protocol.
pub const MAX_FRAME: usize = 16 << 20;

/// Bytes that are not the message they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a well-formed ZooKeeper message")
    }
}

impl std::error::Error for Malformed {}

/// Reads the fields of a message in their order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a message without its length.
    pub fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (field, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(field)
    }

    /// A 32-bit integer.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        let bytes = self.take(4)?.try_into().map_err(|_| Malformed)?;
        Ok(i32::from_be_bytes(bytes))
    }

    /// A 64-bit integer.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn long(&mut self) -> Result<i64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
        Ok(i64::from_be_bytes(bytes))
    }

    /// A boolean.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.take(1)? != [0])
    }

    /// Bytes after their length; those of a null are none.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn buffer(&mut self) -> Result<&'a [u8], Malformed> {
        match self.int()? {
            -1 => Ok(&[]),
            length => self.take(usize::try_from(length).map_err(|_| Malformed)?),
        }
    }

    /// Bytes after their length, or a null.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn optional_buffer(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match Fields::new(self.rest).int()? {
            -1 => self.int().map(|_| None),
            _ => self.buffer().map(Some),
        }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A string.
    ///
    /// # Errors
    /// If the message is too short or the bytes are no UTF-8.
    pub fn string(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.buffer()?.to_vec()).map_err(|_| Malformed)
    }
}

/// A message with its length in front.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

/// Reads one message; none at the end of the stream.
///
/// # Errors
/// If the stream fails, ends within a frame, or the frame is longer than [`MAX_FRAME`].
///
/// # Cancellation
/// Loses a partly read frame: the stream is of no use afterwards.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, Malformed));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).await?;
    Ok(Some(message))
}
