//! Deciding everything but a create. The order of the checks is Apache ZooKeeper's: it decides
//! which error a client sees.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::quota::Grown;
use super::{Asked, Leader};
use crate::protocol::{ErrorCode, Permissions, Write};
use crate::replica::Replica;
use crate::tree::{Owner, Tree};
use crate::txn::{CheckVersionTxn, CloseSessionTxn, DeleteTxn, SetAclTxn, SetDataTxn, Txn};
use crate::{access, path};

impl Leader {
    pub(super) fn prepare_single(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        write: Write,
    ) -> Result<Txn, ErrorCode> {
        match write {
            Write::Create(create) => self.prepare_create(replica, asked, create),
            Write::Delete { path, version } => self.prepare_delete(replica, asked, path, version),
            Write::SetData { path, data, version } => {
                self.check_session(asked)?;
                let length = data.as_ref().map_or(0, Bytes::len);
                let version = self.next_version(replica, asked, &path, length, version)?;
                Ok(Txn::SetData(SetDataTxn { path, data, version }))
            }
            Write::SetAcl { path, acl, version } => {
                self.check_session(asked)?;
                check_path(&path)?;
                let acl = access::resolve(&acl, &asked.ids)?;
                let mut node = self.outstanding.get(replica, &path)?;
                access::check(&node.acl, Permissions::ADMIN, &asked.ids)?;
                let version = next(node.stat.aversion, version)?;
                node.stat.aversion = version;
                node.acl = acl.as_slice().into();
                self.outstanding.set(asked.zxid, &path, Some(node));
                Ok(Txn::SetAcl(SetAclTxn { path, acl, version }))
            }
            Write::Check { path, version } => {
                self.check_session(asked)?;
                check_path(&path)?;
                let node = self.outstanding.get(replica, &path)?;
                access::check(&node.acl, Permissions::READ, &asked.ids)?;
                let version = next(node.stat.version, version)?;
                Ok(Txn::CheckVersion(CheckVersionTxn { path, version }))
            }
            Write::DeleteContainer { path } => self.prepare_container(replica, asked, path),
            Write::Reconfig => Err(ErrorCode::ReconfigDisabled),
            Write::Malformed(_) => Err(ErrorCode::Marshalling),
            // These are no part of a multi, and are handled before by themselves.
            Write::Multi(_) | Write::CreateSession { .. } | Write::CloseSession => {
                Err(ErrorCode::Marshalling)
            }
        }
    }

    /// The leader's own requests belong to no session.
    pub(super) fn check_session(&self, asked: &Asked) -> Result<(), ErrorCode> {
        match asked.server {
            Some(server) => self.sessions.check(asked.session_id, server),
            None => Ok(()),
        }
    }

    fn prepare_delete(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        path: String,
        version: i32,
    ) -> Result<Txn, ErrorCode> {
        self.check_session(asked)?;
        let parent_path = parent_of_deletable(&path)?;
        let parent = self.outstanding.get(replica, parent_path)?;
        access::check(&parent.acl, Permissions::DELETE, &asked.ids)?;
        let node = self.outstanding.get(replica, &path)?;
        next(node.stat.version, version)?;
        if node.child_count > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.outstanding.child_deleted(replica, asked.zxid, &path);
        Ok(Txn::Delete(DeleteTxn { path }))
    }

    fn prepare_container(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        path: String,
    ) -> Result<Txn, ErrorCode> {
        parent_of_deletable(&path)?;
        let node = self.outstanding.get(replica, &path)?;
        if node.child_count > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        match Owner::from_raw(node.stat.ephemeral_owner) {
            Owner::Container | Owner::Ttl(_) => {}
            Owner::None | Owner::Session(_) => return Err(ErrorCode::BadVersion),
        }
        self.outstanding.child_deleted(replica, asked.zxid, &path);
        Ok(Txn::Delete(DeleteTxn { path }))
    }

    fn next_version(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        path: &str,
        data_length: usize,
        version: i32,
    ) -> Result<i32, ErrorCode> {
        check_path(path)?;
        let mut node = self.outstanding.get(replica, path)?;
        access::check(&node.acl, Permissions::WRITE, &asked.ids)?;
        let grown = Grown { nodes: 0, from: node.data_length, to: data_length };
        self.check_quota(replica, asked, path, grown)?;
        let version = next(node.stat.version, version)?;
        node.data_length = data_length;
        node.stat.version = version;
        node.stat.mzxid = asked.zxid;
        node.stat.mtime_ms = asked.now.wall_ms;
        self.outstanding.set(asked.zxid, path, Some(node));
        Ok(version)
    }

    /// A session's end takes the ephemerals it has, and those it is about to have; but none that is
    /// about to go, though another's may be about to come in its place.
    pub(super) fn prepare_close(&mut self, replica: &Replica, asked: &Asked) -> Txn {
        let session_id = asked.session_id;
        let mut paths: BTreeSet<String> =
            replica.tree().ephemerals_of(session_id).map(str::to_owned).collect();
        for (path, owner) in self.outstanding.owners() {
            let is_own =
                owner.is_some_and(|raw| Owner::from_raw(raw) == Owner::Session(session_id));
            if is_own {
                paths.insert(path.to_owned());
            } else {
                paths.remove(path);
            }
        }
        for path in &paths {
            self.outstanding.child_deleted(replica, asked.zxid, path);
        }
        self.sessions.set_closing(session_id);
        Txn::CloseSession(CloseSessionTxn { paths: Some(paths.into_iter().collect()) })
    }
}

fn check_path(path: &str) -> Result<(), ErrorCode> {
    if path::is_valid(path) { Ok(()) } else { Err(ErrorCode::BadArguments) }
}

/// Deletes do not look whether the path is valid: an invalid one is just not there.
fn parent_of_deletable(path: &str) -> Result<&str, ErrorCode> {
    if path.contains('\0') || Tree::is_built_in(path) {
        return Err(ErrorCode::BadArguments);
    }
    path::split(path).map(|(parent, _)| parent).ok_or(ErrorCode::BadArguments)
}

/// The version after a change, if it is as expected: -1 expects nothing.
fn next(version: i32, expected: i32) -> Result<i32, ErrorCode> {
    if expected != -1 && expected != version {
        return Err(ErrorCode::BadVersion);
    }
    Ok(version.wrapping_add(1))
}
