//! What a server tells of the data directory that it begins with.

use std::path::Path;

use serde_json::json;
use wok_embedded::files::{Recovery, TornTail};

use super::super::output::Printer;

/// Tells what was recovered, and first whatever of it is not as it was left.
pub(super) fn tell(directory: &Path, recovery: &Recovery, printer: &Printer) {
    for path in &recovery.unreadable {
        printer.event(
            "unreadable",
            &[("file", json!(path.display().to_string()))],
            &format!("{} cannot be read: an older snapshot takes its place", path.display()),
        );
    }
    for TornTail { path, offset, bytes } in &recovery.torn {
        let file = path.display().to_string();
        printer.event(
            "torn",
            &[("file", json!(file)), ("offset", json!(offset)), ("bytes", json!(bytes))],
            &format!(
                "{file}: cut at byte {offset}, where {bytes} bytes of a txn were never finished; \
                 nobody was told that it happened"
            ),
        );
    }
    let Recovery { snapshot, replayed, nodes, sessions, last_zxid, .. } = recovery;
    let snapshot = snapshot.as_ref().map(|path| path.display().to_string());
    let directory = directory.display().to_string();
    let text = match &snapshot {
        None if *replayed == 0 => format!("{directory} has no data yet"),
        from => format!(
            "recovered {nodes} nodes and {sessions} sessions up to zxid {last_zxid:#x}: \
             {replayed} txns of the log after {}",
            from.as_deref().unwrap_or("nothing"),
        ),
    };
    printer.event(
        "recovered",
        &[
            ("directory", json!(directory)),
            ("snapshot", json!(snapshot)),
            ("replayed", json!(replayed)),
            ("nodes", json!(nodes)),
            ("sessions", json!(sessions)),
            ("last-zxid", json!(last_zxid)),
        ],
        &text,
    );
    if recovery.ttls > 0 {
        let text = format!(
            "{} of them have a time to live: Apache ZooKeeper drops those when it starts here, \
             unless it has `extendedTypesEnabled=true`; without --extended-types I create no more",
            recovery.ttls
        );
        printer.event("nodes-with-ttl", &[("nodes", json!(recovery.ttls))], &text);
    }
    if let Some(why) = &recovery.snapshot_failure {
        let text = format!("no snapshot could be written: {why}; the logs are kept instead");
        printer.event("snapshot-failed", &[("message", json!(why))], &text);
    }
}
