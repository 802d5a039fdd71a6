//! Which faults struck which host calls: what a green run is worth.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Entry, FaultKind, Outcome, Told, What};

/// How often a fault struck a host call in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    cells: BTreeMap<(FaultKind, String), u64>,
    calls: BTreeSet<String>,
}

/// What makes a run count.
const HOSTS: usize = 3;
const PARTICIPANTS: usize = 6;
const OPERATIONS: usize = 30;
const SUCCEEDED: usize = 10;
const STRUCK: usize = 2;

/// What happened in a run, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Hosts that had a session.
    pub hosts: usize,
    /// Participants that joined.
    pub participants: usize,
    /// Operations that were called.
    pub operations: usize,
    /// Those of them that were answered, and not by an error.
    pub succeeded: usize,
    /// Claims that were granted.
    pub grants: usize,
    /// Faults that struck a host call in flight.
    pub struck: usize,
}

impl Tally {
    /// Of a history.
    pub fn of(history: &[Entry]) -> Self {
        let mut hosts = BTreeSet::new();
        let mut tally = Tally::default();
        for entry in history {
            match &entry.what {
                What::SessionOpened { host, .. } => drop(hosts.insert(*host)),
                What::Joined { .. } => tally.participants += 1,
                What::Invoked { .. } => tally.operations += 1,
                What::Returned { outcome: Outcome::Ok { .. }, .. } => tally.succeeded += 1,
                What::Told { notice: Told::Held { .. }, .. } => tally.grants += 1,
                // A clock that jumps is noticed by nobody who keeps the rules.
                What::Fault { fault, struck, .. }
                    if *fault != FaultKind::ClockJump && !struck.is_empty() =>
                {
                    tally.struck += 1;
                }
                _ => {}
            }
        }
        tally.hosts = hosts.len();
        tally
    }

    /// Whether the run counts: enough took part, enough of what they asked for was done, and enough was
    /// done to them.
    pub fn counts(&self) -> bool {
        self.hosts >= HOSTS
            && self.participants >= PARTICIPANTS
            && self.operations >= OPERATIONS
            && self.succeeded >= SUCCEEDED
            && self.struck >= STRUCK
    }
}

impl Coverage {
    /// Of a history.
    pub fn of(history: &[Entry]) -> Self {
        let mut coverage = Coverage::default();
        for entry in history {
            match &entry.what {
                What::Fault { fault, struck, .. } => {
                    for call in struck {
                        *coverage.cells.entry((*fault, call.clone())).or_default() += 1;
                    }
                }
                What::HostCall { name, .. } if !coverage.calls.contains(name) => {
                    coverage.calls.insert(name.clone());
                }
                _ => {}
            }
        }
        coverage
    }

    /// Adds another run's.
    pub fn add(&mut self, other: Coverage) {
        for (cell, hits) in other.cells {
            *self.cells.entry(cell).or_default() += hits;
        }
        self.calls.extend(other.calls);
    }

    /// The host calls that were made, the columns.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = &str> {
        self.calls.iter().map(String::as_str)
    }

    /// How often a fault struck a host call.
    pub fn hits(&self, fault: FaultKind, call: &str) -> u64 {
        self.cells.get(&(fault, call.to_owned())).copied().unwrap_or(0)
    }

    /// The cell that was hit least.
    pub fn least(&self) -> Option<(FaultKind, &str, u64)> {
        let cells = FaultKind::ALL
            .into_iter()
            .flat_map(|fault| self.calls().map(move |call| (fault, call, self.hits(fault, call))));
        cells.min_by_key(|(_, _, hits)| *hits)
    }

    /// The table, for people.
    pub fn table(&self) -> String {
        let width = |call: &str| call.len().max(7);
        let mut table = format!("{:<14}", "");
        for call in self.calls() {
            table.push_str(&format!("  {call:>width$}", width = width(call)));
        }
        for fault in FaultKind::ALL {
            table.push_str(&format!("\n{:<14}", fault.name()));
            for call in self.calls() {
                let hits = self.hits(fault, call);
                table.push_str(&format!("  {hits:>width$}", width = width(call)));
            }
        }
        table
    }
}
