//! Frames to a client after the handshake.

use bytes::Bytes;

use super::{ErrorCode, EventType};
use crate::jute::Writer;

const EVENT_XID: i32 = -1;
/// The client's state as an event tells it: connected.
const SYNC_CONNECTED: i32 = 3;

/// A reply being written.
#[derive(Debug)]
pub struct Reply {
    /// Behind the header.
    pub body: Writer,
}

impl Reply {
    /// The answer to a request that went well; its body is still to be written.
    pub fn ok(xid: i32, zxid: i64) -> Reply {
        Reply::with_error(xid, zxid, 0)
    }

    /// The answer to a request that failed, which has no body.
    pub fn error(xid: i32, zxid: i64, error: ErrorCode) -> Bytes {
        Reply::with_error(xid, zxid, error.code()).finish()
    }

    /// The answer to a request that failed in one of the few ways that leave a body.
    pub fn failed(xid: i32, zxid: i64, error: ErrorCode) -> Reply {
        Reply::with_error(xid, zxid, error.code())
    }

    fn with_error(xid: i32, zxid: i64, code: i32) -> Reply {
        let mut body = Writer::frame();
        body.int(xid);
        body.long(zxid);
        body.int(code);
        Reply { body }
    }

    /// The whole frame.
    pub fn finish(self) -> Bytes {
        self.body.finish_frame()
    }
}

/// The frame that tells of a watch.
pub fn notification(zxid: i64, event: EventType, path: &str) -> Bytes {
    let mut writer = Writer::frame();
    writer.int(EVENT_XID);
    writer.long(zxid);
    writer.int(0);
    writer.int(event.code());
    writer.int(SYNC_CONNECTED);
    writer.string(path);
    writer.finish_frame()
}
