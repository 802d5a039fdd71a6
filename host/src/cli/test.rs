//! `wok test`: a module in simulation.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::exit::{BROKEN, Failure};
use super::output::{Printer, log_to_stderr};
use crate::guest::CompileCache;
use crate::host::user_cache;
use crate::modules::ModuleSource;
use crate::simulation::coverage::Coverage;
use crate::simulation::exhaustive::{self, Exhausted};
use crate::simulation::history::FaultKind;
use crate::simulation::picture;
use crate::simulation::plan::Plan;
use crate::simulation::search::{Findings, Search};
use crate::simulation::shrink::shrink;
use crate::simulation::subject::Subject;
use crate::simulation::timeline;
use crate::simulation::verdict::{self, Verdict};
use crate::simulation::workload;

/// Run a module in simulation: hosts that lose their connections, are stopped and killed, over an
/// ensemble that falls behind and changes its leader, until an invariant breaks.
///
/// One seed decides everything in a run. A seed that fails is made small and shown, and fails
/// again, bit for bit, wherever it is run.
///
/// What is judged goes by the interface that the module exports: a lock is held to a lock's
/// promises, whoever wrote it. Of an interface that nobody knows it is judged that it leaves
/// nothing behind, that nobody waits for ever, and that it stays within its bounds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok test lock\n  \
    wok test ./my-lock.wasm --seeds 10000\n  \
    wok test ./my-lock.wasm --seed 17 --history run.jsonl\n  \
    wok test ./my-lock.wasm --scenario two-hosts.toml\n  \
    wok test ./my-lock.wasm --exhaustive\n\n\
    Ends with 0 if every invariant held, 1 if one was broken.")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,

    /// How many seeds have to pass; only those count in which enough happened.
    #[arg(long, default_value_t = 1_000, value_name = "N", conflicts_with_all = ["seed", "scenario"])]
    seeds: u64,

    /// The first of them.
    #[arg(long, default_value_t = 1, value_name = "S", conflicts_with_all = ["seed", "scenario"])]
    first_seed: u64,

    /// Run one seed, and nothing else.
    #[arg(long, value_name = "S", conflicts_with = "scenario")]
    seed: Option<u64>,

    /// Run what a file says: who does what, and what is done to them.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Strike every request of a small run with every fault, instead of drawing them.
    #[arg(long, conflicts_with_all = ["seeds", "first_seed", "seed", "scenario"])]
    exhaustive: bool,

    /// The module's config, as a JSON object.
    #[arg(long, value_name = "JSON")]
    config: Option<Value>,

    /// Write the history of the run that failed, or was asked for, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    /// Draw the run that failed, or was asked for, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// How many runs at a time; as many as there are processors if it is not given.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Where compiled modules are kept.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    cache_dir: Option<PathBuf>,
}

