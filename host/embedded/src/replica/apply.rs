//! Applying txns. It does what it is told: whether a change may happen was decided before.

use bytes::Bytes;

use super::{Applied, Change, ChangeKind, Outcome, Replica};
use crate::protocol::{Acl, ErrorCode, OpCode};
use crate::tree::{Audience, NewNode, Owner};
use crate::txn::{CloseSessionTxn, SubTxn, Txn, TxnHeader};

impl Replica {
    /// Applies a txn. Never fails: what a txn cannot do, because a newer tree has it done
    /// already, is told as the outcome.
    pub fn apply(&mut self, header: &TxnHeader, txn: &Txn) -> Applied {
        let mut changes = Vec::new();
        let outcome = match txn {
            Txn::Multi(txns) => self.apply_multi(header, txns, &mut changes),
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.session_id, *timeout_ms);
                Outcome::Done(header.op)
            }
            Txn::CloseSession(txn) => {
                self.close_session(header, txn, &mut changes);
                Outcome::Done(header.op)
            }
            txn => self.apply_single(header, header.op, txn, &mut changes),
        };
        self.last_zxid = self.last_zxid.max(header.zxid);
        Applied { zxid: header.zxid, outcome, changes }
    }

    fn apply_single(
        &mut self,
        header: &TxnHeader,
        op: OpCode,
        txn: &Txn,
        changes: &mut Vec<Change>,
    ) -> Outcome {
        let TxnHeader { session_id, zxid, time_ms, .. } = *header;
        let result = match txn {
            Txn::Create(txn) => {
                let owner = if txn.is_ephemeral { Owner::Session(session_id) } else { Owner::None };
                let new = new(&txn.path, &txn.data, &txn.acl, owner, txn.parent_cversion);
                self.create(header, op, new, changes)
            }
            Txn::CreateContainer(txn) => {
                let owner = Owner::Container;
                let new = new(&txn.path, &txn.data, &txn.acl, owner, txn.parent_cversion);
                self.create(header, op, new, changes)
            }
            Txn::CreateTtl(txn) => {
                let owner = Owner::Ttl(txn.ttl_ms);
                let new = new(&txn.path, &txn.data, &txn.acl, owner, txn.parent_cversion);
                self.create(header, op, new, changes)
            }
            Txn::Delete(txn) => self.delete(&txn.path, zxid, changes).map(|()| Outcome::Done(op)),
            Txn::SetData(txn) => {
                let set =
                    self.tree.set_data(&txn.path, txn.data.clone(), txn.version, zxid, time_ms);
                set.map(|(stat, acl)| {
                    let audience = Audience { parent: acl.clone(), node: acl };
                    let kind = ChangeKind::DataChanged;
                    changes.push(Change { path: txn.path.clone(), kind, audience });
                    Outcome::Set(op, stat)
                })
            }
            Txn::SetAcl(txn) => {
                let set = self.tree.set_acl(&txn.path, &txn.acl, txn.version);
                set.map(|stat| Outcome::Set(op, stat))
            }
            Txn::CheckVersion(_) => Ok(Outcome::Done(op)),
            Txn::Error(error) => Err(*error),
            // Sessions and further multis do not stand within a multi.
            Txn::CreateSession { .. } | Txn::CloseSession(_) | Txn::Multi(_) => {
                Err(ErrorCode::Marshalling)
            }
        };
        result.unwrap_or_else(Outcome::Failed)
    }

    fn create(
        &mut self,
        header: &TxnHeader,
        op: OpCode,
        new: NewNode<'_>,
        changes: &mut Vec<Change>,
    ) -> Result<Outcome, ErrorCode> {
        let path = new.path.to_owned();
        let (stat, audience) = self.tree.create(new, header.zxid, header.time_ms)?;
        changes.push(Change { path: path.clone(), kind: ChangeKind::Created, audience });
        Ok(Outcome::Created { op, path, stat })
    }

    fn delete(
        &mut self,
        path: &str,
        zxid: i64,
        changes: &mut Vec<Change>,
    ) -> Result<(), ErrorCode> {
        let audience = self.tree.delete(path, zxid)?;
        changes.push(Change { path: path.to_owned(), kind: ChangeKind::Deleted, audience });
        Ok(())
    }

    fn apply_multi(
        &mut self,
        header: &TxnHeader,
        txns: &[SubTxn],
        changes: &mut Vec<Change>,
    ) -> Outcome {
        let failed = txns.iter().position(|sub| matches!(sub.txn, Txn::Error(_)));
        let Some(failed) = failed else {
            let apply = |sub: &SubTxn| self.apply_single(header, sub.op, &sub.txn, changes);
            return Outcome::Multi(txns.iter().map(apply).collect());
        };
        // Those before the one that failed carry no error, those after it are said not to have
        // been tried.
        let outcomes = txns.iter().enumerate().map(|(index, sub)| match &sub.txn {
            Txn::Error(error) => Outcome::Failed(*error),
            _ if index < failed => Outcome::Failed(ErrorCode::Other(0)),
            _ => Outcome::Failed(ErrorCode::RuntimeInconsistency),
        });
        Outcome::Multi(outcomes.collect())
    }

    fn close_session(
        &mut self,
        header: &TxnHeader,
        txn: &CloseSessionTxn,
        changes: &mut Vec<Change>,
    ) {
        let session_id = header.session_id;
        self.sessions.remove(&session_id);
        for path in txn.paths.iter().flatten() {
            // Gone already, if the txn is applied again over a newer tree.
            self.delete(path, header.zxid, changes).ok();
        }
        let left: Vec<String> = self.tree.ephemerals_of(session_id).map(str::to_owned).collect();
        for path in left {
            // It was listed just now, so it is there.
            self.delete(&path, header.zxid, changes).ok();
        }
    }
}

