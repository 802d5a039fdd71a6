//! Reads: answered from this server's own replica.

use bytes::Bytes;

use super::Member;
use super::answer::{multi_error, multi_header};
use super::events::NO_ZXID;
use crate::access;
use crate::jute::Writer;
use crate::protocol::{
    Acl, ErrorCode, EventType, Id, OpCode, Permissions, Read, ReadOp, RearmedWatches, Reply,
    WatchKind,
};
use crate::tree::Node;
use crate::version::ServerVersion;

/// What the results within one multiRead may come to. One frame can ask for a large node some ten
/// thousand times, and the answers would take gigabytes; clients of Apache ZooKeeper take a frame
/// of one mebibyte unless they are told otherwise.
const MULTI_READ_LIMIT: usize = 4 << 20;

impl Member {
    pub(super) fn read(&mut self, connection: u64, xid: i32, read: &Read, ids: &[Id]) -> Bytes {
        let zxid = self.replica.last_zxid();
        if *read == Read::MultiReadOfWrites {
            let mut reply = Reply::failed(xid, zxid, ErrorCode::Marshalling);
            multi_header(&mut reply.body, -1, true, -1);
            return reply.finish();
        }
        let mut reply = Reply::ok(xid, zxid);
        match self.answer_read(&mut reply.body, connection, read, ids) {
            Ok(()) => reply.finish(),
            Err(error) => Reply::error(xid, zxid, error),
        }
    }

    fn answer_read(
        &mut self,
        body: &mut Writer,
        connection: u64,
        read: &Read,
        ids: &[Id],
    ) -> Result<(), ErrorCode> {
        match read {
            Read::Exists { path, watch } => {
                if path.contains('\0') {
                    return Err(ErrorCode::BadArguments);
                }
                // Also on a node that is not there: that is what the watch is for.
                if *watch {
                    self.watches.watch_data(path, connection);
                }
                self.replica.tree().stat(path)?.encode(body);
            }
            Read::GetData { path, watch } => self.get_data(body, connection, path, *watch, ids)?,
            Read::GetChildren { path, watch, with_stat } => {
                self.get_children(body, connection, path, *watch, ids)?;
                if *with_stat {
                    self.replica.tree().stat(path)?.encode(body);
                }
            }
            Read::GetAcl { path } => {
                let node = self.replica.tree().get(path).ok_or(ErrorCode::NoNode)?;
                Acl::encode_list(&access::shown(node.acl(), ids)?, body);
                node.stat().encode(body);
            }
            Read::GetAllChildrenNumber { path } => {
                self.readable(path, ids)?;
                let count = self.replica.tree().count_below(path);
                body.int(i32::try_from(count).unwrap_or(i32::MAX));
            }
            Read::GetEphemerals { prefix } => {
                let session_id = self.session_of(connection).unwrap_or_default();
                let paths: Vec<_> = (self.replica.tree().ephemerals_of(session_id))
                    .filter(|path| path.starts_with(prefix.as_str()))
                    .collect();
                body.list(paths.iter(), |body, path| body.string(path));
            }
            Read::SetWatches(watches) => self.set_watches(connection, watches),
            Read::AddWatch { path, mode } => {
                self.watches.add(path, connection, *mode);
                body.int(0);
            }
            Read::RemoveWatches { path, kind } => {
                self.check_kind(*kind)?;
                let found = self.watches.remove(path, connection, *kind);
                return if found { Ok(()) } else { Err(ErrorCode::NoWatcher) };
            }
            Read::CheckWatches { path, kind } => {
                self.check_kind(*kind)?;
                let found = self.watches.contains(path, connection, *kind);
                return if found { Ok(()) } else { Err(ErrorCode::NoWatcher) };
            }
            Read::WhoAmI => body.list(ids.iter(), |body, id| {
                body.string(&id.scheme);
                body.string(access::user_name(id));
            }),
            Read::MultiRead(reads) => self.multi_read(body, connection, reads, ids),
            Read::MultiReadOfWrites | Read::Malformed => return Err(ErrorCode::Marshalling),
        }
        Ok(())
    }

