//! Bytes as decisions.

/// Takes decisions off the front of the bytes; when they end, so does the play.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Input { rest }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub(crate) fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(i64::from_be_bytes(*bytes))
    }

    /// So many bytes, or as many as there are.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }
}
