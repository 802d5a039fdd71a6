//! Snapshots and logs that nobody wrote, or not like that, and a server that begins with them.

use std::io::Cursor;
use std::path::Path;

use adler2::adler32_slice;
use wok_embedded::ServerVersion;
use wok_embedded::files::{LogReader, Snapshot, replay};
use wok_embedded::replica::Replica;

use super::driven::{Driven, Kind, LOG_HEADER};
use super::input::Input;

/// What a snapshot begins with: `ZKSN`, version 2, database -1.
const SNAPSHOT_HEADER: [u8; 16] = *b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";

/// A create of `/a-` with null data, up to its list, and the list that is open to all.
const CREATE: &[u8] = b"\0\0\0\x01\0\0\0\x01\0\0\0\x03/a-\xff\xff\xff\xff";
const OPEN: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";

/// Checksum and length of a log's entry.
const HEAD: usize = 12;

/// Plays an input: a byte of options, the length of a snapshot or zero, the zxid in its name, the
/// snapshot, and the log. Options may have the headers put in front and the checksums made right,
/// which no fuzzer would guess.
///
/// # Panics
/// If a reader does, or the server that begins with what they gave.
pub fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let (Some(options), Some(length), Some(zxid)) = (input.byte(), input.short(), input.long())
    else {
        return;
    };
    let is_set = |bit: u8| options & 1 << bit != 0;
    let header = |header: [u8; 16]| if is_set(0) { header.to_vec() } else { Vec::new() };
    let mut snapshot = header(SNAPSHOT_HEADER);
    snapshot.extend_from_slice(input.bytes(length.into()));
    if is_set(1) {
        seal_snapshot(&mut snapshot);
    }
    let mut log = header(LOG_HEADER);
    log.extend_from_slice(input.rest());
    if is_set(2) {
        seal_log(&mut log);
    }
    let replica = match length {
        0 => Replica::new(),
        // No name has a negative zxid.
        _ => match read_snapshot(&snapshot, zxid & i64::MAX) {
            Some(replica) => replica,
            None => return,
        },
    };
    if let Some(replica) = read_log(&log, replica) {
        serve(replica);
    }
}

fn read_snapshot(bytes: &[u8], zxid: i64) -> Option<Replica> {
    let length = u64::try_from(bytes.len()).ok()?;
    let read = Snapshot::read(Path::new("snapshot"), zxid, Cursor::new(bytes), length);
    read.ok().map(|snapshot| snapshot.replica)
}

fn read_log(bytes: &[u8], mut replica: Replica) -> Option<Replica> {
    let length = u64::try_from(bytes.len()).ok()?;
    let mut log = LogReader::new(Path::new("log"), Cursor::new(bytes), length).ok()?;
    let replayed = replay(&mut log, &mut replica).ok()?;
    if let Some(torn) = &replayed.torn {
        assert!(torn.offset + torn.bytes <= length, "{torn:?}");
    }
    Some(replica)
}

/// What every server does sooner or later: clients come, sessions end, nodes are swept.
fn serve(replica: Replica) {
    let kind = Kind {
        version: ServerVersion::V3_9,
        extended_types: true,
        never_used_container_ms: Some(1_000),
        enforce_quota: true,
    };
    let mut server = Driven::start(kind, replica);
    server.settle();
    server.greet(0);
    // Sequential. Then getChildren2 and getAllChildrenNumber of the root.
    server.frame(0, &[CREATE, OPEN, b"\0\0\0\x02"].concat());
    server.frame(0, b"\0\0\0\x02\0\0\0\x0c\0\0\0\x01/\x01");
    server.frame(0, b"\0\0\0\x03\0\0\0\x68\0\0\0\x01/");
    server.settle();
    for ms in [1_000, 20_000, u32::MAX] {
        server.wait(ms);
        server.settle();
        server.sweep();
        server.settle();
    }
}

/// Ends a snapshot as its writer does: the root's other name, the checksum, the name again.
fn seal_snapshot(snapshot: &mut Vec<u8>) {
    const END: &[u8] = b"\0\0\0\x01/";
    snapshot.extend_from_slice(END);
    let sum = adler32_slice(snapshot);
    snapshot.extend_from_slice(&u64::from(sum).to_be_bytes());
    snapshot.extend_from_slice(END);
}

/// Makes the checksum and the last byte right of every entry that fits the log.
fn seal_log(log: &mut [u8]) {
    let mut rest = log.get_mut(LOG_HEADER.len()..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_first_chunk_mut::<HEAD>() {
        let Some(length) = head.last_chunk::<4>().map(|length| u32::from_be_bytes(*length)) else {
            return;
        };
        let split = usize::try_from(length).ok().and_then(|at| behind.split_at_mut_checked(at));
        let Some((record, behind)) = split else { return };
        let Some((end, behind)) = behind.split_first_mut() else { return };
        let sum = u64::from(adler32_slice(record)).to_be_bytes();
        head.iter_mut().zip(sum).for_each(|(to, from)| *to = from);
        *end = b'B';
        rest = behind;
    }
}
