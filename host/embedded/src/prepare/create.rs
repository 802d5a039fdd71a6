//! Deciding a create. The order of the checks is Apache ZooKeeper's: it decides which error a
//! client sees.

use bytes::Bytes;

use super::outstanding::Record;
use super::quota::Grown;
use super::{Asked, Leader};
use crate::protocol::{Create, CreateMode, ErrorCode, Lifetime, OpCode, Permissions};
use crate::replica::Replica;
use crate::tree::{MAX_TTL_MS, NodeStat, Owner};
use crate::txn::{CreateContainerTxn, CreateTtlTxn, CreateTxn, Txn};
use crate::{access, path};

impl Leader {
    pub(super) fn prepare_create(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        create: Create,
    ) -> Result<Txn, ErrorCode> {
        let mode = self.mode(&create)?;
        self.check_session(asked)?;
        let (parent_path, _) = path::split(&create.path).ok_or(ErrorCode::BadArguments)?;
        if create.path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let acl = access::resolve(&create.acl, &asked.ids)?;
        let mut parent = self.outstanding.get(replica, parent_path)?;
        access::check(&parent.acl, Permissions::CREATE, &asked.ids)?;
        let path = match mode.is_sequential {
            true => format!("{}{:010}", create.path, parent.stat.cversion),
            false => create.path.clone(),
        };
        if !path::is_valid(&path) {
            return Err(ErrorCode::BadArguments);
        }
        if self.outstanding.get(replica, &path).is_ok() {
            return Err(ErrorCode::NodeExists);
        }
        if matches!(Owner::from_raw(parent.stat.ephemeral_owner), Owner::Session(_)) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let data_length = create.data.as_ref().map_or(0, Bytes::len);
        self.check_quota(replica, asked, &path, Grown { nodes: 1, from: 0, to: data_length })?;
        let parent_cversion = parent.stat.cversion.wrapping_add(1);
        parent.stat.cversion = parent_cversion;
        parent.stat.pzxid = asked.zxid;
        parent.child_count += 1;
        self.outstanding.set(asked.zxid, parent_path, Some(parent));
        let owner = owner(&create, mode, asked.session_id);
        let stat = NodeStat {
            czxid: asked.zxid,
            mzxid: asked.zxid,
            pzxid: asked.zxid,
            ctime_ms: asked.now.wall_ms,
            mtime_ms: asked.now.wall_ms,
            ephemeral_owner: owner.to_raw(),
            ..NodeStat::default()
        };
        let record = Record { stat, child_count: 0, data_length, acl: acl.as_slice().into() };
        self.outstanding.set(asked.zxid, &path, Some(record));
        let Create { op, data, ttl_ms, .. } = create;
        Ok(match op {
            OpCode::CreateContainer => {
                Txn::CreateContainer(CreateContainerTxn { path, data, acl, parent_cversion })
            }
            OpCode::CreateTtl => {
                Txn::CreateTtl(CreateTtlTxn { path, data, acl, parent_cversion, ttl_ms })
            }
            _ => {
                let is_ephemeral = mode.lifetime == Lifetime::Ephemeral;
                Txn::Create(CreateTxn { path, data, acl, is_ephemeral, parent_cversion })
            }
        })
    }

    fn mode(&self, create: &Create) -> Result<CreateMode, ErrorCode> {
        let mode = CreateMode::from_flags(create.flags).ok_or(ErrorCode::BadArguments)?;
        let has_ttl = mode.lifetime == Lifetime::Ttl;
        if has_ttl && !self.options.extended_types {
            return Err(ErrorCode::Unimplemented);
        }
        let fits =
            if has_ttl { (1..=MAX_TTL_MS).contains(&create.ttl_ms) } else { create.ttl_ms < 0 };
        // Apache's server takes a createTTL without time to live, and stops when it applies it.
        let is_consistent = has_ttl == (create.op == OpCode::CreateTtl);
        if fits && is_consistent { Ok(mode) } else { Err(ErrorCode::BadArguments) }
    }
}

/// The kind of create decides, not the flags: create2 with the flag of a container makes a node
/// that stays.
fn owner(create: &Create, mode: CreateMode, session_id: i64) -> Owner {
    match (create.op, mode.lifetime) {
        (OpCode::CreateContainer, _) => Owner::Container,
        (OpCode::CreateTtl, _) => Owner::Ttl(create.ttl_ms),
        (_, Lifetime::Ephemeral) => Owner::Session(session_id),
        _ => Owner::None,
    }
}
