//! Bytes into frames.

use bytes::{Buf, Bytes, BytesMut};

/// A length that no frame may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLength(pub i32);

/// How long a frame is copied rather than cut out of the buffer. One that has to wait would keep all
/// of the buffer, and be counted for its own bytes only.
const COPIED: usize = 8 << 10;

/// Takes the next whole frame, without its length, off the front. `None`: it is not all there yet.
///
/// A frame is accepted only as its bytes come in: the length that a client claims allocates
/// nothing.
///
/// # Errors
/// If the length is negative or above `max`.
pub fn next_frame(buffer: &mut BytesMut, max: usize) -> Result<Option<Bytes>, BadLength> {
    let Some(head) = buffer.first_chunk::<4>() else { return Ok(None) };
    let claimed = i32::from_be_bytes(*head);
    let length = usize::try_from(claimed).ok().filter(|length| *length <= max);
    let length = length.ok_or(BadLength(claimed))?;
    if buffer.len() - 4 < length {
        return Ok(None);
    }
    buffer.advance(4);
    let frame = match buffer.get(..length) {
        Some(frame) if length <= COPIED => Bytes::copy_from_slice(frame),
        _ => return Ok(Some(buffer.split_to(length).freeze())),
    };
    buffer.advance(length);
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_come_off_one_by_one() {
        let mut buffer = BytesMut::from(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1][..]);
        assert_eq!(next_frame(&mut buffer, 10), Ok(Some(Bytes::from_static(&[7, 8]))));
        assert_eq!(next_frame(&mut buffer, 10), Ok(Some(Bytes::new())));
        assert_eq!(next_frame(&mut buffer, 10), Ok(None));
        assert_eq!(buffer.len(), 4);
    }

    #[test]
    fn a_small_frame_keeps_no_buffer() {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        buffer.extend_from_slice(&[0, 0, 0, 2, 7, 8]);
        let frame = next_frame(&mut buffer, 10).unwrap().unwrap();
        assert!(buffer.try_reclaim(64 << 10));
        assert_eq!(frame, Bytes::from_static(&[7, 8]));
    }

    #[test]
    fn a_length_is_refused_before_its_bytes_come_in() {
        assert_eq!(next_frame(&mut BytesMut::from(&[0, 0, 0, 11][..]), 10), Err(BadLength(11)));
        assert_eq!(next_frame(&mut BytesMut::from(&[0xff; 4][..]), 10), Err(BadLength(-1)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_framing_panic_or_grow(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut buffer = BytesMut::from(&bytes[..]);
            let capacity = buffer.capacity();
            while let Ok(Some(frame)) = next_frame(&mut buffer, 100) {
                prop_assert!(frame.len() <= 100);
            }
            prop_assert!(buffer.capacity() <= capacity);
        }
    }
}
