//! Access lists as they travel.

use std::sync::Arc;

use crate::jute::{Malformed, Reader, Writer};

/// The permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions;

impl Permissions {
    /// Reading data and children.
    pub const READ: i32 = 1;
    /// Writing data.
    pub const WRITE: i32 = 2;
    /// Creating children.
    pub const CREATE: i32 = 4;
    /// Deleting children.
    pub const DELETE: i32 = 8;
    /// Setting the access list.
    pub const ADMIN: i32 = 16;
    /// All of them.
    pub const ALL: i32 = 31;
}

/// Who: a name within a scheme.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// `world`, `auth`, `digest`, `ip`, `super`.
    pub scheme: String,
    /// The name; its form depends on the scheme.
    pub id: String,
}

impl Id {
    /// An id of a scheme.
    pub fn new(scheme: &str, id: &str) -> Self {
        Id { scheme: scheme.to_owned(), id: id.to_owned() }
    }
}

/// What one [`Id`] may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    /// [`Permissions`], or'ed.
    pub permissions: i32,
    /// Who may.
    pub id: Id,
}

/// A node's access list, shared by all nodes that have the same.
pub type Acls = Arc<[Acl]>;

impl Acl {
    /// Everything, to everyone.
    pub fn open() -> Acls {
        Acls::from([Acl { permissions: Permissions::ALL, id: Id::new("world", "anyone") }])
    }

    /// Reading, to everyone.
    pub fn readable() -> Acls {
        Acls::from([Acl { permissions: Permissions::READ, id: Id::new("world", "anyone") }])
    }

    /// Reads one entry.
    ///
    /// # Errors
    /// If the input is no such record.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Acl, Malformed> {
        let permissions = reader.int()?;
        let scheme = reader.optional_string()?.unwrap_or_default();
        let id = reader.optional_string()?.unwrap_or_default();
        Ok(Acl { permissions, id: Id { scheme, id } })
    }

    /// Reads a list. Null is taken for an empty one: both are refused alike.
    ///
    /// # Errors
    /// If the input is no such list.
    pub fn decode_list(reader: &mut Reader<'_>) -> Result<Vec<Acl>, Malformed> {
        Ok(reader.optional_list(Acl::decode)?.unwrap_or_default())
    }

    /// Writes one entry.
    pub fn encode(&self, writer: &mut Writer) {
        writer.int(self.permissions);
        writer.string(&self.id.scheme);
        writer.string(&self.id.id);
    }

    /// Writes a list.
    pub fn encode_list(list: &[Acl], writer: &mut Writer) {
        writer.list(list.iter(), |writer, acl| acl.encode(writer));
    }
}
