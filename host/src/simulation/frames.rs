//! A client's side of ZooKeeper's protocol, as far as sessions of this host speak it.

use bytes::Bytes;
use wok_embedded::jute::{Malformed, Reader, Writer};
use wok_embedded::protocol::{Acl as WireAcl, ErrorCode, Id, OpCode, Permissions};

use crate::session::{
    Acl, CreateMode, Event, Failure, Refusal, Reply, Request, Stat, Watch, Watching, Write, Written,
};

/// The server's answer to the handshake.
#[derive(Debug)]
pub(super) struct Welcome {
    pub(super) timeout_ms: u64,
    /// Zero if the session is gone.
    pub(super) session: i64,
    pub(super) password: Bytes,
}

/// A frame from a server.
#[derive(Debug)]
pub(super) enum Incoming {
    Event { event: Event, path: String, zxid: i64 },
    Reply { xid: i32, zxid: i64, error: Option<ErrorCode>, body: Bytes },
}

/// Watches that a client takes along to another server.
#[derive(Debug, Default)]
pub(super) struct Rearmed {
    pub(super) data: Vec<String>,
    pub(super) exist: Vec<String>,
    pub(super) child: Vec<String>,
}

/// The xid of what nobody waits for.
pub(super) const UNAWAITED: i32 = -8;

pub(super) fn hello(last_zxid: i64, timeout_ms: u64, session: i64, password: &[u8]) -> Bytes {
    let mut writer = Writer::new();
    writer.int(0);
    writer.long(last_zxid);
    writer.int(i32::try_from(timeout_ms).unwrap_or(i32::MAX));
    writer.long(session);
    writer.slice(Some(password));
    writer.finish()
}

/// Reads a frame without its length.
pub(super) fn welcome(frame: &[u8]) -> Result<Welcome, Malformed> {
    let mut reader = Reader::new(frame);
    let _protocol_version = reader.int()?;
    Ok(Welcome {
        timeout_ms: u64::try_from(reader.int()?).unwrap_or(0),
        session: reader.long()?,
        password: reader.buffer()?.unwrap_or_default(),
    })
}

/// Reads a frame without its length.
pub(super) fn incoming(frame: &[u8]) -> Result<Incoming, Malformed> {
    let mut reader = Reader::new(frame);
    let (xid, zxid, error) = (reader.int()?, reader.long()?, reader.int()?);
    if xid != -1 {
        let error = (error != 0).then(|| ErrorCode::from_code(error));
        return Ok(Incoming::Reply {
            xid,
            zxid,
            error,
            body: Bytes::copy_from_slice(reader.rest()),
        });
    }
    let event = match reader.int()? {
        1 => Event::Created,
        2 => Event::Deleted,
        3 => Event::DataChanged,
        _ => Event::ChildrenChanged,
    };
    let _state = reader.int()?;
    Ok(Incoming::Event { event, path: reader.string()?, zxid })
}

pub(super) fn set_watches(last_zxid: i64, watches: &Rearmed) -> Bytes {
    let mut writer = header(UNAWAITED, OpCode::SetWatches);
    writer.long(last_zxid);
    for paths in [&watches.data, &watches.exist, &watches.child] {
        writer.list(paths.iter(), |writer, path| writer.string(path));
    }
    writer.finish()
}

/// Takes a watch back: 1 for one on children, 2 for one on data.
pub(super) fn remove_watch(path: &str, kind: i32) -> Bytes {
    let mut writer = header(UNAWAITED, OpCode::RemoveWatches);
    writer.string(path);
    writer.int(kind);
    writer.finish()
}

pub(super) fn close_session(xid: i32) -> Bytes {
    header(xid, OpCode::CloseSession).finish()
}

pub(super) fn request(xid: i32, request: &Request, acl: Acl) -> Bytes {
    let mut writer = header(xid, op_of(request));
    match request {
        Request::Write(write) => encode_write(write, acl, &mut writer),
        Request::Multi(writes) => {
            for write in writes {
                multi_header(op_of_write(write).code(), false, &mut writer);
                encode_write(write, acl, &mut writer);
            }
            multi_header(-1, true, &mut writer);
        }
        Request::Exists(path, watching)
        | Request::GetData(path, watching)
        | Request::GetChildren(path, watching) => {
            writer.string(path);
            writer.bool(*watching == Watching::Yes);
        }
        Request::Sync(path) => writer.string(path),
    }
    writer.finish()
}

