//! Answers to writes.

use bytes::Bytes;

use super::Member;
use super::connection::Wait;
use crate::jute::Writer;
use crate::protocol::{ErrorCode, OpCode, Reply};
use crate::replica::Outcome;
use crate::time::Now;
use crate::txn::TxnHeader;

impl Member {
    /// The txn is the one that the connection's oldest request waits for: requests of a
    /// connection reach the leader in order, and come back in order.
    pub(super) fn answer_write(
        &mut self,
        connection: u64,
        header: &TxnHeader,
        outcome: &Outcome,
        now: Now,
    ) {
        if header.op == OpCode::CreateSession {
            return self.welcome(connection, now);
        }
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        let is_asker = |pending: &mut super::connection::Pending| {
            matches!(pending.wait, Wait::Commit) && pending.xid == header.xid
        };
        let Some(pending) = peer.pop_if(is_asker) else { return };
        // The session has gone to another server: this connection is its past.
        if has_moved(outcome) {
            return self.close(connection);
        }
        // As Apache ZooKeeper, which knows no answer to a check that holds by itself.
        if *outcome != Outcome::Done(OpCode::Check) {
            self.note(connection, &pending, header.zxid, now);
            self.deliver(connection, frame(header, outcome));
        }
        self.advance(connection, now);
    }
}

/// Whether it was refused, or a part of it, because the session is at another server.
fn has_moved(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(error) => *error == ErrorCode::SessionMoved,
        Outcome::Multi(parts) => parts.iter().any(has_moved),
        Outcome::Created { .. } | Outcome::Set(..) | Outcome::Done(_) => false,
    }
}

fn frame(header: &TxnHeader, outcome: &Outcome) -> Bytes {
    if let Outcome::Failed(error) = outcome {
        return Reply::error(header.xid, header.zxid, *error);
    }
    let mut reply = Reply::ok(header.xid, header.zxid);
    match outcome {
        Outcome::Multi(outcomes) => {
            for outcome in outcomes {
                multi_result(&mut reply.body, outcome);
            }
            multi_header(&mut reply.body, -1, true, -1);
        }
        outcome => body(&mut reply.body, outcome),
    }
    reply.finish()
}

fn body(writer: &mut Writer, outcome: &Outcome) {
    match outcome {
        Outcome::Created { op, path, stat } => {
            writer.string(path);
            if *op != OpCode::Create {
                stat.encode(writer);
            }
        }
        Outcome::Set(_, stat) => stat.encode(writer),
        Outcome::Done(_) | Outcome::Failed(_) | Outcome::Multi(_) => {}
    }
}

fn multi_result(writer: &mut Writer, outcome: &Outcome) {
    match outcome {
        Outcome::Created { op: OpCode::Create, .. } => {
            multi_header(writer, OpCode::Create.code(), false, 0);
        }
        // Creates that tell the node's facts are all told as one kind.
        Outcome::Created { .. } => multi_header(writer, OpCode::Create2.code(), false, 0),
        Outcome::Set(op, _) | Outcome::Done(op) => multi_header(writer, op.code(), false, 0),
        Outcome::Failed(error) => multi_error(writer, *error),
        Outcome::Multi(_) => {}
    }
    body(writer, outcome);
}

/// A result's header within the answer to a multi or a multiRead.
pub(super) fn multi_header(writer: &mut Writer, op: i32, is_done: bool, error: i32) {
    writer.int(op);
    writer.bool(is_done);
    writer.int(error);
}

/// A result that is an error.
pub(super) fn multi_error(writer: &mut Writer, error: ErrorCode) {
    multi_header(writer, OpCode::Error.code(), false, error.code());
    writer.int(error.code());
}
