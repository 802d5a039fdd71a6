//! Every request of a small run, and everything that can happen to it.

use std::collections::BTreeMap;

use super::coverage::Coverage;
use super::history::{FaultKind, HostId, What};
use super::plan::{Fault, Plan, When};
use super::subject::Subject;
use super::verdict::Verdict;
use super::workload;
use super::world::PlanError;

/// What happens to each.
const FAULTS: [FaultKind; 4] =
    [FaultKind::LostBefore, FaultKind::LostAfter, FaultKind::Expiry, FaultKind::Cancel];

/// What came of all of them.
#[derive(Debug, Default)]
pub struct Exhausted {
    /// Runs.
    pub runs: u64,
    /// Which faults struck what.
    pub coverage: Coverage,
    /// The first run that broke an invariant.
    pub failure: Option<Verdict>,
}

/// Runs a plan without faults, and then once for every request of it and every fault; until one
/// breaks an invariant.
///
/// # Errors
/// The plan does not fit the module.
pub fn exhaust(
    subject: &Subject,
    plan: Plan,
    mut progress: impl FnMut(u64, u64),
) -> Result<Exhausted, PlanError> {
    let calm = Plan { faults: Vec::new(), ..plan };
    let begin = Verdict::of(subject, calm.clone())?;
    let mut requests: BTreeMap<HostId, u64> = BTreeMap::new();
    for entry in &begin.history {
        if let What::Request { host, .. } = entry.what {
            *requests.entry(host).or_default() += 1;
        }
    }
    let cases = requests.iter().flat_map(|(host, count)| {
        let each = move |nth| FAULTS.map(|fault| (*host, nth, fault));
        (1..=*count).flat_map(each)
    });
    let all = requests.values().sum::<u64>() * FAULTS.len() as u64;
    let mut exhausted = Exhausted::default();
    if !begin.violations.is_empty() {
        return Ok(Exhausted { failure: Some(begin), runs: 1, ..exhausted });
    }
    for (host, nth, fault) in cases {
        let fault = Fault { fault, when: When::Request { nth }, host, ms: 0 };
        let verdict = Verdict::of(subject, Plan { faults: vec![fault], ..calm.clone() })?;
        exhausted.runs += 1;
        exhausted.coverage.add(verdict.coverage.clone());
        progress(exhausted.runs, all);
        if !verdict.violations.is_empty() {
            exhausted.failure = Some(verdict);
            return Ok(exhausted);
        }
    }
    Ok(exhausted)
}

/// A small plan of a seed: its first applications, one on each host, and the first of what they do.
pub fn small(subject: &Subject, seed: u64, applications: usize, steps: usize) -> Plan {
    let mut plan = workload::plan(subject, seed);
    plan.applications.truncate(applications);
    for application in &mut plan.applications {
        application.steps.truncate(steps);
    }
    plan
}
