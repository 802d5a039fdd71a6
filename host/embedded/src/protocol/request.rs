//! Requests as types.

use bytes::Bytes;

use super::{Acl, OpCode};
use crate::jute::{Malformed, Reader};

/// A frame after the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The client's number of the request, which the reply echoes.
    pub xid: i32,
    /// The kind as sent, even one nobody knows.
    pub op: i32,
    /// What is asked.
    pub command: Command,
}

/// A request, by who answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The leader decides, every replica applies.
    Write(Write),
    /// The server that the client is connected to answers by itself.
    Read(Read),
    /// The server answers once it has applied what the leader has decided so far.
    Sync {
        /// Echoed, not looked at.
        path: String,
    },
    /// A sign of life.
    Ping,
    /// Names for the connection.
    Auth {
        /// The scheme.
        scheme: String,
        /// What proves the name.
        credential: Bytes,
    },
    /// The start of a SASL exchange, which this server does not know.
    Sasl,
    /// A kind nobody knows.
    Unknown,
}

/// A change to be decided by the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Create a node.
    Create(Create),
    /// Delete a node.
    Delete {
        /// The node.
        path: String,
        /// The version it must have, or -1.
        version: i32,
    },
    /// Replace a node's data.
    SetData {
        /// The node.
        path: String,
        /// Null is kept apart from empty.
        data: Option<Bytes>,
        /// The version it must have, or -1.
        version: i32,
    },
    /// Replace a node's access list.
    SetAcl {
        /// The node.
        path: String,
        /// The list.
        acl: Vec<Acl>,
        /// The access list's version, or -1.
        version: i32,
    },
    /// Check a node's version, in a multi. Outside of a multi, only a check that fails is answered.
    Check {
        /// The node.
        path: String,
        /// The version it must have.
        version: i32,
    },
    /// Make several changes, all or none.
    Multi(Vec<Write>),
    /// Change the ensemble, which is refused.
    Reconfig,
    /// Open a session with the id that the request carries.
    CreateSession {
        /// Its granted timeout.
        timeout_ms: i32,
    },
    /// Close the request's session.
    CloseSession,
    /// Remove an empty container, or a node whose time to live is over.
    DeleteContainer {
        /// The node.
        path: String,
    },
    /// A request of this kind whose record cannot be read.
    Malformed(OpCode),
}

impl Write {
    /// The kind.
    pub fn op(&self) -> OpCode {
        match self {
            Write::Create(create) => create.op,
            Write::Delete { .. } => OpCode::Delete,
            Write::SetData { .. } => OpCode::SetData,
            Write::SetAcl { .. } => OpCode::SetAcl,
            Write::Check { .. } => OpCode::Check,
            Write::Multi(_) => OpCode::Multi,
            Write::Reconfig => OpCode::Reconfig,
            Write::CreateSession { .. } => OpCode::CreateSession,
            Write::CloseSession => OpCode::CloseSession,
            Write::DeleteContainer { .. } => OpCode::DeleteContainer,
            Write::Malformed(op) => *op,
        }
    }
}

/// A node to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Which of the four kinds of create.
    pub op: OpCode,
    /// The path; a sequence number may be appended to it.
    pub path: String,
    /// Null is kept apart from empty.
    pub data: Option<Bytes>,
    /// As asked for: `auth` is not yet resolved.
    pub acl: Vec<Acl>,
    /// A [`CreateMode`] if it is one of those.
    pub flags: i32,
    /// In milliseconds; -1 where the kind has none.
    pub ttl_ms: i64,
}

/// What a created node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateMode {
    /// Whether a sequence number is appended.
    pub is_sequential: bool,
    /// How the node may end.
    pub lifetime: Lifetime,
}

/// How a node may end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It does not.
    Persistent,
    /// With its session.
    Ephemeral,
    /// Once it has had children and has none.
    Container,
    /// Some time after its last change, if it has no children.
    Ttl,
}

impl CreateMode {
    /// The mode of a create's flags.
    pub fn from_flags(flags: i32) -> Option<CreateMode> {
        let (is_sequential, lifetime) = match flags {
            0 => (false, Lifetime::Persistent),
            1 => (false, Lifetime::Ephemeral),
            2 => (true, Lifetime::Persistent),
            3 => (true, Lifetime::Ephemeral),
            4 => (false, Lifetime::Container),
            5 => (false, Lifetime::Ttl),
            6 => (true, Lifetime::Ttl),
            _ => return None,
        };
        Some(CreateMode { is_sequential, lifetime })
    }
}

/// A question that a server answers by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub enum Read {
    Exists {
        path: String,
        watch: bool,
    },
    GetData {
        path: String,
        watch: bool,
    },
    GetChildren {
        path: String,
        watch: bool,
        with_stat: bool,
    },
    GetAcl {
        path: String,
    },
    GetAllChildrenNumber {
        path: String,
    },
    GetEphemerals {
        prefix: String,
    },
    SetWatches(RearmedWatches),
    AddWatch {
        path: String,
        mode: AddWatchMode,
    },
    RemoveWatches {
        path: String,
        kind: WatchKind,
    },
    CheckWatches {
        path: String,
        kind: WatchKind,
    },
    WhoAmI,
    MultiRead(Vec<ReadOp>),
    /// A multiRead that holds writes only: an error that has a body.
    MultiReadOfWrites,
    /// A record that cannot be read.
    Malformed,
}