/// ZooKeeper's name of a request, and what it is about.
pub(super) fn describe(request: &Request) -> (&'static str, &str) {
    match request {
        Request::Write(write) => (name_of_write(write), path_of(write)),
        Request::Multi(writes) => ("multi", writes.first().map_or("", path_of)),
        Request::Exists(path, _) => ("exists", path),
        Request::GetData(path, _) => ("getData", path),
        Request::GetChildren(path, _) => ("getChildren", path),
        Request::Sync(path) => ("sync", path),
    }
}

/// Reads the answer to a request. Watches are the caller's to make: `watch` is called where the
/// answer leaves one.
pub(super) fn reply(
    request: &Request,
    error: Option<ErrorCode>,
    body: &[u8],
    watch: impl FnOnce(Armed) -> Watch,
) -> Result<Reply, Failure> {
    let broken = |_: Malformed| Failure::OutcomeUnknown;
    if let (Some(ErrorCode::NoNode), Request::Exists(_, watching)) = (error, request) {
        let watch = (*watching == Watching::Yes).then(|| watch(Armed::Exist));
        return Ok(Reply::Exists(None, watch));
    }
    let mut reader = Reader::new(body);
    if let Request::Multi(writes) = request {
        return multi_reply(writes, error, &mut reader);
    }
    if let Some(error) = error {
        return Err(refusal(error));
    }
    let wants = |watching: &Watching, armed| (*watching == Watching::Yes).then_some(armed);
    Ok(match request {
        Request::Write(write) => {
            Reply::Written(written(op_of_write(write), write, &mut reader).map_err(broken)?)
        }
        Request::Multi(_) => return Err(Failure::OutcomeUnknown),
        Request::Exists(_, watching) => {
            let stat = stat(&mut reader).map_err(broken)?;
            Reply::Exists(Some(stat), wants(watching, Armed::Data).map(watch))
        }
        Request::GetData(_, watching) => {
            let data = reader.slice().map_err(broken)?.unwrap_or_default().to_vec();
            let stat = stat(&mut reader).map_err(broken)?;
            Reply::Data(data, stat, wants(watching, Armed::Data).map(watch))
        }
        Request::GetChildren(_, watching) => {
            let names = reader.list(Reader::string).map_err(broken)?;
            let stat = stat(&mut reader).map_err(broken)?;
            Reply::Children(names, stat, wants(watching, Armed::Child).map(watch))
        }
        Request::Sync(_) => Reply::Synced,
    })
}

/// On what a server keeps a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Armed {
    /// A znode that is there.
    Data,
    /// A znode that is not.
    Exist,
    /// A znode's children.
    Child,
}

fn header(xid: i32, op: OpCode) -> Writer {
    let mut writer = Writer::new();
    writer.int(xid);
    writer.int(op.code());
    writer
}

fn multi_header(op: i32, is_last: bool, writer: &mut Writer) {
    writer.int(op);
    writer.bool(is_last);
    writer.int(-1);
}

fn op_of(request: &Request) -> OpCode {
    match request {
        Request::Write(write) => op_of_write(write),
        Request::Multi(_) => OpCode::Multi,
        Request::Exists(..) => OpCode::Exists,
        Request::GetData(..) => OpCode::GetData,
        Request::GetChildren(..) => OpCode::GetChildren2,
        Request::Sync(_) => OpCode::Sync,
    }
}

fn op_of_write(write: &Write) -> OpCode {
    match write {
        Write::Create { mode: CreateMode::Container, .. } => OpCode::CreateContainer,
        Write::Create { .. } => OpCode::Create2,
        Write::Delete { .. } => OpCode::Delete,
        Write::SetData { .. } => OpCode::SetData,
        Write::Check { .. } => OpCode::Check,
    }
}

fn name_of_write(write: &Write) -> &'static str {
    match write {
        Write::Create { .. } => "create",
        Write::Delete { .. } => "delete",
        Write::SetData { .. } => "setData",
        Write::Check { .. } => "check",
    }
}

