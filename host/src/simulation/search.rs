//! Many seeds, on all processors, until one breaks an invariant.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::called::Called;
use super::coverage::Coverage;
use super::subject::{RUNS, Subject};
use super::verdict::{Verdict, VerdictError};
use super::workload;

/// After so many runs for each that has to count, and no less than this, a search gives up.
const RUNS_FOR_ONE: u64 = 20;
const RUNS_AT_LEAST: u64 = 200;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The first seed.
    pub first: u64,
    /// How many runs have to count.
    pub counting: u64,
    /// How many threads run them; there is room for 64.
    pub threads: usize,
}

/// What a search has come to so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// Runs.
    pub runs: u64,
    /// Those that count: enough took part, enough of what they asked for was done, and enough was done
    /// to them.
    pub counted: u64,
    /// Operations that were called.
    pub operations: u64,
    /// Those of them that were answered, and not by an error.
    pub succeeded: u64,
    /// Claims that were granted.
    pub grants: u64,
    /// How much time was simulated.
    pub simulated: Duration,
    /// How long it took.
    pub took: Duration,
    /// Which faults struck what.
    pub coverage: Coverage,
    /// Which operations were called, and how that went.
    pub called: Called,
    /// Whether it was stopped before its end.
    pub was_stopped: bool,
    /// The run of the lowest seed that broke an invariant.
    pub failure: Option<Verdict>,
}

impl Findings {
    /// Runs a second.
    pub fn seeds_per_second(&self) -> f64 {
        self.runs as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Simulated seconds a second.
    pub fn speed_up(&self) -> f64 {
        self.simulated.as_secs_f64() / self.took.as_secs_f64().max(1e-9)
    }

    fn add(&mut self, verdict: Verdict, called: Called, counts: bool) {
        self.runs += 1;
        self.counted += u64::from(counts);
        self.called.add(called);
        self.operations += verdict.tally.operations as u64;
        self.succeeded += verdict.tally.succeeded as u64;
        self.grants += verdict.tally.grants as u64;
        self.simulated += verdict.simulated;
        self.coverage.add(verdict.coverage.clone());
        let is_lower = |failure: &Verdict| failure.plan.seed < verdict.plan.seed;
        if !verdict.violations.is_empty() && !self.failure.as_ref().is_some_and(is_lower) {
            self.failure = Some(verdict);
        }
    }
}

impl Search {
    /// Runs seeds until enough of them count or one fails, and then those that were begun. Gives up
    /// where hardly any counts: what was found then has fewer. `progress` is told after each.
    ///
    /// # Errors
    /// The workload does not fit the module, or the judge fails.
    pub fn run(
        &self,
        subject: &Subject,
        progress: impl FnMut(&Findings),
    ) -> Result<Findings, VerdictError> {
        self.run_unless(subject, &AtomicBool::new(false), progress)
    }

    /// The same, until somebody sets `is_stopped`.
    ///
    /// # Errors
    /// The workload does not fit the module, or the judge fails, with a seed of which that is so; unless
    /// another one breaks an invariant.
    pub fn run_unless(
        &self,
        subject: &Subject,
        is_stopped: &AtomicBool,
        mut progress: impl FnMut(&Findings),
    ) -> Result<Findings, VerdictError> {
        let began = Instant::now();
        let next = AtomicU64::new(self.first);
        let is_over = AtomicBool::new(false);
        let (sender, results) = channel();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, RUNS as usize) {
                let (sender, next, is_over) = (sender.clone(), &next, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if sender.send(seed_run(subject, seed)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut findings = Findings::default();
            let mut failed = None;
            for result in results {
                match result {
                    Ok((verdict, called)) => {
                        let counts = subject.workload().counts(&verdict.tally);
                        findings.add(verdict, called, counts);
                    }
                    Err(error) => failed = Some(error),
                }
                let most = self.counting.saturating_mul(RUNS_FOR_ONE).max(RUNS_AT_LEAST);
                let is_done = findings.counted >= self.counting || findings.runs >= most;
                findings.was_stopped |= is_stopped.load(Ordering::Relaxed) && !is_done;
                let is_enough = is_done || findings.was_stopped || findings.failure.is_some();
                if is_enough || failed.is_some() {
                    is_over.store(true, Ordering::Relaxed);
                }
                findings.took = began.elapsed();
                progress(&findings);
            }
            findings.took = began.elapsed();
            match failed {
                // What was found counts, whatever kept another run from being judged.
                Some(error) if findings.failure.is_none() => Err(error),
                _ => Ok(findings),
            }
        })
    }
}

/// Runs a seed. Only of a run that failed anybody wants the history.
fn seed_run(subject: &Subject, seed: u64) -> Result<(Verdict, Called), VerdictError> {
    let verdict = Verdict::of(subject, workload::plan(subject, seed));
    let mut verdict =
        verdict.map_err(|error| VerdictError::Seed { seed, error: Box::new(error) })?;
    let called = Called::of(&verdict.history);
    if verdict.violations.is_empty() {
        verdict.history = Vec::new();
    }
    Ok((verdict, called))
}
