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
