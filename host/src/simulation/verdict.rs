//! A run and what the judges say of it.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::coverage::{Coverage, Tally};
use super::history::{Entry, What};
use super::judges::{self, Violation};
use super::plan::Plan;
use super::subject::Subject;
use super::world::{self, PlanError, Run};
use crate::guest::JudgeError;

/// A run and what the judges say of it.
#[derive(Debug)]
pub struct Verdict {
    /// What was run.
    pub plan: Plan,
    /// What was broken, the earliest first.
    pub violations: Vec<Violation>,
    /// What happened, in numbers.
    pub tally: Tally,
    /// Which faults struck what.
    pub coverage: Coverage,
    /// How much time was simulated.
    pub simulated: Duration,
    /// All that happened.
    pub history: Vec<Entry>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictError {
    /// The plan does not fit the module.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The judge of its promise fails.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// One of these, with the run of this seed.
    #[error("seed {seed}: {error}")]
    Seed {
        /// The seed.
        seed: u64,
        /// What it is.
        error: Box<VerdictError>,
    },
}

impl Verdict {
    /// Runs a plan and has it judged.
    ///
    /// # Errors
    /// The plan does not fit the module, or its judge fails.
    pub fn of(subject: &Subject, plan: Plan) -> Result<Self, VerdictError> {
        let Run { history, simulated, .. } = world::run(subject, &plan)?;
        // All who use one mount have to agree.
        let own = plan.applications.iter().find_map(|application| application.config.as_ref());
        let config = own.or(subject.config()).unwrap_or(&Value::Null).to_string();
        Ok(Verdict {
            violations: judges::judge(&history, subject.judge(), &config)?,
            tally: Tally::of(&history),
            coverage: Coverage::of(&history),
            plan,
            simulated,
            history,
        })
    }

    /// How many faults came.
    pub fn came(&self) -> usize {
        self.history.iter().filter(|entry| matches!(entry.what, What::Fault { .. })).count()
    }

    /// Whether the same invariant is broken as in another run.
    pub fn breaks(&self, invariant: &str) -> bool {
        self.violations.iter().any(|violation| violation.invariant == invariant)
    }

    /// The SHA-256 of the history's lines, in hexadecimal: equal for equal runs.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for line in lines(&self.history) {
            digest.update(line.as_bytes());
            digest.update(b"\n");
        }
        crate::digest::hex(&digest.finalize())
    }
}

/// A history as lines of JSON.
pub fn lines(history: &[Entry]) -> impl Iterator<Item = String> {
    // All of it is strings, numbers and JSON values, which never fail to be written.
    history.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default())
}