fn new<'a>(
    path: &'a str,
    data: &Option<Bytes>,
    acl: &'a [Acl],
    owner: Owner,
    parent_cversion: i32,
) -> NewNode<'a> {
    NewNode { path, data: data.clone(), acl, owner, parent_cversion }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::{CreateTxn, DeleteTxn};

    fn header(zxid: i64, op: OpCode) -> TxnHeader {
        TxnHeader { session_id: 7, xid: 1, zxid, time_ms: 1000 + zxid, op }
    }

    fn create(path: &str, parent_cversion: i32) -> Txn {
        let acl = Acl::open().to_vec();
        let path = path.to_owned();
        Txn::Create(CreateTxn { path, data: None, acl, is_ephemeral: true, parent_cversion })
    }

    #[test]
    fn txns_applied_again_over_a_newer_tree_change_nothing() {
        let txns = [
            (OpCode::CreateSession, Txn::CreateSession { timeout_ms: 1000 }),
            (OpCode::Create, create("/a", 1)),
            (OpCode::Create, create("/b", 2)),
            (OpCode::Delete, Txn::Delete(DeleteTxn { path: "/a".to_owned() })),
        ];
        let mut replica = Replica::new();
        let apply = |replica: &mut Replica| {
            for (zxid, (op, txn)) in (1..).zip(&txns) {
                replica.apply(&header(zxid, *op), txn);
            }
            let root = replica.tree().stat("/").unwrap();
            (root, replica.tree().stat("/b"), replica.tree().stat("/a"), replica.last_zxid())
        };
        let once = apply(&mut replica);
        assert_eq!((once.0.cversion, once.0.pzxid), (2, 4));
        assert_eq!(apply(&mut replica), once);
    }

    #[test]
    fn a_closed_session_takes_its_ephemerals_at_one_zxid() {
        let mut replica = Replica::new();
        replica.apply(&header(1, OpCode::CreateSession), &Txn::CreateSession { timeout_ms: 1 });
        replica.apply(&header(2, OpCode::Create), &create("/a", 1));
        replica.apply(&header(3, OpCode::Create), &create("/b", 2));
        let paths = Some(vec!["/a".to_owned(), "/b".to_owned()]);
        let close = Txn::CloseSession(CloseSessionTxn { paths });
        let applied = replica.apply(&header(4, OpCode::CloseSession), &close);
        assert_eq!(applied.changes.len(), 2);
        assert_eq!(replica.tree().stat("/").unwrap().pzxid, 4);
        assert!(replica.sessions().is_empty());
    }
}
