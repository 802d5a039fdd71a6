//! Encoding.

use bytes::{BufMut, Bytes, BytesMut};

/// Appends fields to a buffer.
#[derive(Debug, Default)]
pub struct Writer {
    buffer: BytesMut,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Writer::default()
    }

    /// A frame: room for its length is left in front, which [`Writer::finish_frame`] fills in.
    pub fn frame() -> Self {
        let mut writer = Writer { buffer: BytesMut::with_capacity(128) };
        writer.int(0);
        writer
    }

    /// The bytes of a frame begun by [`Writer::frame`].
    pub fn finish_frame(mut self) -> Bytes {
        let length = length(self.buffer.len().saturating_sub(4));
        if let Some(head) = self.buffer.first_chunk_mut::<4>() {
            *head = length.to_be_bytes();
        }
        self.buffer.freeze()
    }

    /// The bytes written.
    pub fn finish(self) -> Bytes {
        self.buffer.freeze()
    }

    /// One byte.
    pub fn bool(&mut self, value: bool) {
        self.buffer.put_u8(u8::from(value));
    }

    /// A 32-bit number.
    pub fn int(&mut self, value: i32) {
        self.buffer.put_i32(value);
    }

    /// A 64-bit number.
    pub fn long(&mut self, value: i64) {
        self.buffer.put_i64(value);
    }

    /// Counted bytes; `None` is null.
    pub fn slice(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.int(-1),
            Some(bytes) => {
                self.int(length(bytes.len()));
                self.buffer.put_slice(bytes);
            }
        }
    }

    /// A string.
    pub fn string(&mut self, value: &str) {
        self.slice(Some(value.as_bytes()));
    }

    /// A counted list.
    pub fn list<T>(
        &mut self,
        list: impl ExactSizeIterator<Item = T>,
        mut element: impl FnMut(&mut Self, T),
    ) {
        self.int(length(list.len()));
        for item in list {
            element(self, item);
        }
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }
}

/// Nothing here reaches 2 GiB: data comes in frames of at most `jute.maxbuffer`, and a directory
/// of that many names does not fit any machine this serves on.
fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
