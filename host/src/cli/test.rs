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
use super::joining::object;
use super::output::{Printer, log_to_stderr};
use crate::guest::CompileCache;
use crate::host::user_cache;
use crate::modules::ModuleSource;
use crate::simulation::coverage::Coverage;
use crate::simulation::exhaustive::{self, Exhausted};
use crate::simulation::history::FaultKind;
use crate::simulation::judges::Interface;
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
/// nothing behind, that it stays within its bounds, and that whatever is answered when nothing is
/// done to it is answered in the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok test lock\n  \
    wok test ./my-lock.wasm --seeds 10000\n  \
    wok test ./my-lock.wasm --seed 17 --history run.jsonl\n  \
    wok test ./my-lock.wasm --config format=kazoo\n  \
    wok test ./my-lock.wasm --scenario two-hosts.toml\n  \
    wok test ./my-lock.wasm --exhaustive\n\n\
    Ends with 0 if every invariant held, 1 if one was broken or so little happened that nothing \
    was judged.")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,

    /// How many seeds have to pass; only those count in which enough happened.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["seed", "scenario"])]
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

    /// Strike every request and every wait of a small run with a lost connection, the session's end
    /// and a withdrawn call, instead of drawing faults.
    #[arg(long, conflicts_with_all = ["seeds", "first_seed", "seed", "scenario"])]
    exhaustive: bool,

    /// The module's own configuration: `name=value`, or one JSON object.
    #[arg(long, value_name = "NAME=VALUE")]
    config: Vec<String>,

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

/// What a failing run was made of.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Seed,
    Exhaustive,
}

