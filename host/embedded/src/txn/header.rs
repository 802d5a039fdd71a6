//! What every txn begins with.

use crate::jute::{Malformed, Reader, Writer};
use crate::protocol::OpCode;

/// Whose txn, which, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnHeader {
    /// The session that asked for it; zero for the server's own.
    pub session_id: i64,
    /// The session's number of the request.
    pub xid: i32,
    /// Its place in the order of all txns.
    pub zxid: i64,
    /// Wall-clock time in milliseconds: nodes' ctime and mtime.
    pub time_ms: i64,
    /// Its kind.
    pub op: OpCode,
}

impl TxnHeader {
    /// Appends the record.
    pub fn encode(&self, writer: &mut Writer) {
        writer.long(self.session_id);
        writer.int(self.xid);
        writer.long(self.zxid);
        writer.long(self.time_ms);
        writer.int(self.op.code());
    }

    /// Reads the record.
    ///
    /// # Errors
    /// If the input is no such record, or of an unknown kind.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let session_id = reader.long()?;
        let xid = reader.int()?;
        let zxid = reader.long()?;
        let time_ms = reader.long()?;
        let code = reader.int()?;
        let op = OpCode::from_code(code).ok_or(Malformed::Kind(code))?;
        Ok(TxnHeader { session_id, xid, zxid, time_ms, op })
    }
}
