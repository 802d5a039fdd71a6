//! The plan of a seed: who uses the recipe and how, and what is done to them. Each seed switches
//! some kinds of faults on and leaves the others off, so that their combinations are explored, too.

use serde_json::{Value, json};

use super::chance::Chance;
use super::history::{FaultKind, HostId};
use super::judges::Interface;
use super::plan::{Application, Fault, Plan, Step, Way, When};
use super::subject::Subject;

pub(super) const HOSTS: HostId = 3;
const SERVERS: usize = 3;

/// How many applications there are, and how many operations each calls.
const APPLICATIONS: (u64, u64) = (6, 8);
const ROUNDS: (u64, u64) = (5, 8);

/// How many faults come.
const FAULTS: (u64, u64) = (4, 10);

/// In how many runs of a hundred servers are cut off for long, whatever else comes.
const PARTITIONS_PERCENT: u64 = 50;

/// How long into a run faults come, and which request of a host's they wait for.
const FAULTS_UNTIL_MS: u64 = 12_000;
const LAST_REQUEST: u64 = 70;

/// One run in so many begins close to where the children's counter wraps.
const WRAPS_IN: u64 = 8;

/// Shorter and longer than servers go on with each other though nothing is heard, which is 2.5 s.
const SESSION_TIMEOUTS_MS: [u64; 5] = [2_000, 3_000, 4_000, 5_000, 6_000];

/// How long a candidate stands that means to lead, whatever it takes: for longer than any run.
const STANDS_MS: u64 = 600_000;

/// The plan of a seed.
pub fn plan(subject: &Subject, seed: u64) -> Plan {
    let mut chance = Chance::new(seed, "workload");
    let session_timeout_ms = chance.pick(&SESSION_TIMEOUTS_MS).copied().unwrap_or(4_000);
    let counter = match chance.within(1, WRAPS_IN) {
        1 => i32::MAX - i32::try_from(chance.within(1, 12)).unwrap_or(1),
        _ => 0,
    };
    let count = chance.within(APPLICATIONS.0, APPLICATIONS.1);
    let applications = (0..count)
        .map(|number| {
            // The first six are two on each host; the others are anywhere.
            let hosts = u64::from(HOSTS);
            let host = match number < 2 * hosts {
                true => number % hosts,
                false => chance.within(0, hosts - 1),
            };
            let host = HostId::try_from(host).unwrap_or(0);
            let config = subject.config().cloned();
            Application { host, config, steps: steps(subject, number, &mut chance) }
        })
        .collect();
    let faults = faults(subject, &mut Chance::new(seed, "faults"));
    Plan { seed, servers: SERVERS, hosts: HOSTS, session_timeout_ms, counter, applications, faults }
}

fn steps(subject: &Subject, number: u64, chance: &mut Chance) -> Vec<Step> {
    let mut steps = vec![Step::Rest { ms: chance.within(0, 300) }];
    let rounds = chance.within(ROUNDS.0, ROUNDS.1);
    for _ in 0..rounds {
        match subject.interface() {
            Interface::Lock => lock_round(chance, &mut steps),
            Interface::LeaderElection => election_round(number, chance, &mut steps),
            Interface::Unknown => any_round(subject, chance, &mut steps),
        }
        steps.push(Step::Rest { ms: chance.within(0, 400) });
    }
    steps
}

fn call(operation: &str, deadline_ms: Option<u64>) -> Step {
    Step::Call { operation: operation.to_owned(), arguments: json!({}), deadline_ms }
}

fn deadline(chance: &mut Chance, percent: u64) -> Option<u64> {
    chance.happens(percent).then(|| chance.within(10, 2_500))
}

/// Mostly short; one in so many outlasts a session.
fn work(chance: &mut Chance) -> Step {
    let ms = if chance.happens(6) { chance.within(2_000, 9_000) } else { chance.within(0, 250) };
    Step::Work { ms }
}

fn lock_round(chance: &mut Chance, steps: &mut Vec<Step>) {
    match chance.within(1, 20) {
        1..=14 => steps.push(call("acquire", deadline(chance, 25))),
        15..=17 => steps.push(call("try-acquire", None)),
        _ => return steps.push(call("contenders", None)),
    }
    steps.push(work(chance));
    if chance.happens(15) {
        // Whoever holds gets the same grant again.
        steps.push(call("acquire", deadline(chance, 50)));
        steps.push(Step::Work { ms: chance.within(0, 50) });
    }
    steps.push(if chance.happens(85) { call("release", None) } else { Step::Leave });
}

