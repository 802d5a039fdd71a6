//! What a module does while nothing is done to it.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Told, What};
use super::plan::Plan;
use super::subject::Subject;
use super::{workload, world};

/// Runs without faults, to see which host calls a module makes.
const LESSONS: u64 = 16;

/// What a module does while nothing is done to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Survey {
    /// The host calls that it makes, and how often on each host.
    pub(super) host_calls: Vec<(String, u64)>,
    /// The operations that were left without an answer.
    pub(super) blocking: BTreeSet<String>,
    /// Whether anything was claimed.
    pub(super) claims: bool,
}

impl Survey {
    /// Of a module that has been surveyed by nobody yet.
    pub(super) fn of(subject: &Subject) -> Self {
        let mut made: BTreeMap<String, u64> = BTreeMap::new();
        let mut blocking = BTreeSet::new();
        let mut hosts = 0;
        let mut claims = false;
        for seed in 0..LESSONS {
            let plan = workload::plan(subject, seed);
            let undisturbed = Plan { faults: Vec::new(), foreign: Vec::new(), ..plan };
            hosts += u64::from(undisturbed.hosts);
            // What cannot be run is told when it is asked for.
            let history =
                world::run(subject, &undisturbed).map_or_else(|_| Vec::new(), |run| run.history);
            let mut called = BTreeMap::new();
            for entry in history {
                match entry.what {
                    What::HostCall { name, .. } => *made.entry(name).or_default() += 1,
                    What::Told { notice: Told::Held { .. }, .. } => claims = true,
                    What::Invoked { call, operation, .. } => drop(called.insert(call, operation)),
                    What::Final { blocked, .. } => {
                        blocking.extend(blocked.iter().filter_map(|call| called.remove(call)));
                    }
                    _ => {}
                }
            }
        }
        let average = |(name, made): (String, u64)| (name, made.div_ceil(hosts.max(1)));
        claims |= made.contains_key("claim") || made.contains_key("claim-all");
        Survey { host_calls: made.into_iter().map(average).collect(), blocking, claims }
    }
}
