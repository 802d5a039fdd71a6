//! What a recipe's users do in a run, and the plan of a seed.
//!
//! A workload stands beside the recipe and travels in its component; nothing here knows a recipe. A
//! component without one is called at random, with arguments of its types. A scenario is a workload,
//! too: its applications do the same in every run, and the seeds vary what is done to them.
//!
//! Code map:
//! - `file`: the workload as TOML; `check`: whether it is whole and fits the module
//! - `declared`, `generic`: the steps of an application, drawn
//! - `faults`: what is done to them; `foreign`: what another program leaves among the recipe's znodes
//! - `error`: why a workload is refused

mod check;
mod declared;
mod error;
mod faults;
mod file;
mod foreign;
mod generic;

pub use declared::Declared;
pub use error::WorkloadError;
pub(super) use generic::value as fitting;

use serde_json::Value;

use super::chance::Chance;
use super::coverage::Tally;
use super::history::HostId;
use super::plan::{Application, Plan, Step};
use super::subject::Subject;
use crate::guest::Module;
use faults::Targets;

/// Unless a scenario says otherwise.
const HOSTS: HostId = 3;
const SERVERS: usize = 3;

/// How many applications there are of a recipe without a workload, how many rounds each goes
/// through, and how long it rests after each.
const APPLICATIONS: (u64, u64) = (6, 8);
const ROUNDS: (u64, u64) = (5, 8);
const REST_MS: (u64, u64) = (0, 400);

/// After how long a caller gives up where the operation need not end by itself.
const GIVES_UP_MS: (u64, u64) = (10, 2_500);

/// One run in so many begins where a directory has a long past.
const OLD_IN: u64 = 8;

/// Shorter and longer than servers go on with each other though nothing is heard, which is 2.5 s.
const SESSION_TIMEOUTS_MS: [u64; 5] = [2_000, 3_000, 4_000, 5_000, 6_000];

/// What a recipe's users do.
#[derive(Debug, Clone)]
pub enum Workload {
    /// What its author says.
    Declared(Box<Declared>),
    /// Nobody has said it: any operation, with arguments of its types.
    Generic,
    /// The same in every run.
    Scenario(Box<Plan>),
}

impl Workload {
    /// The workload that a text in TOML declares, checked against the module that it is for.
    /// `origin` is what an error calls the text.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn declared(module: &Module, origin: &str, text: &str) -> Result<Self, WorkloadError> {
        Declared::read(module, origin, text).map(|declared| Workload::Declared(Box::new(declared)))
    }

    /// The settings that the module is started with, given those of the run: of each role, or of each
    /// application of a scenario.
    pub(super) fn configs(&self, of_run: Option<&Value>) -> Vec<Option<Value>> {
        match self {
            Workload::Declared(declared) => declared.configs(of_run),
            Workload::Generic => vec![of_run.cloned()],
            Workload::Scenario(plan) => {
                let configs = plan.applications.iter().map(|it| it.config.as_ref().or(of_run));
                configs.map(Option::<&Value>::cloned).collect()
            }
        }
    }

    /// Whether a run counts: enough took part, enough of what they asked for was done, and enough was
    /// done to them.
    pub(super) fn counts(&self, tally: &Tally) -> bool {
        let something_was_struck = tally.succeeded > 0 && tally.struck > 0;
        match self {
            // How many there are was decided by who wrote it.
            Workload::Scenario(_) => something_was_struck,
            Workload::Declared(it) if it.fewest() < APPLICATIONS.0 => something_was_struck,
            _ => tally.counts(),
        }
    }

    /// The operations that it never calls, whatever the seed.
    pub(super) fn left_out<'a>(&self, module: &'a Module) -> Vec<&'a str> {
        let operations = module.interface().operations.iter().map(|it| it.name.as_str());
        match self {
            Workload::Generic => Vec::new(),
            Workload::Declared(declared) => {
                let called = declared.operations();
                operations.filter(|name| !called.contains(name)).collect()
            }
            Workload::Scenario(plan) => {
                let steps = plan.applications.iter().flat_map(|it| &it.steps);
                let called: Vec<&str> = steps.filter_map(Step::operation).collect();
                operations.filter(|name| !called.contains(name)).collect()
            }
        }
    }
}

/// The plan of a seed.
pub fn plan(subject: &Subject, seed: u64) -> Plan {
    let mut plan = match subject.workload() {
        Workload::Scenario(plan) => Plan { seed, ..(**plan).clone() },
        _ => drawn(subject, seed),
    };
    let Plan { hosts, servers, session_timeout_ms, .. } = plan;
    let targets = Targets { hosts, servers, session_timeout_ms, host_calls: subject.host_calls() };
    plan.faults.extend(targets.faults(&mut Chance::new(seed, "faults")));
    plan.faults.extend(targets.server_pauses(&mut Chance::new(seed, "server pauses")));
    plan
}

/// The plan of a seed as yet without faults.
fn drawn(subject: &Subject, seed: u64) -> Plan {
    let mut chance = Chance::new(seed, "workload");
    let session_timeout_ms = chance.pick(&SESSION_TIMEOUTS_MS).copied().unwrap_or(4_000);
    // Not so long that the counter is used up: nobody could stand in line any more.
    let counter = match chance.within(1, OLD_IN) {
        1 => i32::MAX - 1_000_000 + i32::try_from(chance.within(1, 12)).unwrap_or(1),
        _ => 0,
    };
    let count = match subject.workload() {
        Workload::Declared(declared) => declared.applications(&mut chance),
        _ => chance.within(APPLICATIONS.0, APPLICATIONS.1),
    };
    let applications = (0..count)
        .map(|number| {
            // The first six are two on each host; the others are anywhere.
            let hosts = u64::from(HOSTS);
            let host = match number < 2 * hosts {
                true => number % hosts,
                false => chance.within(0, hosts - 1),
            };
            let host = HostId::try_from(host).unwrap_or(0);
            let config = match subject.workload() {
                Workload::Declared(declared) => declared.config(number, subject.config()),
                _ => subject.config().cloned(),
            };
            Application { host, config, steps: steps(subject, number, &mut chance) }
        })
        .collect();
    let foreign = match subject.workload() {
        Workload::Declared(declared) => {
            foreign::drawn(declared.foreign(), &mut Chance::new(seed, "foreign znodes"))
        }
        _ => Vec::new(),
    };
    let (servers, hosts, faults) = (SERVERS, HOSTS, Vec::new());
    Plan { seed, servers, hosts, session_timeout_ms, counter, applications, faults, foreign }
}

fn steps(subject: &Subject, number: u64, chance: &mut Chance) -> Vec<Step> {
    let mut steps = vec![Step::Rest { ms: chance.within(0, 300) }];
    let declared = match subject.workload() {
        Workload::Declared(declared) => Some(declared),
        _ => None,
    };
    let rounds = match declared {
        Some(declared) => declared.rounds(chance),
        None => chance.within(ROUNDS.0, ROUNDS.1),
    };
    for _ in 0..rounds {
        match declared {
            Some(declared) => declared.round(number, chance, &mut steps),
            None => {
                let may_block = |operation: &str| subject.may_block(operation);
                generic::round(subject.module.interface(), may_block, chance, &mut steps);
            }
        }
        let ms = match declared {
            Some(declared) => declared.rest_ms(chance),
            None => chance.within(REST_MS.0, REST_MS.1),
        };
        steps.push(Step::Rest { ms });
    }
    steps
}

#[cfg(test)]
mod tests;