/// A question within a multiRead. It has a field that asks for a watch, which Apache ZooKeeper
/// reads and forgets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub enum ReadOp {
    GetData { path: String },
    GetChildren { path: String },
}

/// The watches that a client had on its last connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RearmedWatches {
    /// The newest zxid the client has seen: what changed since is told at once.
    pub relative_zxid: i64,
    /// Watches on data.
    pub data: Vec<String>,
    /// Watches on nodes that were missing.
    pub exist: Vec<String>,
    /// Watches on children.
    pub child: Vec<String>,
    /// Watches that stay.
    pub persistent: Vec<String>,
    /// Watches that stay and see everything below.
    pub recursive: Vec<String>,
}

/// The two kinds of watches that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddWatchMode {
    /// On the node and its children.
    Persistent,
    /// On the node and everything below.
    Recursive,
}

/// Which watches to look for or to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    /// On children.
    Children,
    /// On data.
    Data,
    /// All of a path.
    Any,
    /// Those that stay; not in 3.8.
    Persistent,
    /// Those that stay and see everything below; not in 3.8.
    Recursive,
}

impl WatchKind {
    fn from_code(code: i32) -> Result<WatchKind, Malformed> {
        match code {
            1 => Ok(WatchKind::Children),
            2 => Ok(WatchKind::Data),
            3 => Ok(WatchKind::Any),
            4 => Ok(WatchKind::Persistent),
            5 => Ok(WatchKind::Recursive),
            _ => Err(Malformed::Kind(code)),
        }
    }
}

impl Frame {
    /// Reads a frame after the handshake. Only a frame without a header fails: a record that
    /// cannot be read is a request that is answered with an error.
    ///
    /// # Errors
    /// If the frame has no header.
    pub fn decode(frame: &[u8]) -> Result<Frame, Malformed> {
        let mut reader = Reader::new(frame);
        let xid = reader.int()?;
        let op = reader.int()?;
        Ok(Frame { xid, op, command: Command::decode(op, &mut reader) })
    }
}

impl Command {
    fn decode(code: i32, reader: &mut Reader<'_>) -> Command {
        let Some(op) = OpCode::from_code(code) else { return Command::Unknown };
        match op {
            OpCode::Ping => Command::Ping,
            OpCode::Sasl => Command::Sasl,
            OpCode::Error | OpCode::CreateSession => Command::Unknown,
            OpCode::Sync => match reader.string() {
                Ok(path) => Command::Sync { path },
                Err(_) => Command::Read(Read::Malformed),
            },
            OpCode::Auth => decode_auth(reader),
            OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Delete
            | OpCode::DeleteContainer
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Check
            | OpCode::Multi
            | OpCode::Reconfig
            | OpCode::CloseSession => {
                Command::Write(decode_write(op, reader).unwrap_or(Write::Malformed(op)))
            }
            _ => Command::Read(decode_read(op, reader).unwrap_or(Read::Malformed)),
        }
    }
}

fn decode_auth(reader: &mut Reader<'_>) -> Command {
    let mut fields = || {
        let _type = reader.int()?;
        let scheme = reader.string()?;
        Ok::<_, Malformed>((scheme, reader.buffer()?.unwrap_or_default()))
    };
    // A scheme nobody has is refused like a credential nobody knows.
    let (scheme, credential) = fields().unwrap_or_default();
    Command::Auth { scheme, credential }
}

fn decode_write(op: OpCode, reader: &mut Reader<'_>) -> Result<Write, Malformed> {
    Ok(match op {
        OpCode::Multi => Write::Multi(decode_multi(reader)?),
        OpCode::Reconfig => Write::Reconfig,
        OpCode::CloseSession => Write::CloseSession,
        // A client has no business with it, and Apache finds every path it sends invalid.
        OpCode::DeleteContainer => Write::DeleteContainer { path: String::new() },
        OpCode::SetAcl => Write::SetAcl {
            path: reader.string()?,
            acl: Acl::decode_list(reader)?,
            version: reader.int()?,
        },
        _ => decode_multi_write(op, reader)?,
    })
}

/// A write that may stand in a multi, as it reads outside of one.
fn decode_multi_write(op: OpCode, reader: &mut Reader<'_>) -> Result<Write, Malformed> {
    Ok(match op {
        OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            Write::Create(Create {
                op,
                path: reader.string()?,
                data: reader.buffer()?,
                acl: Acl::decode_list(reader)?,
                flags: reader.int()?,
                ttl_ms: if op == OpCode::CreateTtl { reader.long()? } else { -1 },
            })
        }
        OpCode::Delete => Write::Delete { path: reader.string()?, version: reader.int()? },
        OpCode::SetData => Write::SetData {
            path: reader.string()?,
            data: reader.buffer()?,
            version: reader.int()?,
        },
        OpCode::Check => Write::Check { path: reader.string()?, version: reader.int()? },
        other => return Err(Malformed::Kind(other.code())),
    })
}

