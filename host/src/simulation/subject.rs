//! What is simulated: a module, ready to be run under fuel.

use std::fmt;

use serde_json::Value;

use super::judges;
use super::plan::{Application, Plan, Step};
use super::survey::Survey;
use super::workload::{Workload, WorkloadError};
use super::world::{self, PlanError};
use crate::guest::values::error_in_words;
use crate::guest::{
    CompileCache, Configuration, Engine, EngineError, EngineOptions, Judge, JudgeError, Limits,
    Module, ModuleError, Pace, custom_section, own_name_of,
};
use crate::modules::ModuleSource;
use crate::session::Omission;

/// The custom section with a component's workload, as `wok build` appends it.
const WORKLOAD_SECTION: &str = "wok:workload";

/// Participants of one run at most, those included that are just ending.
const PARTICIPANTS: u32 = 64;

/// Runs of one subject at a time, for which there is room: a run without it would go another way.
pub(super) const RUNS: u32 = 64;

/// What a call may use: some 100 ms of an ordinary processor, as `limits.cpu-per-call` has it.
const FUEL: u64 = 200_000_000;

/// A module, ready to be run.
#[derive(Debug, Clone)]
pub struct Subject {
    pub(super) module: Module,
    pub(super) limits: Limits,
    config: Option<Value>,
    /// Of what it promises; none is known of a recipe that has none.
    judge: Option<Judge>,
    pub(super) omission: Option<Omission>,
    workload: Workload,
    origin: Origin,
    survey: Survey,
}

/// Where a workload comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The component brings it.
    Component,
    /// The stock recipe of that name, whose interface the component has.
    Stock(String),
    /// This file.
    File(String),
    /// Nobody has written one.
    Nowhere,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Component => formatter.write_str("its own workload"),
            Origin::Stock(name) => write!(formatter, "the workload of the stock recipe {name}"),
            Origin::File(name) => formatter.write_str(name),
            Origin::Nowhere => formatter.write_str("no workload"),
        }
    }
}

/// The workload that a module is to be run with.
#[derive(Debug, Clone)]
pub enum Given {
    /// Its own, else that of the stock recipe whose interface it has, else any operation at random.
    Own,
    /// The text of a file, and what the file is called.
    File {
        /// Its name.
        name: String,
        /// What is in it.
        text: String,
    },
    /// A scenario.
    Scenario {
        /// Its file's name.
        name: String,
        /// The scenario.
        plan: Box<Plan>,
    },
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
    /// The judge of what it promises is none.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// Its config is wrong.
    #[error("the config does not fit the module: {0}")]
    Config(String),
    /// Its workload is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A scenario does not fit it.
    #[error("{name}: {error}")]
    Scenario {
        /// The scenario's file.
        name: String,
        /// What is wrong.
        error: PlanError,
    },
}

impl Subject {
    /// Compiles a module to be run under fuel, on several threads at a time, with the workload that
    /// it brings.
    ///
    /// # Errors
    /// It is no module for this host, or its workload does not fit it.
    pub fn new(
        name: &str,
        bytes: &[u8],
        config: Option<Value>,
        cache: CompileCache,
    ) -> Result<Self, SubjectError> {
        Self::with(name, bytes, config, cache, Given::Own)
    }

    /// The same with the workload that is given.
    ///
    /// # Errors
    /// It is no module for this host, or the workload does not fit it.
    pub fn with(
        name: &str,
        bytes: &[u8],
        config: Option<Value>,
        cache: CompileCache,
        given: Given,
    ) -> Result<Self, SubjectError> {
        let limits = Limits::default();
        let engine = Engine::new(&EngineOptions {
            participants: PARTICIPANTS * RUNS,
            memory: limits.memory,
            table_elements: limits.table_elements,
            cache: cache.clone(),
            pace: Pace::Fuel(FUEL),
        })?;
        let module = Module::load(&engine, name, bytes)?;
        let judge = judges::promised(name, bytes, module.interface(), &cache)?;
        let (workload, origin) = match &given {
            Given::Own => own_workload(&module, bytes)?,
            Given::File { name, text } => {
                (Workload::declared(&module, name, text)?, Origin::File(name.clone()))
            }
            Given::Scenario { name, plan } => {
                (Workload::Scenario(plan.clone()), Origin::File(name.clone()))
            }
        };
        let survey = Survey::default();
        let mut subject =
            Subject { module, limits, config, judge, omission: None, workload, origin, survey };
        if let Given::Scenario { name, plan } = given {
            world::check(&subject, &plan)
                .map_err(|error| SubjectError::Scenario { name, error })?;
        }
        subject.survey = Survey::of(&subject);
        if !matches!(subject.workload, Workload::Generic) {
            // Who wrote it has said what need not end by itself.
            subject.survey.blocking.clear();
        }
        Ok(subject)
    }

    /// Whether its config, with that of each role, or that of each application of a scenario fits the
    /// module's types, and the module takes it.
    ///
    /// # Errors
    /// The first one that is not taken, with its place where it stands in a file.
    pub fn check_config(&self) -> Result<(), SubjectError> {
        let configs = self.workload.configs(self.config.as_ref());
        for (number, config) in configs.iter().enumerate() {
            // That of the application before, as a rule.
            if configs.iter().take(number).any(|earlier| earlier == config) {
                continue;
            }
            if let Err(errors) = self.module.configuration(config.as_ref()) {
                return Err(self.wrong_config(number, errors.to_string()));
            }
            // If this run itself fails, the run that was asked for says why.
            let refused = world::run(self, &joining_with(config.clone())).ok();
            if let Some(error) = refused.and_then(|run| run.refused_config) {
                return Err(self.wrong_config(number, error_in_words(&error).into_owned()));
            }
        }
        Ok(())
    }

