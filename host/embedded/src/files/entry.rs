//! One txn in a log: checksum, length, the txn, and a byte that ends it.

use adler2::Adler32;

use crate::jute::{Malformed, Reader, Writer};
use crate::txn::{Txn, TxnHeader};

/// What our logs begin with: `ZKLG`, version 2, and a database's number. No server looks at that
/// number; ours says that the log keeps [`ROOM`].
pub(super) const LOG_HEADER: [u8; 16] = *b"ZKLG\0\0\0\x02wok\0room";
/// So many zeros follow the last txn of our logs, on disk before that txn is written: a log that ends
/// sooner has lost its end. Readers take them for the head of a txn that was never begun.
pub(super) const ROOM: u64 = 16;
/// Checksum and length.
pub(super) const HEAD: usize = 12;
/// What ends an entry.
pub(super) const END: u8 = b'B';
/// No header of a txn is shorter.
pub(super) const LEAST: usize = 32;
/// The highest zxid a file may have: a server that goes on from there has a whole epoch left to
/// count. No ensemble has had that many leaders.
pub(super) const HIGHEST_ZXID: i64 = i64::MAX - (1 << 32);
/// Apache ZooKeeper may add a digest of the whole tree: a version and a number.
const DIGEST: usize = 12;

/// Appends a txn as the log has it. The digest of the tree that Apache ZooKeeper adds is left
/// out: it reads logs from before there was one, and does not compare what is not there.
pub fn encode_entry(header: &TxnHeader, txn: &Txn, log: &mut Vec<u8>) {
    let mut writer = Writer::new();
    header.encode(&mut writer);
    txn.encode(&mut writer);
    let record = writer.finish();
    log.extend_from_slice(&i64::from(checksum(&record)).to_be_bytes());
    // A request comes in one frame, and what its `auth` stand for is limited; the nodes that a
    // session takes along are in memory, one by one. All of it is far below 2 GiB.
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
    log.extend_from_slice(&length.to_be_bytes());
    log.extend_from_slice(&record);
    log.push(END);
}

/// Reads what [`encode_entry`] wrote between length and end, or Apache ZooKeeper did.
pub(super) fn decode_record(record: &[u8]) -> Result<(TxnHeader, Txn), Malformed> {
    let mut reader = Reader::new(record);
    let header = TxnHeader::decode(&mut reader)?;
    let txn = Txn::decode(header.op, &mut reader)?;
    match reader.rest().len() {
        0 | DIGEST => Ok((header, txn)),
        rest => Err(Malformed::Length(i32::try_from(rest).unwrap_or(i32::MAX))),
    }
}

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut adler = Adler32::new();
    adler.write_slice(bytes);
    adler.checksum()
}

/// Whether a whole entry of a later zxid begins anywhere in these bytes.
pub(super) fn has_entry(bytes: &[u8], after_zxid: i64) -> bool {
    (0..bytes.len()).any(|at| {
        bytes.get(at..).is_some_and(|rest| is_entry(rest, after_zxid).unwrap_or_default())
    })
}

fn is_entry(bytes: &[u8], after_zxid: i64) -> Option<bool> {
    let (sum, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    if length < LEAST || *rest.get(length)? != END {
        return Some(false);
    }
    let record = rest.get(..length)?;
    // Session and xid come before it.
    let zxid = i64::from_be_bytes(*record.get(12..)?.first_chunk()?);
    Some(zxid > after_zxid && i64::from_be_bytes(*sum) == i64::from(checksum(record)))
}