/// How often people are told how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Of an exhaustive run: who takes part, and how much each does.
const FEW: usize = 3;
const SHORT: usize = 8;

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        // What a component says in a run is in the history; there are thousands of runs.
        log_to_stderr("off");
        let source = ModuleSource::parse(&self.module);
        let bytes = source.read(None).map_err(|error| Failure::Config(error.to_string()))?;
        let cache = self.cache_dir.clone().map_or_else(user_cache, CompileCache::In);
        let subject = Subject::new(&source.name(), &bytes, self.config.clone(), cache)
            .map_err(|error| Failure::Config(error.to_string()))?;
        if let Some(path) = &self.scenario {
            let plan = read_plan(path)?;
            return self.one(printer, &subject, plan);
        }
        if self.exhaustive {
            return self.exhaust(printer, &subject);
        }
        match self.seed {
            Some(seed) => self.one(printer, &subject, workload::plan(&subject, seed)),
            None => self.search(printer, &subject),
        }
    }

    fn search(&self, printer: &Printer, subject: &Subject) -> Result<ExitCode, Failure> {
        let threads = self.jobs.or_else(|| std::thread::available_parallelism().ok());
        let search = Search {
            first: self.first_seed,
            counting: self.seeds,
            threads: threads.map_or(1, NonZeroUsize::get),
        };
        let mut told = Instant::now();
        let findings = search.run(subject, |findings| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                printer.remark(&format!(
                    "{} of {} seeds, {:.0} a second",
                    findings.counted,
                    self.seeds,
                    findings.seeds_per_second()
                ));
            }
        });
        let mut findings = findings.map_err(|error| Failure::Config(error.to_string()))?;
        match findings.failure.take() {
            Some(failing) => self.broken(printer, subject, failing),
            None => {
                let (text, json) = passed(&self.module, &findings);
                printer.report(&text, &json);
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn exhaust(&self, printer: &Printer, subject: &Subject) -> Result<ExitCode, Failure> {
        let mut told = Instant::now();
        let plan = exhaustive::small(subject, self.first_seed, FEW, SHORT);
        let exhausted = exhaustive::exhaust(subject, plan, |runs, all| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                printer.remark(&format!("{runs} of {all} runs"));
            }
        });
        let Exhausted { runs, coverage, failure } =
            exhausted.map_err(|error| Failure::Config(error.to_string()))?;
        if let Some(failing) = failure {
            return self.broken(printer, subject, failing);
        }
        let text = format!(
            "{}: every invariant held in {runs} runs, each with one fault at one request\n\n{}",
            self.module,
            coverage.table()
        );
        let json = json!({ "passed": true, "runs": runs, "coverage": cells(&coverage) });
        printer.report(&text, &json);
        Ok(ExitCode::SUCCESS)
    }

    fn one(&self, printer: &Printer, subject: &Subject, plan: Plan) -> Result<ExitCode, Failure> {
        let verdict = Verdict::of(subject, plan).map_err(|error| {
            let place = self.scenario.as_deref().map(|path| format!("{}: ", path.display()));
            Failure::Config(format!("{}{error}", place.unwrap_or_default()))
        })?;
        self.write_run(&verdict)?;
        let violations = &verdict.violations;
        let mut text = format!(
            "{}: {} operations, {} grants, {} faults that struck, {:.1} simulated seconds\n\
             history {}\n",
            self.module,
            verdict.tally.operations,
            verdict.tally.grants,
            verdict.tally.struck,
            verdict.simulated.as_secs_f64(),
            verdict.digest()
        );
        let json = json!({
            "passed": violations.is_empty(),
            "seed": verdict.plan.seed,
            "history": verdict.digest(),
            "violations": violations,
        });
        match violations.first() {
            None => text.push_str("every invariant held"),
            Some(violation) => {
                for line in timeline::around(&verdict.history, violation) {
                    writeln!(text, "{line}").unwrap_or_default();
                }
                for violation in violations {
                    let (id, sentence) = (violation.invariant, &violation.sentence);
                    writeln!(text, "{id}: {sentence}").unwrap_or_default();
                }
            }
        }
        printer.report(&text, &json);
        Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) })
    }

    /// Makes a failing run small and shows it.
    fn broken(
        &self,
        printer: &Printer,
        subject: &Subject,
        failing: Verdict,
    ) -> Result<ExitCode, Failure> {
        let Some(first) = failing.violations.first() else { return Ok(ExitCode::SUCCESS) };
        let (invariant, seed) = (first.invariant, failing.plan.seed);
        printer.remark(&format!("seed {seed} breaks {invariant}; looking for a smaller run"));
        let smallest = shrink(subject, failing, invariant);
        self.write_run(&smallest)?;
        let Some(violation) = smallest.violations.iter().find(|it| it.invariant == invariant)
        else {
            return Ok(ExitCode::from(BROKEN));
        };
        let stem = ModuleSource::parse(&self.module).name();
        let file = PathBuf::from(format!("{stem}-seed-{seed}.toml"));
        let plan = write_plan(&file, &smallest.plan)?;
        let mut text = format!(
            "{}: BROKEN by seed {seed}\n\n{invariant}: {}\n\n",
            self.module, violation.sentence
        );
        for line in timeline::around(&smallest.history, violation) {
            writeln!(text, "{line}").unwrap_or_default();
        }
        let Plan { applications, faults, .. } = &smallest.plan;
        let (file_name, module) = (file.display(), &self.module);
        write!(
            text,
            "\nThis is the smallest run found: {} applications, {} faults. Run it again with\n\
             \x20 wok test {module} --scenario {file_name}\n\
             and the whole seed with\n\
             \x20 wok test {module} --seed {seed}",
            applications.len(),
            faults.len(),
        )
        .unwrap_or_default();
        let json = json!({
            "passed": false,
            "seed": seed,
            "invariant": invariant,
            "sentence": violation.sentence,
            "scenario": file,
            "plan": plan,
        });
        printer.report(&text, &json);
        Ok(ExitCode::from(BROKEN))
    }

    fn write_run(&self, verdict: &Verdict) -> Result<(), Failure> {
        if let Some(path) = &self.history {
            let lines: Vec<String> = verdict::lines(&verdict.history).collect();
            write(path, &(lines.join("\n") + "\n"))?;
        }
        match &self.picture {
            Some(path) => write(path, &picture::svg(&verdict.history, verdict.violations.first())),
            None => Ok(()),
        }
    }
}

fn read_plan(path: &Path) -> Result<Plan, Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        Failure::Config(format!("the scenario {}: {error}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
    toml::from_str(&text).map_err(|error| refused(&error))
}

fn write_plan(path: &Path, plan: &Plan) -> Result<String, Failure> {
    let text = toml::to_string(plan)
        .map_err(|error| Failure::Config(format!("the scenario cannot be written: {error}")))?;
    write(path, &text)?;
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::Config(format!("cannot write {}: {error}", path.display())))
}

fn passed(module: &str, findings: &Findings) -> (String, Value) {
    let Findings { runs, counted, operations, grants, coverage, .. } = findings;
    let (rate, speed_up) = (findings.seeds_per_second(), findings.speed_up());
    let least = coverage.least();
    let least_text = least.map(|(fault, call, hits)| {
        format!("least: {} in the middle of {call}, {hits} times", fault.name())
    });
    let text = format!(
        "{module}: every invariant held in {counted} seeds that count, of {runs}\n\
         {operations} operations, {grants} grants; {:.0} simulated seconds in {:.1} s: {rate:.0} \
         seeds/s, {speed_up:.0}x\n\n\
         How often a fault struck a host call in flight:\n{}\n{}",
        findings.simulated.as_secs_f64(),
        findings.took.as_secs_f64(),
        coverage.table(),
        least_text.unwrap_or_default()
    );
    let json = json!({
        "passed": true,
        "seeds": counted,
        "runs": runs,
        "operations": operations,
        "grants": grants,
        "seeds-per-second": rate,
        "speed-up": speed_up,
        "coverage": cells(coverage),
        "least": least.map(|(fault, call, hits)| json!({
            "fault": fault.name(), "host-call": call, "hits": hits,
        })),
    });
    (text, json)
}

fn cells(coverage: &Coverage) -> Value {
    let row = |fault: FaultKind| {
        let row: serde_json::Map<String, Value> = coverage
            .calls()
            .map(|call| (call.to_owned(), json!(coverage.hits(fault, call))))
            .collect();
        (fault.name().to_owned(), Value::Object(row))
    };
    Value::Object(FaultKind::ALL.into_iter().map(row).collect())
}