    /// That a config is not taken: of the role, or of the application of that number.
    fn wrong_config(&self, number: usize, problem: String) -> SubjectError {
        match (&self.workload, &self.origin) {
            (Workload::Declared(declared), _) => {
                let of_run = self.config.as_ref();
                let alone = declared.configs(None).into_iter().nth(number).flatten();
                // What the role has by itself is not wrong, so the run's is.
                if of_run.is_some() && self.module.configuration(alone.as_ref()).is_ok() {
                    return SubjectError::Config(problem);
                }
                declared
                    .wrong_config(number, of_run, &problem)
                    .map_or(SubjectError::Config(problem), SubjectError::Workload)
            }
            (Workload::Scenario(_), Origin::File(name)) => {
                let problem = SubjectError::Config(problem).to_string();
                let place = format!("applications[{number}].config");
                SubjectError::Scenario { name: name.clone(), error: PlanError { place, problem } }
            }
            _ => SubjectError::Config(problem),
        }
    }

    /// The same, used in another way.
    #[cfg(test)]
    pub(super) fn used_as(self, workload: Workload) -> Self {
        Subject { workload, ..self }
    }

    /// What its users do.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Where that comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The host calls it makes, and how often on each host in a run without faults.
    pub fn host_calls(&self) -> &[(String, u64)] {
        &self.survey.host_calls
    }

    /// The same, on hosts that leave a rule of theirs out: where debug assertions are on.
    #[must_use]
    pub fn without(self, rule: Omission) -> Self {
        Subject { omission: Some(rule), ..self }
    }

    /// The same, judged by another judge.
    #[must_use]
    pub fn judged_by(self, judge: Judge) -> Self {
        Subject { judge: Some(judge), ..self }
    }

    /// The judge of what it promises, if it has one.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }

    /// The full name of the interface that it exports.
    pub fn interface_name(&self) -> &str {
        &self.module.interface().name
    }

    /// Whether anybody judges what the recipe promises, and not only what every recipe owes.
    pub fn is_judged(&self) -> bool {
        self.judge.is_some()
    }

    /// Whether it claims anything while nothing is done to it.
    pub fn claims(&self) -> bool {
        self.survey.claims
    }

    /// The operations that its workload never calls, whatever the seed.
    pub fn left_out(&self) -> Vec<&str> {
        self.workload.left_out(&self.module)
    }

    /// Its operations.
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.module.interface().operations.iter().map(|operation| operation.name.as_str())
    }

    /// Where nobody has written a workload: the operations that were left without an answer in a run
    /// without faults. They may block by design, so nobody is asked whether they end.
    pub fn blocking(&self) -> impl ExactSizeIterator<Item = &str> {
        self.survey.blocking.iter().map(String::as_str)
    }

    pub(super) fn may_block(&self, operation: &str) -> bool {
        self.survey.blocking.contains(operation)
    }

    /// The config of those who have none of their own.
    pub fn config(&self) -> Option<&Value> {
        self.config.as_ref()
    }

    pub(super) fn configuration(
        &self,
        given: Option<&Value>,
    ) -> Result<Configuration, SubjectError> {
        self.module
            .configuration(given.or(self.config.as_ref()))
            .map_err(|error| SubjectError::Config(error.to_string()))
    }
}

/// Somebody who joins with that config, and does nothing. Nothing is done to them.
fn joining_with(config: Option<Value>) -> Plan {
    let steps = vec![Step::Rest { ms: 1_000 }];
    Plan {
        seed: 1,
        servers: 1,
        hosts: 1,
        session_timeout_ms: 4_000,
        counter: 0,
        applications: vec![Application { host: 0, config, steps }],
        faults: Vec::new(),
        foreign: Vec::new(),
    }
}

/// The workload that the component brings; else that of the stock recipe whose interface it has, if
/// that fits; else none.
///
/// # Errors
/// The component brings one that does not fit it.
pub fn own_workload(module: &Module, bytes: &[u8]) -> Result<(Workload, Origin), WorkloadError> {
    let name = module.name();
    if let Some(text) = workload_text(bytes) {
        let origin = format!("{name}, section {WORKLOAD_SECTION}");
        let workload = Workload::declared(module, &origin, &text)?;
        return Ok((workload, Origin::Component));
    }
    // A fork keeps the interface's own name, whatever it calls its package.
    let stock = ModuleSource::Stock(own_name_of(&module.interface().name).to_owned());
    let workload = stock.read(None).ok().and_then(|bytes| {
        let text = workload_text(&bytes)?;
        // Where it does not fit, the interface is another one of the same name.
        Workload::declared(module, "", &text).ok()
    });
    Ok(match workload {
        Some(workload) => (workload, Origin::Stock(stock.name())),
        None => (Workload::Generic, Origin::Nowhere),
    })
}

fn workload_text(component: &[u8]) -> Option<String> {
    let text = custom_section(component, WORKLOAD_SECTION)?;
    Some(String::from_utf8_lossy(text).into_owned())
}
