//! Txns as bytes.

use super::{
    CheckVersionTxn, CloseSessionTxn, CreateContainerTxn, CreateTtlTxn, CreateTxn, DeleteTxn,
    SetAclTxn, SetDataTxn, SubTxn, Txn,
};
use crate::jute::{Malformed, Reader, Writer};
use crate::protocol::{Acl, ErrorCode, OpCode};

impl Txn {
    /// Appends the record, without header.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Txn::Create(txn) => {
                node(writer, &txn.path, txn.data.as_deref(), &txn.acl);
                writer.bool(txn.is_ephemeral);
                writer.int(txn.parent_cversion);
            }
            Txn::CreateContainer(txn) => {
                node(writer, &txn.path, txn.data.as_deref(), &txn.acl);
                writer.int(txn.parent_cversion);
            }
            Txn::CreateTtl(txn) => {
                node(writer, &txn.path, txn.data.as_deref(), &txn.acl);
                writer.int(txn.parent_cversion);
                writer.long(txn.ttl_ms);
            }
            Txn::Delete(txn) => writer.string(&txn.path),
            Txn::SetData(txn) => {
                writer.string(&txn.path);
                writer.slice(txn.data.as_deref());
                writer.int(txn.version);
            }
            Txn::SetAcl(txn) => {
                writer.string(&txn.path);
                Acl::encode_list(&txn.acl, writer);
                writer.int(txn.version);
            }
            Txn::CheckVersion(txn) => {
                writer.string(&txn.path);
                writer.int(txn.version);
            }
            Txn::CreateSession { timeout_ms } => writer.int(*timeout_ms),
            Txn::CloseSession(CloseSessionTxn { paths }) => {
                if let Some(paths) = paths {
                    writer.list(paths.iter(), |writer, path| writer.string(path));
                }
            }
            Txn::Error(code) => writer.int(code.code()),
            Txn::Multi(txns) => writer.list(txns.iter(), |writer, sub| {
                writer.int(sub.op.code());
                let mut inner = Writer::new();
                sub.txn.encode(&mut inner);
                writer.slice(Some(&inner.finish()));
            }),
        }
    }

    /// Reads the record of a txn of this kind.
    ///
    /// # Errors
    /// If the input is no such record, or there are no txns of this kind.
    pub fn decode(op: OpCode, reader: &mut Reader<'_>) -> Result<Txn, Malformed> {
        if op != OpCode::Multi {
            return decode_single(op, reader);
        }
        let sub = |reader: &mut Reader<'_>| {
            let code = reader.int()?;
            let op = OpCode::from_code(code).ok_or(Malformed::Kind(code))?;
            let record = reader.slice()?.ok_or(Malformed::Null)?;
            // Not `decode`: a multi within a multi would let bytes choose the depth of the stack.
            Ok(SubTxn { op, txn: decode_single(op, &mut Reader::new(record))? })
        };
        Ok(Txn::Multi(reader.list(sub)?))
    }
}

fn node(writer: &mut Writer, path: &str, data: Option<&[u8]>, acl: &[Acl]) {
    writer.string(path);
    writer.slice(data);
    Acl::encode_list(acl, writer);
}

