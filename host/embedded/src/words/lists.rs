//! Lists of connections, sessions and watches.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::date;
use crate::serve::Connection;
use crate::standalone::Standalone;
use crate::time::Now;

/// How much is told of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Short,
    Long,
}

pub(super) fn clients(state: &Standalone, detail: Detail) -> String {
    let mut text = String::new();
    for (_, connection) in state.member().connections() {
        line(&mut text, format_args!(" {}", client(connection, detail)));
    }
    text
}

/// A string takes everything.
fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").ok();
}

fn client(connection: &Connection, detail: Detail) -> String {
    let statistics = connection.statistics();
    let mut text = format!(
        "/{}[{}](queued={},recved={},sent={}",
        connection.address(),
        // Whether it has said hello.
        u8::from(connection.session_id().is_some()),
        connection.outstanding(),
        statistics.received,
        statistics.sent
    );
    if let (Detail::Long, Some(session_id)) = (detail, connection.session_id()) {
        write!(text, ",sid={session_id:#x}").ok();
        if let Some(last) = &statistics.last {
            write!(text, ",lop={}", last.op.abbreviation()).ok();
        }
        let established = connection.established().wall_ms;
        write!(text, ",est={established},to={}", connection.timeout_ms()).ok();
        if let Some(last) = &statistics.last {
            write!(
                text,
                ",lcxid={:#x},lzxid={:#x},lresp={},llat={},minlat={},avglat={},maxlat={}",
                last.xid,
                last.zxid,
                last.at.elapsed_ms,
                last.latency_ms,
                statistics.min_latency_ms,
                statistics.total_latency_ms / statistics.answered.max(1),
                statistics.max_latency_ms
            )
            .ok();
        }
    }
    text + ")"
}

pub(super) fn dump(state: &Standalone, now: Now) -> String {
    let sessions = state.leader().sessions();
    let buckets = sessions.buckets();
    let mut text = "SessionTracker dump:\n".to_owned();
    line(&mut text, format_args!("Session Sets ({})/({}):", buckets.len(), sessions.len()));
    for (expires_ms, ids) in buckets {
        let left = i64::try_from(expires_ms.saturating_sub(now.elapsed_ms)).unwrap_or(i64::MAX);
        let when = date::utc(now.wall_ms.saturating_add(left));
        line(&mut text, format_args!("{} expire at {when}:", ids.len()));
        for id in ids {
            line(&mut text, format_args!("\t{id:#x}"));
        }
    }
    text += "ephemeral nodes dump:\n";
    let ephemerals = state.member().replica().tree().ephemerals();
    line(&mut text, format_args!("Sessions with Ephemerals ({}):", ephemerals.len()));
    for (id, paths) in ephemerals {
        line(&mut text, format_args!("{id:#x}:"));
        for path in paths {
            line(&mut text, format_args!("\t{path}"));
        }
    }
    text += "Connections dump:\n";
    let connections = state.member().connections();
    line(&mut text, format_args!("Connections Sets (1)/({}):", connections.len()));
    for (_, connection) in connections {
        let id = connection.session_id().unwrap_or_default();
        let address = connection.address();
        line(&mut text, format_args!("\tip: /{address} sessionId: {id:#x}"));
    }
    text
}

pub(super) fn watch_summary(state: &Standalone) -> String {
    let watches = &state.member().watches().data;
    format!(
        "{} connections watching {} paths\nTotal watches:{}\n",
        watches.by_connection().len(),
        watches.by_path().len(),
        watches.count()
    )
}

fn session(state: &Standalone, connection: u64) -> i64 {
    state.member().session_of(connection).unwrap_or_default()
}

pub(super) fn watches_by_session(state: &Standalone) -> String {
    let mut text = String::new();
    for (connection, paths) in state.member().watches().data.by_connection() {
        line(&mut text, format_args!("{:#x}", session(state, connection)));
        for path in paths {
            line(&mut text, format_args!("\t{path}"));
        }
    }
    text + "\n"
}

pub(super) fn watches_by_path(state: &Standalone) -> String {
    let mut text = String::new();
    for (path, connections) in state.member().watches().data.by_path() {
        line(&mut text, format_args!("{path}"));
        let sessions: BTreeSet<i64> = connections.map(|id| session(state, id)).collect();
        for id in sessions {
            line(&mut text, format_args!("\t{id:#x}"));
        }
    }
    text + "\n"
}
