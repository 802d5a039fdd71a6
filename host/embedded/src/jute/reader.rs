//! Decoding, bounded by the input: whatever a length claims, nothing beyond the input is read or
//! allocated.

use bytes::Bytes;
use thiserror::Error;

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The input ends within a field.
    #[error("the record ends within a field")]
    Truncated,
    /// A length or count is negative, or larger than what is left.
    #[error("a length of {0} does not fit the record")]
    Length(i32),
    /// A field that must be there is null.
    #[error("a field is null")]
    Null,
    /// A number names no kind that may stand here.
    #[error("{0} is no kind of record that may stand here")]
    Kind(i32),
}

/// Takes fields off the front of a byte slice.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of the whole slice.
    pub fn new(input: &'a [u8]) -> Self {
        Reader { rest: input }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte, true unless zero.
    ///
    /// # Errors
    /// If the input ends.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        let [byte] = self.array::<1>()?;
        Ok(byte != 0)
    }

    /// A 32-bit number.
    ///
    /// # Errors
    /// If the input ends.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A 64-bit number.
    ///
    /// # Errors
    /// If the input ends.
    pub fn long(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Counted bytes, or null.
    ///
    /// # Errors
    /// If the count does not fit the input.
    pub fn slice(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let count = usize::try_from(length).map_err(|_| Malformed::Length(length))?;
        self.take(count).map(Some).map_err(|_| Malformed::Length(length))
    }

    /// Counted bytes, copied, or null. A copy, so that a small value does not keep a large frame.
    ///
    /// # Errors
    /// If the count does not fit the input.
    pub fn buffer(&mut self) -> Result<Option<Bytes>, Malformed> {
        Ok(self.slice()?.map(Bytes::copy_from_slice))
    }

    /// A string. Bytes that are no UTF-8 are replaced, as Java does.
    ///
    /// # Errors
    /// If it is null, or its length does not fit the input.
    pub fn string(&mut self) -> Result<String, Malformed> {
        self.optional_string()?.ok_or(Malformed::Null)
    }

    /// A string or null.
    ///
    /// # Errors
    /// If its length does not fit the input.
    pub fn optional_string(&mut self) -> Result<Option<String>, Malformed> {
        Ok(self.slice()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    /// A counted list, or null. Capacity grows with what is read, never with what is claimed.
    ///
    /// # Errors
    /// If the count is negative, or an element is malformed.
    pub fn optional_list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let count = self.int()?;
        if count == -1 {
            return Ok(None);
        }
        // Every element has at least one byte, so a larger count is a lie.
        let fits = usize::try_from(count).is_ok_and(|count| count <= self.rest.len());
        if !fits {
            return Err(Malformed::Length(count));
        }
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(Some(list))
    }

    /// A counted list.
    ///
    /// # Errors
    /// If it is null, the count is negative, or an element is malformed.
    pub fn list<T>(
        &mut self,
        element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        self.optional_list(element)?.ok_or(Malformed::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_input_is_refused() {
        assert_eq!(
            Reader::new(&[0x7f, 0xff, 0xff, 0xff, 1]).slice(),
            Err(Malformed::Length(i32::MAX))
        );
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xfe]).slice(), Err(Malformed::Length(-2)));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff]).slice(), Ok(None));
    }

    #[test]
    fn a_count_beyond_the_input_is_refused_before_anything_is_allocated() {
        let mut reader = Reader::new(&[0x7f, 0xff, 0xff, 0xff, 1]);
        assert_eq!(reader.list(Reader::bool), Err(Malformed::Length(i32::MAX)));
    }
}