fn decode_single(op: OpCode, reader: &mut Reader<'_>) -> Result<Txn, Malformed> {
    Ok(match op {
        OpCode::Create | OpCode::Create2 => Txn::Create(CreateTxn {
            path: reader.string()?,
            data: reader.buffer()?,
            acl: Acl::decode_list(reader)?,
            is_ephemeral: reader.bool()?,
            parent_cversion: reader.int()?,
        }),
        OpCode::CreateContainer => Txn::CreateContainer(CreateContainerTxn {
            path: reader.string()?,
            data: reader.buffer()?,
            acl: Acl::decode_list(reader)?,
            parent_cversion: reader.int()?,
        }),
        OpCode::CreateTtl => Txn::CreateTtl(CreateTtlTxn {
            path: reader.string()?,
            data: reader.buffer()?,
            acl: Acl::decode_list(reader)?,
            parent_cversion: reader.int()?,
            ttl_ms: reader.long()?,
        }),
        OpCode::Delete | OpCode::DeleteContainer => {
            Txn::Delete(DeleteTxn { path: reader.string()? })
        }
        OpCode::SetData | OpCode::Reconfig => Txn::SetData(SetDataTxn {
            path: reader.string()?,
            data: reader.buffer()?,
            version: reader.int()?,
        }),
        OpCode::SetAcl => Txn::SetAcl(SetAclTxn {
            path: reader.string()?,
            acl: Acl::decode_list(reader)?,
            version: reader.int()?,
        }),
        OpCode::Check => {
            Txn::CheckVersion(CheckVersionTxn { path: reader.string()?, version: reader.int()? })
        }
        OpCode::CreateSession => Txn::CreateSession { timeout_ms: reader.int()? },
        OpCode::CloseSession => {
            let paths = if reader.is_empty() { None } else { Some(reader.list(Reader::string)?) };
            Txn::CloseSession(CloseSessionTxn { paths })
        }
        OpCode::Error => Txn::Error(ErrorCode::from_code(reader.int()?)),
        other => return Err(Malformed::Kind(other.code())),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::txn::TxnHeader;

    fn acl() -> Vec<Acl> {
        Acl::open().to_vec()
    }

    fn path() -> String {
        "/a".to_owned()
    }

    fn every_kind() -> Vec<(OpCode, Txn)> {
        let data = Some(bytes::Bytes::from_static(b"x"));
        let is_ephemeral = true;
        let create = CreateTxn { path: path(), data, acl: acl(), is_ephemeral, parent_cversion: 3 };
        let single = vec![
            (OpCode::Create, Txn::Create(create.clone())),
            (OpCode::Create2, Txn::Create(create)),
            (
                OpCode::CreateContainer,
                Txn::CreateContainer(CreateContainerTxn {
                    path: path(),
                    data: None,
                    acl: acl(),
                    parent_cversion: -1,
                }),
            ),
            (
                OpCode::CreateTtl,
                Txn::CreateTtl(CreateTtlTxn {
                    path: path(),
                    data: None,
                    acl: acl(),
                    parent_cversion: 1,
                    ttl_ms: 9,
                }),
            ),
            (OpCode::Delete, Txn::Delete(DeleteTxn { path: path() })),
            (OpCode::DeleteContainer, Txn::Delete(DeleteTxn { path: path() })),
            (OpCode::SetData, Txn::SetData(SetDataTxn { path: path(), data: None, version: 1 })),
            (OpCode::SetAcl, Txn::SetAcl(SetAclTxn { path: path(), acl: acl(), version: 1 })),
            (OpCode::Check, Txn::CheckVersion(CheckVersionTxn { path: path(), version: 1 })),
            (OpCode::CreateSession, Txn::CreateSession { timeout_ms: 5 }),
            (OpCode::CloseSession, Txn::CloseSession(CloseSessionTxn { paths: None })),
            (
                OpCode::CloseSession,
                Txn::CloseSession(CloseSessionTxn { paths: Some(vec![path()]) }),
            ),
            (OpCode::Error, Txn::Error(ErrorCode::NoNode)),
        ];
        let multi = single.iter().map(|(op, txn)| SubTxn { op: *op, txn: txn.clone() }).collect();
        single.into_iter().chain([(OpCode::Multi, Txn::Multi(multi))]).collect()
    }

    #[test]
    fn every_txn_comes_back_as_itself() {
        for (op, txn) in every_kind() {
            let mut writer = Writer::new();
            txn.encode(&mut writer);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            assert_eq!(Txn::decode(op, &mut reader).as_ref(), Ok(&txn));
            assert!(reader.is_empty(), "{txn:?}");
        }
    }

    #[test]
    fn a_multi_within_a_multi_is_refused() {
        let inner = SubTxn { op: OpCode::Multi, txn: Txn::Multi(Vec::new()) };
        let mut writer = Writer::new();
        Txn::Multi(vec![inner]).encode(&mut writer);
        let decoded = Txn::decode(OpCode::Multi, &mut Reader::new(&writer.finish()));
        assert_eq!(decoded, Err(Malformed::Kind(OpCode::Multi.code())));
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(
            op in -12..25i32,
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut reader = Reader::new(&bytes);
            TxnHeader::decode(&mut reader.clone()).ok();
            if let Some(op) = OpCode::from_code(op) {
                Txn::decode(op, &mut reader).ok();
            }
        }
    }
}
