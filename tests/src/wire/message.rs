//! What a client can ask. Nothing is checked here: a server is judged by what it does with it.

use crate::frames::{Opcode, frame};

/// A request, and how a transcript tells it.
#[derive(Clone, Debug)]
pub struct Message {
    pub(super) text: String,
    /// The xid, where the protocol fixes it.
    pub(super) xid: Option<i32>,
    pub(super) opcode: Opcode,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// A request of any kind, with any body.
    pub fn raw(opcode: Opcode, body: Body) -> Self {
        Message { text: format!("{opcode:?}"), xid: None, opcode, body: body.0 }
    }

    fn about(mut self, text: impl std::fmt::Display) -> Self {
        self.text = format!("{:?} {text}", self.opcode);
        self
    }

    fn with_xid(mut self, xid: i32) -> Self {
        self.xid = Some(xid);
        self
    }

    /// As it travels, after the length.
    pub(super) fn encode(&self, xid: i32) -> Vec<u8> {
        let head = Body::new().int(xid).int(self.opcode.number());
        [&head.0[..], &self.body].concat()
    }
}

/// The fields of a request.
#[derive(Clone, Debug, Default)]
pub struct Body(Vec<u8>);

impl Body {
    /// No fields.
    pub fn new() -> Self {
        Body::default()
    }

    /// Bytes as they are.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A 32-bit number.
    #[must_use]
    pub fn int(self, value: i32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// A 64-bit number.
    #[must_use]
    pub fn long(self, value: i64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// A boolean.
    #[must_use]
    pub fn bool(self, value: bool) -> Self {
        self.raw(&[u8::from(value)])
    }

    /// Bytes with their length, or a null.
    #[must_use]
    pub fn buffer(self, value: Option<&[u8]>) -> Self {
        match value {
            Some(bytes) => self.raw(&frame(bytes)),
            None => self.int(-1),
        }
    }

    /// A string.
    #[must_use]
    pub fn string(self, value: &str) -> Self {
        self.buffer(Some(value.as_bytes()))
    }

    fn strings(self, list: &[&str]) -> Self {
        list.iter().fold(self.count(list.len()), |body, path| body.string(path))
    }

    fn acls(self, list: &[Acl]) -> Self {
        let entry = |body: Self, acl: &Acl| body.int(acl.0).string(&acl.1).string(&acl.2);
        list.iter().fold(self.count(list.len()), entry)
    }

    fn count(self, count: usize) -> Self {
        self.int(i32::try_from(count).unwrap_or(i32::MAX))
    }
}

/// Permission bits, scheme and id.
#[derive(Clone, Debug)]
pub struct Acl(i32, String, String);

impl Acl {
    /// Everything.
    pub const ALL: i32 = 31;

    /// What someone may do.
    pub fn new(permissions: i32, scheme: &str, id: &str) -> Self {
        Acl(permissions, scheme.into(), id.into())
    }

    /// What everyone may do.
    pub fn anyone(permissions: i32) -> Self {
        Acl::new(permissions, "world", "anyone")
    }
}

/// Whether a read leaves a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It does.
    Leave,
    /// It does not.
    No,
}

/// A creation, by default of a persistent node with data `x` that is open to everyone.
#[derive(Clone, Debug)]
pub struct Create {
    opcode: Opcode,
    path: String,
    data: Option<Vec<u8>>,
    acls: Vec<Acl>,
    flags: i32,
    ttl: Option<i64>,
}

/// A creation, to be refined.
pub fn create(path: &str) -> Create {
    let (data, acls) = (Some(b"x".to_vec()), vec![Acl::anyone(Acl::ALL)]);
    Create { opcode: Opcode::Create, path: path.into(), data, acls, flags: 0, ttl: None }
}

impl Create {
    /// Which of the four operations that create.
    #[must_use]
    pub fn by(mut self, opcode: Opcode) -> Self {
        self.opcode = opcode;
        self
    }

    /// The flags as a number: 1 ephemeral, 2 sequential, 3 both, 4 container, 5 and 6 with a time
    /// to live.
    #[must_use]
    pub fn flags(mut self, flags: i32) -> Self {
        self.flags = flags;
        self
    }

    /// The node's data.
    #[must_use]
    pub fn data(mut self, data: Option<&[u8]>) -> Self {
        self.data = data.map(<[u8]>::to_vec);
        self
    }

    /// Who may do what.
    #[must_use]
    pub fn acls(mut self, acls: &[Acl]) -> Self {
        self.acls = acls.to_vec();
        self
    }

