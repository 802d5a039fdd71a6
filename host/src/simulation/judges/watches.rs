//! The contract of watches: each event has its cause, comes once, and in the order of the causes.

use std::collections::BTreeMap;

use wok_judge::truth::split;
use wok_judge::{Case, Moment, Violation};

use crate::simulation::history::{Change, HostId, What};

/// An event's kind and path.
type Kind<'a> = (&'a str, &'a str);

/// S1, as far as ZooKeeper promises it. Which of several changes fired a watch cannot be known, so
/// the earliest that fits is taken; of two deletions of one znode each can fire a session's watch
/// once. What happened while a session had no connection it learns in any order.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut causes: BTreeMap<Kind<'_>, Vec<Moment>> = BTreeMap::new();
    let mut heard: BTreeMap<i64, Heard<'_>> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let now = Moment::of(at, entry);
        match &entry.what {
            What::Txn { changes, .. } => {
                for kind in changes.iter().flat_map(kinds) {
                    causes.entry(kind).or_default().push(now);
                }
            }
            What::Event { host, session, event, path } => {
                let causes = causes.get(&(event.as_str(), path.as_str()));
                let causes = causes.map_or(&[][..], Vec::as_slice);
                let heard = heard.entry(*session).or_default();
                if let Some(wrong) = heard.hear(case, *host, now, (event, path), causes) {
                    let sentence = format!("host {host} was told `{event}` of {path}, {wrong}");
                    let last = heard.last.map(|last| last.at);
                    found.push(Violation::new(id, at, sentence).involving(last));
                }
            }
            _ => {}
        }
    }
}

/// What a session was told so far.
#[derive(Debug, Default)]
struct Heard<'a> {
    /// The cause of the newest event.
    last: Option<Moment>,
    /// The causes that are used up, by kind.
    used: BTreeMap<Kind<'a>, usize>,
}

impl<'a> Heard<'a> {
    /// Finds an event's cause, or says what is wrong with it.
    fn hear(
        &mut self,
        case: &Case<'_>,
        host: HostId,
        now: Moment,
        kind: Kind<'a>,
        causes: &[Moment],
    ) -> Option<&'static str> {
        let used = self.used.get(&kind).map_or(0, |used| used.saturating_add(1));
        let unused = causes.get(causes.partition_point(|cause| cause.at < used)..);
        let unused = unused.unwrap_or_default();
        let Some(earliest) = unused.first() else {
            let Some(newest) = causes.last() else {
                return Some("and nothing happened that it could mean");
            };
            // Events of servers before 3.9 do not say how new they are, so a client that reconnects
            // after one may come to a server that is behind it.
            let timeout = case.truth.longest_timeout_us();
            let is_again = case.faults.spared(host, newest.us, now.us, timeout);
            return is_again.then_some("and was told of that before");
        };
        let from = self.last.map_or(0, |last| last.at);
        let in_order = unused.get(unused.partition_point(|cause| cause.at < from)..);
        let cause = *in_order.unwrap_or_default().first().unwrap_or(earliest);
        self.used.insert(kind, cause.at);
        if cause.at >= from {
            self.last = Some(cause);
            return None;
        }
        let timeout = case.truth.longest_timeout_us();
        let is_late = case.faults.spared(host, cause.us, now.us, timeout);
        is_late.then_some("after it was told of something later")
    }
}

/// The events that a change may fire watches with.
fn kinds(change: &Change) -> Vec<Kind<'_>> {
    let of_parent = |path| split(path).map(|(parent, _)| ("children-changed", parent));
    match change {
        // A client that was away while a znode was replaced is told that the data changed.
        Change::Created { path, .. } => {
            let own = [("created", path.as_str()), ("data-changed", path.as_str())];
            own.into_iter().chain(of_parent(path)).collect()
        }
        Change::Deleted { path } => {
            let own = [("deleted", path.as_str())];
            own.into_iter().chain(of_parent(path)).collect()
        }
        Change::DataSet { path, .. } => vec![("data-changed", path)],
        Change::SessionCreated { .. } | Change::SessionClosed { .. } => Vec::new(),
    }
}