    fn check_kind(&self, kind: WatchKind) -> Result<(), ErrorCode> {
        let is_new = matches!(kind, WatchKind::Persistent | WatchKind::Recursive);
        match self.options.version {
            ServerVersion::V3_8 if is_new => Err(ErrorCode::Marshalling),
            _ => Ok(()),
        }
    }

    fn readable(&self, path: &str, ids: &[Id]) -> Result<&Node, ErrorCode> {
        let node = self.replica.tree().get(path).ok_or(ErrorCode::NoNode)?;
        access::check(node.acl(), Permissions::READ, ids)?;
        Ok(node)
    }

    fn get_data(
        &mut self,
        body: &mut Writer,
        connection: u64,
        path: &str,
        watch: bool,
        ids: &[Id],
    ) -> Result<(), ErrorCode> {
        let node = self.readable(path, ids)?;
        body.slice(node.data().map(AsRef::as_ref));
        node.stat().encode(body);
        if watch {
            self.watches.watch_data(path, connection);
        }
        Ok(())
    }

    fn get_children(
        &mut self,
        body: &mut Writer,
        connection: u64,
        path: &str,
        watch: bool,
        ids: &[Id],
    ) -> Result<(), ErrorCode> {
        let node = self.readable(path, ids)?;
        body.list(node.children(), |body, name| body.string(name));
        if watch {
            self.watches.watch_children(path, connection);
        }
        Ok(())
    }

    /// Each element succeeds or fails by itself. Those beyond the limit fail, which Apache ZooKeeper
    /// does not have: there the server runs out of memory.
    fn multi_read(&mut self, body: &mut Writer, connection: u64, reads: &[ReadOp], ids: &[Id]) {
        let mut results = 0;
        for read in reads {
            if results > MULTI_READ_LIMIT {
                multi_error(body, ErrorCode::Marshalling);
                continue;
            }
            let mut inner = Writer::new();
            let (op, result) = match read {
                ReadOp::GetData { path } => {
                    (OpCode::GetData, self.get_data(&mut inner, connection, path, false, ids))
                }
                ReadOp::GetChildren { path } => (
                    OpCode::GetChildren,
                    self.get_children(&mut inner, connection, path, false, ids),
                ),
            };
            match result {
                Ok(()) => {
                    let result = inner.finish();
                    results += result.len();
                    multi_header(body, op.code(), false, 0);
                    body.raw(&result);
                }
                Err(error) => multi_error(body, error),
            }
        }
        multi_header(body, -1, true, -1);
    }

    /// What has changed since the client last looked is told before the answer; the rest is
    /// watched again.
    fn set_watches(&mut self, connection: u64, watches: &RearmedWatches) {
        let since = watches.relative_zxid;
        let look = |member: &Member, path: &str| {
            member.replica.tree().get(path).map(|node| *node.stored())
        };
        for path in &watches.data {
            match look(self, path) {
                None => self.catch_up(connection, EventType::NodeDeleted, path),
                Some(stat) if stat.mzxid > since => {
                    self.catch_up(connection, EventType::NodeDataChanged, path);
                }
                Some(_) => self.watches.watch_data(path, connection),
            }
        }
        for path in &watches.exist {
            match look(self, path) {
                Some(_) => self.catch_up(connection, EventType::NodeCreated, path),
                None => self.watches.watch_data(path, connection),
            }
        }
        for path in &watches.child {
            match look(self, path) {
                None => self.catch_up(connection, EventType::NodeDeleted, path),
                Some(stat) if stat.pzxid > since => {
                    self.catch_up(connection, EventType::NodeChildrenChanged, path);
                }
                Some(_) => self.watches.watch_children(path, connection),
            }
        }
        for path in &watches.persistent {
            self.watches.add(path, connection, crate::protocol::AddWatchMode::Persistent);
        }
        for path in &watches.recursive {
            self.watches.add(path, connection, crate::protocol::AddWatchMode::Recursive);
        }
    }

    /// Apache ZooKeeper does not ask here whether the client may read the node.
    fn catch_up(&mut self, connection: u64, event: EventType, path: &str) {
        self.notify_one(NO_ZXID, event, path, connection, &[]);
    }
}
