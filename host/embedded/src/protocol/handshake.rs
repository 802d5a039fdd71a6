//! A connection's first frame and its answer.

use bytes::Bytes;

use crate::jute::{Malformed, Reader, Writer};

/// The length of a session's password.
pub const PASSWORD_LENGTH: usize = 16;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The newest zxid the client has seen: a server that is behind must refuse it.
    pub last_zxid_seen: i64,
    /// The session timeout it asks for, in milliseconds.
    pub timeout_ms: i32,
    /// The session it wants back, or zero for a new one.
    pub session_id: i64,
    /// That session's password.
    pub password: Bytes,
    /// Absent in clients from before read-only mode; the answer then lacks the field, too.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Reads the body of a first frame.
    ///
    /// # Errors
    /// If it is no such request.
    pub fn decode(frame: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame);
        let _protocol_version = reader.int()?;
        Ok(ConnectRequest {
            last_zxid_seen: reader.long()?,
            timeout_ms: reader.int()?,
            session_id: reader.long()?,
            password: reader.buffer()?.unwrap_or_default(),
            read_only: if reader.is_empty() { None } else { Some(reader.bool()?) },
        })
    }
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The timeout granted; zero if the session asked for is gone.
    pub timeout_ms: i32,
    /// The session; zero if the session asked for is gone.
    pub session_id: i64,
    /// The session's password.
    pub password: [u8; PASSWORD_LENGTH],
}

impl ConnectResponse {
    /// The answer for a session that cannot be had back.
    pub fn refused() -> Self {
        ConnectResponse { timeout_ms: 0, session_id: 0, password: [0; PASSWORD_LENGTH] }
    }

    /// The whole frame. The last byte is there only for clients that sent one.
    pub fn encode(&self, client: &ConnectRequest) -> Bytes {
        let mut writer = Writer::frame();
        writer.int(0);
        writer.int(self.timeout_ms);
        writer.long(self.session_id);
        writer.slice(Some(&self.password));
        if client.read_only.is_some() {
            writer.bool(false);
        }
        writer.finish_frame()
    }
}
