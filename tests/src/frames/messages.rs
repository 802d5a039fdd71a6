//! The messages that matter here.

use std::fmt;
use std::time::Duration;

use super::{Fields, Malformed, Opcode};

/// What proves a session to be one's own: a client that has the key can take the session over or
/// close it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// The session's id.
    pub id: i64,
    /// The password that the server gave out with it.
    pub password: Vec<u8>,
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {:#x}", self.id)
    }
}

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The newest transaction that the client has seen.
    pub last_zxid: i64,
    /// The session timeout it asks for.
    pub timeout: Duration,
    /// The session it wants to go on with; the id is 0 for a new one.
    pub session: SessionKey,
}

impl ConnectRequest {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(message);
        let _protocol = fields.int()?;
        let last_zxid = fields.long()?;
        let timeout = millis(fields.int()?);
        let session = SessionKey { id: fields.long()?, password: fields.buffer()?.to_vec() };
        Ok(ConnectRequest { last_zxid, timeout, session })
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = 0_i32.to_be_bytes().to_vec();
        message.extend(self.last_zxid.to_be_bytes());
        message.extend(in_millis(self.timeout).to_be_bytes());
        message.extend(self.session.id.to_be_bytes());
        message.extend(super::frame(&self.session.password));
        message.push(0);
        message
    }
}

/// The first message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The session timeout it grants; zero refuses the session.
    pub timeout: Duration,
    /// The session; the id is 0 if refused.
    pub session: SessionKey,
}

impl ConnectResponse {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(message);
        let _protocol = fields.int()?;
        let timeout = millis(fields.int()?);
        let session = SessionKey { id: fields.long()?, password: fields.buffer()?.to_vec() };
        Ok(ConnectResponse { timeout, session })
    }

    /// Whether the server refuses the session: it has expired, or the password is wrong.
    pub fn is_refusal(&self) -> bool {
        self.timeout.is_zero()
    }
}

/// The beginning of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The client's number for it, which the reply repeats.
    pub xid: i32,
    /// What it asks for.
    pub opcode: Opcode,
    /// The path it is about; of a `multi` the first one.
    pub path: Option<String>,
}

impl RequestHead {
    /// Reads it.
    ///
    /// # Errors
    /// If not even the header is there; a path that cannot be read is none.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(message);
        let xid = fields.int()?;
        let opcode = Opcode::from_number(fields.int()?);
        let path = path(opcode, fields);
        Ok(RequestHead { xid, opcode, path })
    }

    /// Writes a request that changes nothing and is answered whatever the tree is like: whether the
    /// root is there.
    pub fn harmless(xid: i32) -> Vec<u8> {
        let mut message = xid.to_be_bytes().to_vec();
        message.extend(Opcode::Exists.number().to_be_bytes());
        message.extend(super::frame(b"/"));
        message.push(0);
        message
    }
}

fn path(opcode: Opcode, mut fields: Fields<'_>) -> Option<String> {
    if matches!(opcode, Opcode::Multi | Opcode::MultiRead) {
        let first = Opcode::from_number(fields.int().ok()?);
        let (_done, _error) = (fields.bool().ok()?, fields.int().ok()?);
        return first.starts_with_path().then(|| fields.string().ok())?;
    }
    opcode.starts_with_path().then(|| fields.string().ok())?
}

/// The beginning of a reply or of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// Of the request, or -1 for a notification.
    pub xid: i32,
    /// The newest transaction that the server has applied.
    pub zxid: i64,
    /// 0, or an error's number.
    pub error: i32,
}

impl ReplyHeader {
    /// The xid of a watch's notification.
    pub const NOTIFICATION: i32 = -1;

    /// Reads it.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(message);
        Ok(ReplyHeader { xid: fields.int()?, zxid: fields.long()?, error: fields.int()? })
    }

    /// Writes it; a reply with an error has nothing after it.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = self.xid.to_be_bytes().to_vec();
        message.extend(self.zxid.to_be_bytes());
        message.extend(self.error.to_be_bytes());
        message
    }
}

fn millis(number: i32) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or_default())
}

fn in_millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_request_survives_the_round_trip() {
        let request = ConnectRequest {
            last_zxid: 7,
            timeout: Duration::from_secs(4),
            session: SessionKey { id: 0x1234, password: vec![9; 16] },
        };
        assert_eq!(ConnectRequest::decode(&request.encode()), Ok(request.clone()));
        assert_eq!(ConnectRequest::decode(&request.encode()[..20]), Err(Malformed));
    }

    #[test]
    fn a_password_is_not_printed() {
        let key = SessionKey { id: 0x1234, password: b"secret".to_vec() };
        assert_eq!(format!("{key:?}"), "session 0x1234");
    }

    #[track_caller]
    fn check_head(opcode: Opcode, body: &[u8], path: Option<&str>) {
        let mut message = 3_i32.to_be_bytes().to_vec();
        message.extend(opcode.number().to_be_bytes());
        message.extend(body);
        let head = RequestHead { xid: 3, opcode, path: path.map(str::to_owned) };
        assert_eq!(RequestHead::decode(&message), Ok(head));
    }

    #[test]
    fn a_request_tells_its_path() {
        let path = super::super::frame(b"/locks/a");
        check_head(Opcode::Create2, &path, Some("/locks/a"));
        check_head(Opcode::GetChildren2, &path, Some("/locks/a"));
        check_head(Opcode::Ping, &[], None);
        check_head(Opcode::Auth, &path, None);
    }

    #[test]
    fn a_multi_tells_its_first_path() {
        let mut body = Opcode::Delete.number().to_be_bytes().to_vec();
        body.push(0);
        body.extend((-1_i32).to_be_bytes());
        body.extend(super::super::frame(b"/locks/b"));
        check_head(Opcode::Multi, &body, Some("/locks/b"));
        check_head(Opcode::Multi, &body[..12], None);
        // The trailer alone: an empty multi.
        check_head(Opcode::Multi, &[255, 255, 255, 255, 1, 255, 255, 255, 255], None);
    }

    #[test]
    fn lengths_out_of_range_are_refused() {
        assert_eq!(Fields::new(&[127, 0, 0, 0, 1]).buffer(), Err(Malformed));
        assert_eq!(Fields::new(&[255, 255, 255, 254]).buffer(), Err(Malformed));
        assert_eq!(Fields::new(&[255, 255, 255, 255]).buffer(), Ok(&[][..]));
        assert_eq!(RequestHead::decode(&[0; 7]), Err(Malformed));
    }
}
