//! What is simulated: a module, ready to be run under fuel.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::What;
use super::judges;
use super::plan::Plan;
use super::{workload, world};
use crate::guest::{
    CompileCache, Configuration, Engine, EngineError, EngineOptions, Limits, Module, ModuleError,
    Pace,
};
use crate::session::Omission;

/// Participants of one run at most, those included that are just ending.
const PARTICIPANTS: u32 = 64;

/// Runs of one subject at a time, for which there is room: a run without it would go another way.
pub(super) const RUNS: u32 = 64;

/// What a call may use: some 100 ms of an ordinary processor, as `limits.cpu-per-call` has it.
const FUEL: u64 = 200_000_000;

/// Runs without faults, to see which host calls a module makes.
const LESSONS: u64 = 16;

/// A module, ready to be run.
#[derive(Debug, Clone)]
pub struct Subject {
    pub(super) module: Module,
    pub(super) limits: Limits,
    config: Option<Value>,
    pub(super) omission: Option<Omission>,
    /// The host calls it makes, and how often on each host in a run without faults.
    host_calls: Vec<(String, u64)>,
    /// The operations that were left without an answer in a run without faults.
    blocking: BTreeSet<String>,
}

/// Why a module cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// There is no engine for it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It is no module for this host.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Its config is wrong.
    #[error("the config does not fit the module: {0}")]
    Config(String),
}

impl Subject {
    /// Compiles a module to be run under fuel, on several threads at a time.
    ///
    /// # Errors
    /// It is no module for this host.
    pub fn new(
        name: &str,
        bytes: &[u8],
        config: Option<Value>,
        cache: CompileCache,
    ) -> Result<Self, SubjectError> {
        let limits = Limits::default();
        let engine = Engine::new(&EngineOptions {
            participants: PARTICIPANTS * RUNS,
            memory: limits.memory,
            table_elements: limits.table_elements,
            cache,
            pace: Pace::Fuel(FUEL),
        })?;
        Ok(Subject {
            module: Module::load(&engine, name, bytes)?,
            limits,
            config,
            omission: None,
            host_calls: Vec::new(),
            blocking: BTreeSet::new(),
        }
        .learn())
    }

    /// Whether its config fits the module: to be asked where a plan has none of its own.
    ///
    /// # Errors
    /// [`SubjectError::Config`].
    pub fn check_config(&self) -> Result<(), SubjectError> {
        self.configuration(None).map(drop)
    }

    /// Looks which host calls it makes, so that faults can wait for each of them, and which of its
    /// operations may block, so that nobody is asked for their end.
    fn learn(self) -> Self {
        let mut made: BTreeMap<String, u64> = BTreeMap::new();
        let mut blocking = BTreeSet::new();
        for seed in 0..LESSONS {
            let plan = Plan { faults: Vec::new(), ..workload::plan(&self, seed) };
            // What cannot be run is told when it is asked for.
            let history = world::run(&self, &plan).map_or_else(|_| Vec::new(), |run| run.history);
            let mut called = BTreeMap::new();
            for entry in history {
                match entry.what {
                    What::HostCall { name, .. } => *made.entry(name).or_default() += 1,
                    What::Invoked { call, operation, .. } => drop(called.insert(call, operation)),
                    What::Final { blocked, .. } => {
                        blocking.extend(blocked.iter().filter_map(|call| called.remove(call)));
                    }
                    _ => {}
                }
            }
        }
        let hosts = u64::from(workload::HOSTS) * LESSONS;
        let average = |(name, made): (String, u64)| (name, made.div_ceil(hosts));
        if self.interface() != judges::Interface::Unknown {
            blocking.clear();
        }
        Subject { host_calls: made.into_iter().map(average).collect(), blocking, ..self }
    }

    /// The host calls it makes, and how often on each host in a run without faults.
    pub fn host_calls(&self) -> &[(String, u64)] {
        &self.host_calls
    }

    /// The same, on hosts that leave a rule of theirs out: where debug assertions are on.
    #[must_use]
    pub fn without(self, rule: Omission) -> Self {
        Subject { omission: Some(rule), ..self }
    }

    /// The interface that it exports, by which it is judged.
    pub fn interface(&self) -> judges::Interface {
        judges::Interface::of(&self.module.interface().name)
    }

    /// Of an interface that nobody knows: the operations that were left without an answer in a run
    /// without faults. They may block by design, so nobody is asked whether they end.
    pub fn blocking(&self) -> impl ExactSizeIterator<Item = &str> {
        self.blocking.iter().map(String::as_str)
    }

    pub(super) fn may_block(&self, operation: &str) -> bool {
        self.blocking.contains(operation)
    }

    /// Whether a seed has anything to call: of an interface that nobody knows, an operation without
    /// arguments.
    pub fn is_callable(&self) -> bool {
        self.interface() != judges::Interface::Unknown || !self.bare_operations().is_empty()
    }

    pub(super) fn config(&self) -> Option<&Value> {
        self.config.as_ref()
    }

    /// The operations that can be called without arguments.
    pub(super) fn bare_operations(&self) -> Vec<&str> {
        let operations = self.module.interface().operations.iter();
        let bare = operations.filter(|operation| operation.parameters.is_empty());
        bare.map(|operation| operation.name.as_str()).collect()
    }

    pub(super) fn configuration(
        &self,
        given: Option<&Value>,
    ) -> Result<Configuration, SubjectError> {
        let config = given.or(self.config.as_ref());
        self.module.configuration(config).map_err(|error| SubjectError::Config(error.to_string()))
    }
}
