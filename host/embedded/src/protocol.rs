//! ZooKeeper's wire protocol as types: what clients ask, and how answers are spelled.

mod access;
mod error;
mod event;
mod frames;
mod handshake;
mod op_code;
mod reply;
mod request;
mod stat;

pub use access::{Acl, Acls, Id, Permissions};
pub use error::ErrorCode;
pub use event::EventType;
pub use frames::{BadLength, next_frame};
pub use handshake::{ConnectRequest, ConnectResponse, PASSWORD_LENGTH};
pub use op_code::OpCode;
pub use reply::{Reply, notification};
pub use request::{
    AddWatchMode, Command, Create, CreateMode, Frame, Lifetime, Read, ReadOp, RearmedWatches,
    WatchKind, Write,
};
pub use stat::Stat;
