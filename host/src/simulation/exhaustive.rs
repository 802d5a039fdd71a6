//! Every request of a small run, every wait in it, and everything that can happen to them.

use std::collections::BTreeMap;

use super::called::Called;
use super::coverage::Coverage;
use super::history::{Entry, FaultKind, HostId, What};
use super::plan::{Fault, Plan, Way, When};
use super::subject::Subject;
use super::verdict::{Verdict, VerdictError};
use super::workload;

/// What happens to each.
const FAULTS: [FaultKind; 4] =
    [FaultKind::LostBefore, FaultKind::LostAfter, FaultKind::Expiry, FaultKind::Cancel];

/// What came of all of them.
#[derive(Debug, Default)]
pub struct Exhausted {
    /// Runs with a fault.
    pub runs: u64,
    /// Those in which it came: there was something for it to strike.
    pub struck: u64,
    /// Claims that were granted.
    pub grants: u64,
    /// Which faults struck what.
    pub coverage: Coverage,
    /// Which operations were called, and how that went.
    pub called: Called,
    /// The first run that broke an invariant.
    pub failure: Option<Verdict>,
}

/// Runs a plan without faults, and then once for every fault at every request and every wait of it;
/// until one breaks an invariant.
///
/// # Errors
/// The plan does not fit the module, or the judge fails.
pub fn exhaust(
    subject: &Subject,
    plan: Plan,
    mut progress: impl FnMut(u64, u64),
) -> Result<Exhausted, VerdictError> {
    let calm = Plan { faults: Vec::new(), ..plan };
    let begin = Verdict::of(subject, calm.clone())?;
    let moments = moments(&begin.history);
    let all = (moments.len() * FAULTS.len()) as u64;
    let cases = moments.iter().flat_map(|moment| FAULTS.map(|fault| (moment, fault)));
    let mut exhausted = Exhausted::default();
    if !begin.violations.is_empty() {
        return Ok(Exhausted { failure: Some(begin), ..exhausted });
    }
    for ((host, when), fault) in cases {
        let fault = Fault { fault, when: when.clone(), host: *host, ms: 0, way: Way::Both };
        let verdict = Verdict::of(subject, Plan { faults: vec![fault], ..calm.clone() })?;
        exhausted.runs += 1;
        exhausted.struck += u64::from(verdict.came() > 0);
        exhausted.grants += verdict.tally.grants as u64;
        exhausted.coverage.add(verdict.coverage.clone());
        exhausted.called.add(Called::of(&verdict.history));
        progress(exhausted.runs, all);
        if !verdict.violations.is_empty() {
            exhausted.failure = Some(verdict);
            return Ok(exhausted);
        }
    }
    Ok(exhausted)
}

/// Every request of a run, and every wait, which is for what others do and sends none.
fn moments(history: &[Entry]) -> Vec<(HostId, When)> {
    let mut hosts = BTreeMap::new();
    let (mut requests, mut waits) = (BTreeMap::new(), BTreeMap::new());
    let mut moments = Vec::new();
    for entry in history {
        match &entry.what {
            What::Joined { participant, host, .. } => drop(hosts.insert(*participant, *host)),
            What::Request { host, .. } => {
                let nth = count(&mut requests, *host);
                moments.push((*host, When::Request { nth }));
            }
            What::HostCall { participant, name, .. } if name == "wait" => {
                let Some(host) = hosts.get(participant) else { continue };
                let (name, nth) = (name.clone(), count(&mut waits, *host));
                moments.push((*host, When::HostCall { name, nth }));
            }
            _ => {}
        }
    }
    moments
}

fn count(counts: &mut BTreeMap<HostId, u64>, host: HostId) -> u64 {
    let count = counts.entry(host).or_insert(0);
    *count += 1;
    *count
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