/// How often people are told how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Of an exhaustive run: who takes part, and how much each does.
const FEW: usize = 3;
const SHORT: usize = 8;

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        // What a component says in a run is in the history; there are thousands of runs.
        log_to_stderr("off", printer.output());
        let source = ModuleSource::parse(&self.module);
        let bytes = source.read(None).map_err(|error| Failure::Config(error.to_string()))?;
        let cache = self.cache_dir.clone().map_or_else(user_cache, CompileCache::In);
        let config = match self.config.is_empty() {
            true => None,
            false => Some(object("config", &self.config)?),
        };
        let subject = Subject::new(&source.name(), &bytes, config, cache)
            .map_err(|error| Failure::Config(error.to_string()))?;
        if let Some(path) = &self.scenario {
            let plan = read_plan(path)?;
            return self.one(printer, &subject, plan);
        }
        subject.check_config().map_err(|error| Failure::Config(error.to_string()))?;
        if !subject.is_callable() {
            let reason = "none of its operations can be called without arguments; say what is \
                          called in a scenario file, and run it with --scenario";
            return Err(Failure::Config(format!("{}: {reason}", self.module)));
        }
        for operation in subject.blocking() {
            printer.remark(&format!(
                "`{operation}` was left without an answer when nothing was done to it: nobody is \
                 asked whether it ends; a scenario without a deadline for it asks"
            ));
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
        if let Some(failing) = findings.failure.take() {
            return self.broken(printer, subject, failing, Origin::Seed);
        }
        if let Some(why) = self.is_worthless(subject, &findings) {
            return Ok(self.worthless(printer, findings.runs, &why));
        }
        let (text, mut json) = passed(&self.module, &findings);
        if let Some(json) = json.as_object_mut().filter(|_| subject.blocking().len() > 0) {
            json.insert("not-judged".to_owned(), subject.blocking().collect());
        }
        printer.report(&text, &json);
        Ok(ExitCode::SUCCESS)
    }

    /// Why what was found says nothing, if it does not.
    fn is_worthless(&self, subject: &Subject, findings: &Findings) -> Option<String> {
        let Findings { runs, counted, operations, grants, .. } = findings;
        if *counted < self.seeds {
            return Some(format!(
                "only {counted} of {runs} runs count, with {operations} operations in all: in the \
                 others too little was called, or no two faults struck a host call; say what is \
                 called in a scenario file, and run it with --scenario"
            ));
        }
        is_without_grants(subject, *runs, *grants)
    }

    /// What says nothing is no pass.
    fn worthless(&self, printer: &Printer, runs: u64, why: &str) -> ExitCode {
        let json = json!({ "passed": false, "runs": runs, "reason": why });
        printer.report(&format!("{}: {why}", self.module), &json);
        ExitCode::from(BROKEN)
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
        let Exhausted { runs, struck, grants, coverage, failure } =
            exhausted.map_err(|error| Failure::Config(error.to_string()))?;
        if let Some(failing) = failure {
            return self.broken(printer, subject, failing, Origin::Exhaustive);
        }
        if struck == 0 {
            let why = format!(
                "no fault struck anything in {runs} runs: nothing that was called asks the ensemble \
                 for anything; say what is called in a scenario file, and run it with --scenario"
            );
            return Ok(self.worthless(printer, runs, &why));
        }
        if let Some(why) = is_without_grants(subject, runs, grants) {
            return Ok(self.worthless(printer, runs, &why));
        }
        let text = format!(
            "{}: every invariant held in {runs} runs, {struck} of them with one fault at one moment; \
             in the others there was nothing for it to strike\n\n{}",
            self.module,
            coverage.table()
        );
        let json = json!({
            "passed": true, "runs": runs, "struck": struck, "coverage": cells(&coverage),
        });
        printer.report(&text, &json);
        Ok(ExitCode::SUCCESS)
    }

    fn one(&self, printer: &Printer, subject: &Subject, plan: Plan) -> Result<ExitCode, Failure> {
        let verdict = Verdict::of(subject, plan).map_err(|error| {
            let place = self.scenario.as_deref().map(|path| format!("{}: ", path.display()));
            Failure::Config(format!("{}{error}", place.unwrap_or_default()))
        })?;
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
        let (came, planned) = (verdict.came(), verdict.plan.faults.len());
        if self.scenario.is_some() && came < planned {
            printer.remark(&format!(
                "{} of the {planned} faults never came: nothing was as their `when` says, or there was \
                 nothing for them to strike",
                planned - came
            ));
        }
        printer.report(&text, &json);
        // Behind the report: what was found is told in any case, and counts.
        let written = self.write_run(&verdict);
        if violations.is_empty() {
            return written.map(|()| ExitCode::SUCCESS);
        }
        if let Err(failed) = written {
            printer.remark(&failed.to_string());
        }
        Ok(ExitCode::from(BROKEN))
    }

    /// Makes a failing run small and shows it.
    fn broken(
        &self,
        printer: &Printer,
        subject: &Subject,
        failing: Verdict,
        origin: Origin,
    ) -> Result<ExitCode, Failure> {
        let Some(first) = failing.violations.first() else { return Ok(ExitCode::SUCCESS) };
        let (invariant, seed) = (first.invariant, failing.plan.seed);
        let name = match origin {
            Origin::Seed => format!("seed {seed}"),
            Origin::Exhaustive if failing.plan.faults.is_empty() => {
                "a run without faults".to_owned()
            }
            Origin::Exhaustive => "one fault".to_owned(),
        };
        printer.remark(&format!("{name} breaks {invariant}; looking for a smaller run"));
        let smallest = shrink(subject, failing, invariant);
        let Some(violation) = smallest.violations.iter().find(|it| it.invariant == invariant)
        else {
            return Ok(ExitCode::from(BROKEN));
        };
        let stem = ModuleSource::parse(&self.module).name();
        let file = PathBuf::from(match origin {
            Origin::Seed => format!("{stem}-seed-{seed}.toml"),
            Origin::Exhaustive => format!("{stem}-exhaustive.toml"),
        });
        let plan = toml::to_string(&smallest.plan);
        let written = match &plan {
            Ok(plan) => write(&file, plan),
            Err(error) => Err(Failure::Config(format!("the scenario cannot be written: {error}"))),
        };
        let mut text =
            format!("{}: BROKEN by {name}\n\n{invariant}: {}\n\n", self.module, violation.sentence);
        for line in timeline::around(&smallest.history, violation) {
            writeln!(text, "{line}").unwrap_or_default();
        }
        let Plan { applications, faults, .. } = &smallest.plan;
        let (file_name, module) = (file.display(), &self.module);
        write!(
            text,
            "\nThis is the smallest run found: {} applications, {} faults. Run it again with\n\
             \x20 wok test {module} --scenario {file_name}",
            applications.len(),
            faults.len(),
        )
        .unwrap_or_default();
        if let Origin::Seed = origin {
            let config: String =
                self.config.iter().map(|config| format!(" --config '{config}'")).collect();
            write!(text, "\nand the whole seed with\n\x20 wok test {module} --seed {seed}{config}")
                .unwrap_or_default();
        }
        let json = json!({
            "passed": false,
            "seed": seed,
            "invariant": invariant,
            "sentence": violation.sentence,
            "scenario": file,
            "plan": plan.as_ref().ok(),
        });
        printer.report(&text, &json);
        // What was found is told, and counts, though it cannot be written down.
        for failed in [written, self.write_run(&smallest)].into_iter().filter_map(Result::err) {
            printer.remark(&failed.to_string());
        }
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

/// Of an interface whose operations grant something, it is the grants that are judged.
fn is_without_grants(subject: &Subject, runs: u64, grants: u64) -> Option<String> {
    (subject.interface() != Interface::Unknown && grants == 0)
        .then(|| format!("nobody was granted anything in {runs} runs, so that nothing was judged"))
}

fn read_plan(path: &Path) -> Result<Plan, Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        Failure::Config(format!("the scenario {}: {error}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
    toml::from_str(&text).map_err(|error| refused(&error))
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