    /// A time to live, with the operation that takes one.
    #[must_use]
    pub fn ttl_ms(mut self, ttl_ms: i64) -> Self {
        self.opcode = Opcode::CreateTtl;
        self.ttl = Some(ttl_ms);
        self
    }
}

impl From<Create> for Message {
    fn from(create: Create) -> Message {
        let Create { opcode, path, data, acls, flags, ttl } = create;
        let body = Body::new().string(&path).buffer(data.as_deref()).acls(&acls).int(flags);
        let text = format!("{path:?} {} flags {flags}", told(data.as_deref()));
        match ttl {
            Some(ttl) => {
                Message::raw(opcode, body.long(ttl)).about(format_args!("{text} ttl {ttl}"))
            }
            None => Message::raw(opcode, body).about(text),
        }
    }
}

fn told(data: Option<&[u8]>) -> String {
    data.map_or_else(|| "null".into(), |bytes| format!("{} bytes", bytes.len()))
}

fn pathed(opcode: Opcode, path: &str) -> Message {
    Message::raw(opcode, Body::new().string(path)).about(format_args!("{path:?}"))
}

fn numbered(opcode: Opcode, path: &str, number: i32) -> Message {
    let body = Body::new().string(path).int(number);
    Message::raw(opcode, body).about(format_args!("{path:?} {number}"))
}

fn watched(opcode: Opcode, path: &str, watch: Watch) -> Message {
    let body = Body::new().string(path).bool(watch == Watch::Leave);
    Message::raw(opcode, body).about(format_args!("{path:?} watch {watch:?}"))
}

/// Deletes a node of that version; -1 is any.
pub fn delete(path: &str, version: i32) -> Message {
    numbered(Opcode::Delete, path, version)
}

/// Asks for a node's facts.
pub fn exists(path: &str, watch: Watch) -> Message {
    watched(Opcode::Exists, path, watch)
}

/// Asks for data and facts.
pub fn get_data(path: &str, watch: Watch) -> Message {
    watched(Opcode::GetData, path, watch)
}

/// Asks for children.
pub fn get_children(path: &str, watch: Watch) -> Message {
    watched(Opcode::GetChildren, path, watch)
}

/// Asks for children and facts.
pub fn get_children2(path: &str, watch: Watch) -> Message {
    watched(Opcode::GetChildren2, path, watch)
}

/// Sets the data of a node of that version; -1 is any.
pub fn set_data(path: &str, data: Option<&[u8]>, version: i32) -> Message {
    let body = Body::new().string(path).buffer(data).int(version);
    let text = format!("{path:?} {} version {version}", told(data));
    Message::raw(Opcode::SetData, body).about(text)
}

/// Checks a version.
pub fn check(path: &str, version: i32) -> Message {
    numbered(Opcode::Check, path, version)
}

/// Asks for an access list.
pub fn get_acl(path: &str) -> Message {
    pathed(Opcode::GetAcl, path)
}

/// Sets an access list of that version; -1 is any.
pub fn set_acl(path: &str, acls: &[Acl], version: i32) -> Message {
    let body = Body::new().string(path).acls(acls).int(version);
    Message::raw(Opcode::SetAcl, body).about(format_args!("{path:?} {acls:?} version {version}"))
}

/// Waits for the server to have caught up.
pub fn sync(path: &str) -> Message {
    pathed(Opcode::Sync, path)
}

/// Asks for the session's ephemeral nodes below a path.
pub fn get_ephemerals(path: &str) -> Message {
    pathed(Opcode::GetEphemerals, path)
}

/// Asks how many nodes are below a path.
pub fn get_all_children_number(path: &str) -> Message {
    pathed(Opcode::GetAllChildrenNumber, path)
}

/// Adds a watch that stays: mode 0 persistent, 1 recursive.
pub fn add_watch(path: &str, mode: i32) -> Message {
    numbered(Opcode::AddWatch, path, mode)
}

/// Removes watches: 1 of children, 2 of data, 3 any.
pub fn remove_watches(path: &str, kind: i32) -> Message {
    numbered(Opcode::RemoveWatches, path, kind)
}

/// Asks whether there are watches of a kind.
pub fn check_watches(path: &str, kind: i32) -> Message {
    numbered(Opcode::CheckWatches, path, kind)
}

/// A sign of life. Its answer is behind everything that was said before.
pub fn ping() -> Message {
    Message::raw(Opcode::Ping, Body::new()).with_xid(-2)
}

/// Ends the session.
pub fn close_session() -> Message {
    Message::raw(Opcode::CloseSession, Body::new())
}

/// Asks who the server thinks this is.
pub fn who_am_i() -> Message {
    Message::raw(Opcode::WhoAmI, Body::new())
}

/// Proves an identity.
pub fn auth(scheme: &str, proof: &str) -> Message {
    let body = Body::new().int(0).string(scheme).string(proof);
    Message::raw(Opcode::Auth, body).about(format_args!("{scheme} {proof}")).with_xid(-4)
}

/// The paths of [`set_watches`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Rearmed<'a> {
    /// Watches of data.
    pub data: &'a [&'a str],
    /// Watches of nodes that were not there.
    pub exist: &'a [&'a str],
    /// Watches of children.
    pub child: &'a [&'a str],
}

/// Sets watches anew that were left before a zxid was seen.
pub fn set_watches(since: i64, paths: Rearmed<'_>) -> Message {
    let body = rearmed(since, paths);
    Message::raw(Opcode::SetWatches, body).about(format_args!("{paths:?}")).with_xid(-8)
}

/// The same with the watches that stay.
pub fn set_watches2(
    since: i64,
    paths: Rearmed<'_>,
    persistent: &[&str],
    recursive: &[&str],
) -> Message {
    let body = rearmed(since, paths).strings(persistent).strings(recursive);
    let text = format!("{paths:?} {persistent:?} {recursive:?}");
    Message::raw(Opcode::SetWatches2, body).about(text).with_xid(-8)
}

fn rearmed(since: i64, paths: Rearmed<'_>) -> Body {
    Body::new().long(since).strings(paths.data).strings(paths.exist).strings(paths.child)
}

/// Writes that are carried out together or not at all.
pub fn multi(parts: &[Message]) -> Message {
    together(Opcode::Multi, parts)
}

/// Reads that are answered together, each by itself.
pub fn multi_read(parts: &[Message]) -> Message {
    together(Opcode::MultiRead, parts)
}

fn together(opcode: Opcode, parts: &[Message]) -> Message {
    let part = |body: Body, part: &Message| {
        body.int(part.opcode.number()).bool(false).int(-1).raw(&part.body)
    };
    let body = parts.iter().fold(Body::new(), part).int(-1).bool(true).int(-1);
    let texts: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
    Message::raw(opcode, body).about(format_args!("[{}]", texts.join("; ")))
}