fn election_round(number: u64, chance: &mut Chance, steps: &mut Vec<Step>) {
    // The last of the first six watches the others.
    if number == 5 || chance.happens(20) {
        steps.push(call("observe", None));
        steps.push(Step::Rest { ms: chance.within(200, 1_500) });
        return steps.push(call("leader", None));
    }
    steps.push(call("volunteer", None));
    let patience = chance.within(800, 3_000);
    let ms = if chance.happens(15) { STANDS_MS } else { patience };
    steps.push(Step::AwaitClaim { ms });
    for _ in 0..chance.within(1, 2) {
        // The second one replaces the first.
        let data: Value = json!({ "data": format!("term of {number}") });
        let (operation, deadline_ms) = ("announce".to_owned(), Some(2_000));
        steps.push(Step::Call { operation, arguments: data, deadline_ms });
        steps.push(work(chance));
    }
    if chance.happens(20) {
        steps.push(call("leader", None));
    }
    // Whoever leaves has its announcement deleted by the host, while the next one announces.
    steps.push(if chance.happens(50) { call("resign", None) } else { Step::Leave });
}

/// Of an interface that nobody knows: whatever can be called without arguments. What may block by
/// design is given up.
fn any_round(subject: &Subject, chance: &mut Chance, steps: &mut Vec<Step>) {
    let bare = subject.bare_operations();
    for _ in 0..chance.within(1, 3) {
        let Some(operation) = chance.pick(&bare) else { return };
        let deadline_ms = deadline(chance, 50);
        let may_block = subject.may_block(operation);
        let given_up = deadline_ms.or_else(|| may_block.then(|| chance.within(10, 2_500)));
        steps.push(call(operation, given_up));
        steps.push(Step::Work { ms: chance.within(0, 250) });
    }
    if chance.happens(50) {
        steps.push(Step::Leave);
    }
}

fn faults(subject: &Subject, chance: &mut Chance) -> Vec<Fault> {
    let kinds: Vec<FaultKind> = FaultKind::ALL.into_iter().filter(|_| chance.happens(45)).collect();
    let count = chance.within(FAULTS.0, FAULTS.1);
    let fault = |_| {
        let fault = *chance.pick(&kinds)?;
        let when = match (chance.within(1, 4), chance.pick(subject.host_calls())) {
            (1, _) | (_, None) => When::At { ms: chance.within(100, FAULTS_UNTIL_MS) },
            (2, _) => When::Request { nth: chance.within(1, LAST_REQUEST) },
            (_, Some((name, made))) => {
                When::HostCall { name: name.clone(), nth: chance.within(1, *made) }
            }
        };
        let host = HostId::try_from(chance.within(0, u64::from(HOSTS) - 1)).unwrap_or(0);
        let ms = match fault {
            FaultKind::Pause => chance.within(200, 12_000),
            FaultKind::HostKill => chance.within(100, 3_000),
            FaultKind::LeaderChange => chance.within(100, 1_500),
            kind if kind.is_cut() => chance.within(500, 9_000),
            _ => chance.within(100, 4_000),
        };
        let way = if fault.is_between_servers() { way(chance) } else { Way::Both };
        Some(Fault { fault, when, host, ms, way })
    };
    let mut faults: Vec<Fault> = (0..count).filter_map(fault).collect();
    if chance.happens(PARTITIONS_PERCENT) {
        faults.extend(partition(chance));
    }
    faults
}

/// Servers that are cut off from each other for long enough that sessions end, and leaders are
/// elected.
fn partition(chance: &mut Chance) -> Option<Fault> {
    let kinds = [FaultKind::LinkCut, FaultKind::ServerCut, FaultKind::LeaderCut];
    let fault = *chance.pick(&kinds)?;
    let when = When::At { ms: chance.within(500, 8_000) };
    let host = HostId::try_from(chance.within(0, u64::from(HOSTS) - 1)).unwrap_or(0);
    let ms = chance.within(3_000, 9_000);
    Some(Fault { fault, when, host, ms, way: way(chance) })
}

/// Both ways in more than half of them.
fn way(chance: &mut Chance) -> Way {
    let way = chance.pick(&Way::ALL).copied().unwrap_or_default();
    if chance.happens(40) { Way::Both } else { way }
}
