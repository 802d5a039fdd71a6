//! When the simulator was at it: a promise about time begins to count when it is over.

use crate::Moment;
use crate::history::{Entry, FaultKind, HostId, What};

/// How late a host that was stopped may notice what happened meanwhile: it looks at its deadlines
/// ten times a second.
const AWAKE_AFTER_US: u64 = 200_000;

/// What the simulator did, in the order in which it began.
#[derive(Debug, Default)]
pub struct Faults {
    spans: Vec<Span>,
    calm: Option<Moment>,
}

#[derive(Debug)]
struct Span {
    fault: FaultKind,
    /// None strikes all hosts.
    host: Option<HostId>,
    from: u64,
    /// None: it goes on.
    until: Option<u64>,
}

impl Span {
    fn concerns(&self, host: HostId) -> bool {
        self.host.is_none_or(|struck| struck == host)
    }
}

impl Faults {
    /// Of a history.
    pub fn of(history: &[Entry]) -> Self {
        let mut faults = Faults::default();
        for (at, entry) in history.iter().enumerate() {
            match &entry.what {
                What::Fault { fault, host, .. } => faults.spans.push(Span {
                    fault: *fault,
                    host: *host,
                    from: entry.at_us,
                    until: (!lasts(*fault)).then_some(entry.at_us),
                }),
                What::Healed { fault, host } => faults.heal(*fault, *host, entry.at_us),
                What::Calm => {
                    faults.calm.get_or_insert(Moment::of(at, entry));
                    for span in faults.spans.iter_mut().filter(|span| span.until.is_none()) {
                        span.until = Some(entry.at_us);
                    }
                }
                _ => {}
            }
        }
        faults
    }

    fn heal(&mut self, fault: FaultKind, host: Option<HostId>, now: u64) {
        let same = |span: &&mut Span| span.fault == fault && span.host == host;
        if let Some(span) = self.spans.iter_mut().rev().find(same) {
            span.until = Some(now);
        }
    }

    /// When the last fault was over.
    pub fn calm(&self) -> Option<Moment> {
        self.calm
    }

    /// When something that takes `patience` without faults must be done on a host, if it could begin
    /// at `from`. None if a fault goes on.
    pub fn due(&self, host: HostId, from: u64, patience: u64) -> Option<u64> {
        due(self.spans.iter().filter(|span| span.concerns(host)), from, patience)
    }

    /// The same of something that the ensemble does when a host is dead: whatever strikes anybody but the
    /// host's own end is in its way.
    pub fn due_without(&self, host: HostId, from: u64, patience: u64) -> Option<u64> {
        let is_its_end = |span: &Span| span.fault == FaultKind::HostKill && span.concerns(host);
        due(self.spans.iter().filter(|span| !is_its_end(span)), from, patience)
    }

    /// When a host that has to notice something at `from` must have, since a stopped one cannot.
    /// None if it is stopped and does not go on.
    pub fn awake(&self, host: HostId, from: u64) -> Option<u64> {
        let mut awake = from;
        for span in self.spans.iter().filter(|span| span.concerns(host)) {
            if span.fault == FaultKind::Pause && span.from <= awake {
                awake = awake.max(span.until?.saturating_add(AWAKE_AFTER_US));
            }
        }
        Some(awake)
    }

    /// Whether the host's connection stood from `from` to `until`, as far as faults go. A host that
    /// lost it has it back within a session's timeout, or has lost the session.
    pub fn spared(&self, host: HostId, from: u64, until: u64, timeout: u64) -> bool {
        let strikes = |span: &Span| {
            let over = span.until.is_none_or(|over| over.saturating_add(timeout) >= from);
            span.concerns(host) && span.from <= until && over
        };
        !self.spans.iter().any(strikes)
    }

    /// Whether the host was stopped at some moment from `from` to `until`.
    pub fn was_stopped(&self, host: HostId, from: u64, until: u64) -> bool {
        let stops = |span: &Span| {
            let is_meant = span.fault == FaultKind::Pause && span.concerns(host);
            is_meant && span.from <= until && span.until.is_none_or(|over| over >= from)
        };
        self.spans.iter().any(stops)
    }
}

/// When something that takes `patience` without these faults must be done, if it could begin at `from`.
fn due<'a>(spans: impl Iterator<Item = &'a Span>, from: u64, patience: u64) -> Option<u64> {
    let mut begun = from;
    for span in spans {
        if span.from > begun.saturating_add(patience) {
            break;
        }
        begun = begun.max(span.until?);
    }
    Some(begun.saturating_add(patience))
}

/// Whether a fault lasts until it is healed. The others are over at once unless that is said, too.
fn lasts(fault: FaultKind) -> bool {
    match fault {
        FaultKind::Delay
        | FaultKind::HalfOpen
        | FaultKind::Lag
        | FaultKind::LinkCut
        | FaultKind::HostCut
        | FaultKind::ServerCut
        | FaultKind::LeaderCut
        | FaultKind::ServerPause
        | FaultKind::Pause
        | FaultKind::HostKill => true,
        FaultKind::LostBefore
        | FaultKind::LostAfter
        | FaultKind::Expiry
        | FaultKind::Move
        | FaultKind::LeaderChange
        | FaultKind::GuestKill
        | FaultKind::Cancel
        | FaultKind::ClockJump => false,
    }
}