/// The next operation of a multi, or `None` at its end.
fn next_of_multi(reader: &mut Reader<'_>) -> Result<Option<OpCode>, Malformed> {
    let code = reader.int()?;
    let is_done = reader.bool()?;
    let _error = reader.int()?;
    if is_done {
        return Ok(None);
    }
    OpCode::from_code(code).map(Some).ok_or(Malformed::Kind(code))
}

fn decode_multi(reader: &mut Reader<'_>) -> Result<Vec<Write>, Malformed> {
    let mut writes = Vec::new();
    while let Some(op) = next_of_multi(reader)? {
        let mut write = decode_multi_write(op, reader)?;
        if let Write::Create(create) = &mut write {
            // Within a multi the flags alone say which kind of create it is.
            create.op = match CreateMode::from_flags(create.flags).map(|mode| mode.lifetime) {
                Some(Lifetime::Ttl) if op == OpCode::CreateTtl => OpCode::CreateTtl,
                Some(Lifetime::Ttl) => return Err(Malformed::Kind(op.code())),
                Some(Lifetime::Container) => OpCode::CreateContainer,
                _ => OpCode::Create,
            };
            if create.op != OpCode::CreateTtl {
                create.ttl_ms = -1;
            }
        }
        writes.push(write);
    }
    Ok(writes)
}

fn decode_multi_read(reader: &mut Reader<'_>) -> Result<Read, Malformed> {
    let mut reads = Vec::new();
    let mut writes = 0;
    while let Some(op) = next_of_multi(reader)? {
        match op {
            OpCode::GetData => {
                reads.push(ReadOp::GetData { path: reader.string()? });
                reader.bool()?;
            }
            OpCode::GetChildren => {
                reads.push(ReadOp::GetChildren { path: reader.string()? });
                reader.bool()?;
            }
            op => {
                decode_multi_write(op, reader)?;
                writes += 1;
            }
        }
    }
    match (reads.is_empty(), writes) {
        (_, 0) => Ok(Read::MultiRead(reads)),
        (true, _) => Ok(Read::MultiReadOfWrites),
        (false, _) => Err(Malformed::Kind(OpCode::MultiRead.code())),
    }
}

fn decode_read(op: OpCode, reader: &mut Reader<'_>) -> Result<Read, Malformed> {
    Ok(match op {
        OpCode::Exists => Read::Exists { path: reader.string()?, watch: reader.bool()? },
        OpCode::GetData => Read::GetData { path: reader.string()?, watch: reader.bool()? },
        OpCode::GetChildren | OpCode::GetChildren2 => Read::GetChildren {
            path: reader.string()?,
            watch: reader.bool()?,
            with_stat: op == OpCode::GetChildren2,
        },
        OpCode::GetAcl => Read::GetAcl { path: reader.string()? },
        OpCode::GetAllChildrenNumber => Read::GetAllChildrenNumber { path: reader.string()? },
        OpCode::GetEphemerals => {
            Read::GetEphemerals { prefix: reader.optional_string()?.unwrap_or_default() }
        }
        OpCode::SetWatches | OpCode::SetWatches2 => {
            let mut watches = RearmedWatches {
                relative_zxid: reader.long()?,
                data: reader.list(Reader::string)?,
                exist: reader.list(Reader::string)?,
                child: reader.list(Reader::string)?,
                ..RearmedWatches::default()
            };
            if op == OpCode::SetWatches2 {
                watches.persistent = reader.list(Reader::string)?;
                watches.recursive = reader.list(Reader::string)?;
            }
            Read::SetWatches(watches)
        }
        OpCode::AddWatch => Read::AddWatch {
            path: reader.string()?,
            mode: match reader.int()? {
                0 => AddWatchMode::Persistent,
                1 => AddWatchMode::Recursive,
                other => return Err(Malformed::Kind(other)),
            },
        },
        OpCode::RemoveWatches => Read::RemoveWatches {
            path: reader.string()?,
            kind: WatchKind::from_code(reader.int()?)?,
        },
        OpCode::CheckWatches => Read::CheckWatches {
            path: reader.string()?,
            kind: WatchKind::from_code(reader.int()?)?,
        },
        OpCode::WhoAmI => Read::WhoAmI,
        OpCode::MultiRead => decode_multi_read(reader)?,
        other => return Err(Malformed::Kind(other.code())),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(
            op in -12..110i32,
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut frame = vec![0, 0, 0, 1];
            frame.extend_from_slice(&op.to_be_bytes());
            frame.extend_from_slice(&body);
            prop_assert!(Frame::decode(&frame).is_ok());
        }
    }

    #[test]
    fn a_multi_that_claims_more_than_it_has_is_malformed() {
        let frame = [0, 0, 0, 1, 0, 0, 0, 14, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff];
        let decoded = Frame::decode(&frame).unwrap();
        assert_eq!(decoded.command, Command::Write(Write::Malformed(OpCode::Multi)));
    }
}