fn path_of(write: &Write) -> &str {
    match write {
        Write::Create { path, .. }
        | Write::Delete { path, .. }
        | Write::SetData { path, .. }
        | Write::Check { path, .. } => path,
    }
}

fn encode_write(write: &Write, acl: Acl, writer: &mut Writer) {
    match write {
        Write::Create { path, data, mode } => {
            writer.string(path);
            writer.slice(Some(data));
            let id = match acl {
                Acl::Open => Id::new("world", "anyone"),
                Acl::Creator => Id::new("auth", ""),
            };
            WireAcl::encode_list(&[WireAcl { permissions: Permissions::ALL, id }], writer);
            writer.int(match mode {
                CreateMode::Persistent => 0,
                CreateMode::Ephemeral => 1,
                CreateMode::PersistentSequential => 2,
                CreateMode::EphemeralSequential => 3,
                CreateMode::Container => 4,
            });
        }
        Write::Delete { path, version } => {
            writer.string(path);
            writer.int(version.unwrap_or(-1));
        }
        Write::SetData { path, data, version } => {
            writer.string(path);
            writer.slice(Some(data));
            writer.int(version.unwrap_or(-1));
        }
        Write::Check { path, version } => {
            writer.string(path);
            writer.int(version.unwrap_or(-1));
        }
    }
}

fn written(op: OpCode, write: &Write, reader: &mut Reader<'_>) -> Result<Written, Malformed> {
    Ok(match (op, write) {
        (OpCode::Create, Write::Create { .. }) => {
            Written::Created(reader.string()?, Stat::default())
        }
        (_, Write::Create { .. }) => Written::Created(reader.string()?, stat(reader)?),
        (_, Write::Delete { .. }) => Written::Deleted,
        (_, Write::SetData { .. }) => Written::DataSet(stat(reader)?),
        (_, Write::Check { .. }) => Written::Checked,
    })
}

fn multi_reply(
    writes: &[Write],
    error: Option<ErrorCode>,
    reader: &mut Reader<'_>,
) -> Result<Reply, Failure> {
    if let Some(error) = error {
        return Err(refusal(error));
    }
    let broken = |_: Malformed| Failure::OutcomeUnknown;
    let mut all = Vec::with_capacity(writes.len());
    for (index, write) in writes.iter().enumerate() {
        let (op, _is_last, _error) = (
            reader.int().map_err(broken)?,
            reader.bool().map_err(broken)?,
            reader.int().map_err(broken)?,
        );
        if op != -1 {
            let op = OpCode::from_code(op).ok_or(Failure::OutcomeUnknown)?;
            all.push(written(op, write, reader).map_err(broken)?);
            continue;
        }
        match ErrorCode::from_code(reader.int().map_err(broken)?) {
            // Those before the one that failed carry no error of their own.
            ErrorCode::Other(0) | ErrorCode::RuntimeInconsistency => {}
            error => {
                return Err(match refusal(error) {
                    Failure::Refused { refusal, .. } => {
                        Failure::Refused { refusal, index: Some(index) }
                    }
                    other => other,
                });
            }
        }
    }
    Ok(Reply::Multi(all))
}

fn refusal(error: ErrorCode) -> Failure {
    let refusal = match error {
        ErrorCode::NoNode => Refusal::NoNode,
        ErrorCode::NodeExists => Refusal::NodeExists,
        ErrorCode::NotEmpty => Refusal::NotEmpty,
        ErrorCode::BadVersion => Refusal::BadVersion,
        ErrorCode::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
        ErrorCode::NoAuth => Refusal::NoAuth,
        ErrorCode::Unimplemented => Refusal::Unimplemented,
        ErrorCode::SessionExpired => return Failure::SessionLost,
        other => Refusal::Other(other.to_string()),
    };
    Failure::from(refusal)
}

fn stat(reader: &mut Reader<'_>) -> Result<Stat, Malformed> {
    Ok(Stat {
        czxid: reader.long()?,
        mzxid: reader.long()?,
        ctime_ms: reader.long()?,
        mtime_ms: reader.long()?,
        version: reader.int()?,
        cversion: reader.int()?,
        aversion: reader.int()?,
        ephemeral_owner: reader.long()?,
        data_length: reader.int()?,
        num_children: reader.int()?,
        pzxid: reader.long()?,
    })
}
