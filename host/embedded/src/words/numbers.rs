//! `srvr`, `stat` and `mntr`.

use std::fmt::Write as _;

use super::Settings;
use crate::standalone::Standalone;
use crate::time::Now;

pub(super) fn srvr(state: &Standalone, settings: &Settings) -> String {
    format!("Zookeeper version: {}\n{}", settings.version_text(), facts(state))
}

pub(super) fn facts(state: &Standalone) -> String {
    let member = state.member();
    let statistics = member.statistics();
    format!(
        "Latency min/avg/max: {}/{}/{}\n\
         Received: {}\n\
         Sent: {}\n\
         Connections: {}\n\
         Outstanding: {}\n\
         Zxid: {:#x}\n\
         Mode: standalone\n\
         Node count: {}\n",
        statistics.min_latency_ms,
        mean(statistics.mean_latency_ms()),
        statistics.max_latency_ms,
        statistics.received,
        statistics.sent,
        member.connections().len(),
        outstanding(state),
        member.replica().last_zxid(),
        member.replica().tree().count()
    )
}

fn outstanding(state: &Standalone) -> usize {
    state.member().connections().map(|(_, connection)| connection.outstanding()).sum()
}

/// As Java prints a number that is not whole, or is.
fn mean(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { format!("{value}") }
}

/// The counters that monitoring looks at. Apache's server prints some 400 more, of parts that
/// are not here.
pub(super) fn mntr(state: &Standalone, settings: &Settings, now: Now) -> String {
    let member = state.member();
    let tree = member.replica().tree();
    let statistics = member.statistics();
    let ephemerals: usize = tree.ephemerals().map(|(_, paths)| paths.len()).sum();
    let facts = [
        ("version", settings.version_text()),
        ("server_state", "standalone".to_owned()),
        ("ephemerals_count", ephemerals.to_string()),
        ("num_alive_connections", member.connections().len().to_string()),
        ("avg_latency", mean(statistics.mean_latency_ms())),
        ("outstanding_requests", outstanding(state).to_string()),
        ("znode_count", tree.count().to_string()),
        ("global_sessions", state.leader().sessions().len().to_string()),
        ("packets_sent", statistics.sent.to_string()),
        ("packets_received", statistics.received.to_string()),
        ("watch_count", member.watches().count().to_string()),
        ("min_latency", statistics.min_latency_ms.to_string()),
        ("max_latency", statistics.max_latency_ms.to_string()),
        ("approximate_data_size", tree.data_size().to_string()),
        ("local_sessions", "0".to_owned()),
        ("uptime", now.elapsed_ms.saturating_sub(settings.started.elapsed_ms).to_string()),
    ];
    let mut text = String::new();
    for (name, value) in facts {
        // A string takes everything.
        writeln!(text, "zk_{name}\t{value}").ok();
    }
    text
}
