//! Every request of a small run, every wait in it, and everything that can happen to them.

use std::collections::{BTreeMap, BTreeSet};

use super::called::Called;
use super::coverage::Coverage;
use super::history::{Entry, FaultKind, HostId, What};
use super::plan::{Application, Fault, Plan, Step, Way, When};
use super::subject::Subject;
use super::verdict::{Verdict, VerdictError};
use super::workload;

/// What happens to each.
const FAULTS: [FaultKind; 4] =
    [FaultKind::LostBefore, FaultKind::LostAfter, FaultKind::Expiry, FaultKind::Cancel];

/// The host call that waits for what others do.
const WAIT: &str = "wait";

/// Seeds that are looked at for a small run that leaves nothing out. A run without faults takes some
/// milliseconds.
const TRIES: u64 = 32;

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
            What::HostCall { participant, name, .. } if name == WAIT => {
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

/// A small plan in which somebody waits, and as many operations as possible are answered: of some seeds from the
/// first one on, that of the first seed whose run without faults shows the most. A plan whose run breaks
/// an invariant even so is taken at once.
///
/// # Errors
/// The judge fails.
pub fn widest(
    subject: &Subject,
    first: u64,
    applications: usize,
    steps: usize,
) -> Result<Plan, VerdictError> {
    let most = (true, subject.operations().count() - subject.left_out().len());
    let mut widest = small(subject, first, applications, steps);
    let mut shown = (false, 0);
    for seed in (0..TRIES).map(|more| first.wrapping_add(more)) {
        let plan = varied(subject, seed, applications, steps);
        let calm = Verdict::of(subject, Plan { faults: Vec::new(), ..plan.clone() })?;
        let shows = shows(subject, &calm.history);
        if shows > shown {
            (widest, shown) = (plan, shows);
        } else if !calm.violations.is_empty() {
            widest = plan;
        }
        if shown >= most || !calm.violations.is_empty() {
            break;
        }
    }
    Ok(widest)
}

/// Whether anybody waited in a run, and how many operations were answered.
fn shows(subject: &Subject, history: &[Entry]) -> (bool, usize) {
    let called = Called::of(history);
    let answered = subject.operations().filter(|operation| called.answered(operation) > 0);
    let waits = |entry: &Entry| matches!(&entry.what, What::HostCall { name, .. } if name == WAIT);
    (history.iter().any(waits), answered.count())
}

/// A small plan of a seed: on each host in turn the application whose first steps call the most that
/// those before it do not call.
fn varied(subject: &Subject, seed: u64, applications: usize, steps: usize) -> Plan {
    let mut plan = workload::plan(subject, seed);
    for application in &mut plan.applications {
        application.steps.truncate(steps);
    }
    let (mut rest, mut chosen) = (plan.applications, Vec::new());
    let mut called = BTreeSet::new();
    for host in (0..plan.hosts).cycle().take(applications) {
        let adds = |application: &Application| {
            let operations = application.steps.iter().filter_map(Step::operation);
            let new: BTreeSet<_> = operations.filter(|it| !called.contains(*it)).collect();
            new.len()
        };
        let there = rest.iter().enumerate().filter(|(_, it)| it.host == host);
        // Of equals the first.
        let most = there.rev().max_by_key(|(_, application)| adds(application));
        let Some((at, _)) = most else { continue };
        let application = rest.remove(at);
        called.extend(application.steps.iter().filter_map(Step::operation).map(str::to_owned));
        chosen.push(application);
    }
    plan.applications = chosen;
    plan
}
