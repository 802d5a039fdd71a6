//! An answer that is a stream of lines.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::error::ClientError;
use super::http::{Answer, MOST_BYTES};
use super::socket::Socket;

/// The lines of an answer, as they come.
#[derive(Debug)]
pub struct Lines {
    answer: Answer,
    socket: Socket,
    /// What has come of the next line, and perhaps more.
    rest: BytesMut,
    /// How much of it has no line break.
    searched: usize,
}

impl Lines {
    pub(super) fn new(answer: Answer, socket: Socket) -> Self {
        Lines { answer, socket, rest: BytesMut::new(), searched: 0 }
    }

    /// The next line, without its end. None when the daemon has ended the answer in order.
    ///
    /// # Errors
    /// `Gone` if the connection ends otherwise, also in the middle of a line; `NotOurs` for a line
    /// that does not end.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let unsearched = self.rest.iter().skip(self.searched);
            if let Some(more) = unsearched.copied().position(|byte| byte == b'\n') {
                let mut line = self.rest.split_to(self.searched + more + 1);
                self.searched = 0;
                line.truncate(line.len() - 1);
                if !line.iter().all(u8::is_ascii_whitespace) {
                    return Ok(Some(line.freeze()));
                }
                continue;
            }
            self.searched = self.rest.len();
            if self.searched > MOST_BYTES {
                let what = format!("it sends a line of more than {} MiB", MOST_BYTES >> 20);
                return Err(ClientError::NotOurs { socket: self.socket.clone(), what });
            }
            match self.answer.body.frame().await {
                Some(Ok(frame)) => {
                    self.rest.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                }
                None if self.rest.is_empty() => return Ok(None),
                None | Some(Err(_)) => {
                    return Err(ClientError::Gone { socket: self.socket.clone() });
                }
            }
        }
    }

    /// What a line says that is not what it should be.
    pub(super) fn not_ours(&self, what: impl std::fmt::Display) -> ClientError {
        ClientError::NotOurs { socket: self.socket.clone(), what: what.to_string() }
    }
}
