//! `wok test`: a module in simulation.

mod files;
mod gaps;
mod interrupt;
mod judge;
mod report;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::exit::{BROKEN, Failure, INCOMPLETE, INTERRUPTED};
use super::joining::object;
use super::log::log_to_stderr;
use super::next::{path_word, word};
use super::output::Printer;
use super::promise;
use crate::base::user_cache;
use crate::guest::CompileCache;
use crate::modules::ModuleSource;
use crate::simulation::called::Called;
use crate::simulation::exhaustive::{self, Exhausted};
use crate::simulation::judges::{Violation, gravest};
use crate::simulation::picture;
use crate::simulation::plan::Plan;
use crate::simulation::scenario::Scenario;
use crate::simulation::search::{Findings, Search};
use crate::simulation::shrink::shrink;
use crate::simulation::subject::{Given, Origin as WorkloadOrigin, Subject};
use crate::simulation::verdict::{self, Verdict};
use crate::simulation::workload;
use files::{of_subject, read, read_scenario, write, write_scenario};
use gaps::{Extent, Gaps};

/// Run a module in simulation: hosts that lose their connections, are stopped and killed, over an
/// ensemble that falls behind and changes its leader, until an invariant breaks.
///
/// One seed decides everything in a run. A seed that fails is made small and shown, and fails
/// again, bit for bit, wherever it is run.
///
/// The recipe's workload says who calls which operation: --workload, else promise/workload.toml
/// beside the component, else what `wok build` has put into it, else that of the stock recipe with the
/// same interface. Without any, all operations are called at random, with arguments of their types.
///
/// Every recipe owes that it leaves nothing behind, stays within its bounds, tells of what it loses,
/// and, once the faults are over, answers every call that it would answer without them. What it
/// promises beyond that, the judge of its promise says: the one of --judge, or else the one that the
/// module carries along, or that stands beside it as <name>.judge.wasm, or else that of the stock
/// recipe whose interface it exports. What was not judged, and which operations were never called, is
/// told first and is no pass. Only a scenario leaves operations out on purpose.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok test lock\n  \
    wok test ./my-lock.wasm --seeds 10000\n  \
    wok test ./my-lock.wasm --seed 17 --history run.jsonl\n  \
    wok test ./my-lock.wasm --config format=kazoo\n  \
    wok test ./my-lock.wasm --scenario two-hosts.toml\n  \
    wok test ./my-queue.wasm --judge ./queue-judge.wasm\n  \
    wok test ./my-lock.wasm --scenario two-hosts.toml --seeds 1000\n  \
    wok test ./my-lock.wasm --exhaustive\n\n\
    Ends with 0 if every invariant held; 1 if one was broken, or so little happened that nothing \
    was judged; 2 if nothing was broken, but no judge knows the interface, or operations were never \
    called or only answered errors; 70 if the judge failed; 74 if the history or the picture \
    cannot be written; 78 if the module, its workload or the \
    scenario is wrong; 130 after Ctrl-C.")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,

    /// How many seeds have to pass; only those count in which enough was called, succeeded and was
    /// struck by faults. 1000 if it is not given.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true,
        conflicts_with = "seed")]
    seeds: Option<u64>,

    /// The first of them; 1 if it is not given. An exhaustive run is that of the few seeds from it on
    /// which calls the most.
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true,
        conflicts_with = "seed")]
    first_seed: Option<u64>,

    /// Run one seed, and nothing else.
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,

    /// Run what a file says: who does what, and what is done to them. With --seeds or --seed it says
    /// who does what, and the seeds add what is done to them.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Have the module used as this file says, instead of its own workload.
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    workload: Option<PathBuf>,

    /// Strike every request and every wait of a small run with a lost connection, the session's end
    /// and a withdrawn call, instead of drawing faults.
    #[arg(long, conflicts_with_all = ["seeds", "seed", "scenario"])]
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

    /// The judge of what the module promises: a component, from `wok build --judge`.
    #[arg(long, value_name = "FILE")]
    judge: Option<PathBuf>,

    /// How many runs at a time; as many as there are processors if it is not given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "exhaustive")]
    jobs: Option<NonZeroUsize>,

    /// Where compiled modules are kept.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    cache_dir: Option<PathBuf>,
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a number from 0 to {}", u64::MAX))
}

fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("it is a number of seeds, from 1 to {}", u64::MAX))
}

/// What a failing run was made of.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Seed,
    Exhaustive,
}

/// How many seeds have to pass, unless it is said.
const SEEDS: u64 = 1_000;

/// How often people are told how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Of an exhaustive run: who takes part, and how much each does.
const FEW: usize = 3;
const SHORT: usize = 8;

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        // What a component says in a run is in the history; there are thousands of runs.
        log_to_stderr("off", printer);
        let source = ModuleSource::parse(&self.module);
        let bytes = source.read(None).map_err(|error| Failure::Config(error.to_string()))?;
        let cache = self.cache_dir.clone().map_or_else(user_cache, CompileCache::In);
        let config = match self.config.is_empty() {
            true => None,
            false => Some(object("config", &self.config)?),
        };
        let judge = promise::judge(self.judge.as_deref(), &source, &bytes, &cache)?;
        let scenario = self.scenario.as_deref().map(read_scenario).transpose()?;
        let scenario = scenario.as_ref();
        let given = self.given(&source, scenario)?;
        let subject = Subject::with(&source.name(), &bytes, config, cache, given)
            .map_err(|error| of_subject(&error, scenario))?;
        let subject = match judge {
            Some(judge) => subject.judged_by(judge),
            None => subject,
        };
        subject.check_config().map_err(|error| of_subject(&error, scenario))?;
        if let WorkloadOrigin::Nowhere = subject.origin() {
            printer.remark(
                "nobody has written a workload: all operations are called at random \
                 (promise/workload.toml says who calls what)",
            );
        }
        for operation in subject.blocking() {
            printer.remark(&format!(
                "`{operation}` was left without an answer when nothing was done to it: nobody is \
                 asked whether it ends; a workload or a scenario asks"
            ));
        }
        if self.exhaustive {
            return self.exhaust(printer, &subject);
        }
        match (self.seed, scenario) {
            (Some(seed), _) => {
                self.one(printer, &subject, workload::plan(&subject, seed), scenario)
            }
            (None, Some(it)) if self.seeds.is_none() && self.first_seed.is_none() => {
                self.one(printer, &subject, it.plan().clone(), scenario)
            }
            _ => self.search(printer, &subject, scenario),
        }
    }

    /// What the module is to be used as.
    fn given(&self, source: &ModuleSource, scenario: Option<&Scenario>) -> Result<Given, Failure> {
        let name = |path: &Path| path.display().to_string();
        if let Some(scenario) = scenario {
            let plan = Box::new(scenario.plan().clone());
            return Ok(Given::Scenario { name: scenario.name().to_owned(), plan });
        }
        if let Some(path) = &self.workload {
            return Ok(Given::File { name: name(path), text: read("workload", path)? });
        }
        match promise::workload(source) {
            Some(beside) => {
                Ok(Given::File { name: name(&beside), text: read("workload", &beside)? })
            }
            None => Ok(Given::Own),
        }
    }

    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(SEEDS)
    }

    fn first_seed(&self) -> u64 {
        self.first_seed.unwrap_or(1)
    }

    fn search(
        &self,
        printer: &Printer,
        subject: &Subject,
        scenario: Option<&Scenario>,
    ) -> Result<ExitCode, Failure> {
        let threads = self.jobs.or_else(|| std::thread::available_parallelism().ok());
        let search = Search {
            first: self.first_seed(),
            counting: self.seeds(),
            threads: threads.map_or(1, NonZeroUsize::get),
        };
        let is_stopped = interrupt::flag();
        let mut told = Instant::now();
        let findings = search.run_unless(subject, &is_stopped, |findings| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                printer.remark(&format!(
                    "{} of {} seeds, {:.0} a second",
                    findings.counted,
                    self.seeds(),
                    findings.seeds_per_second()
                ));
            }
        });
        let mut findings = findings.map_err(|error| judge::failure(&error, scenario))?;
        let gaps = Gaps::of(subject, Extent::Search, &findings.called);
        if let Some(failing) = findings.failure.take() {
            let gaps = Gaps::of_any(subject);
            return self.broken(printer, subject, failing, Origin::Seed, &gaps, &is_stopped);
        }
        if findings.was_stopped {
            let (text, json) = report::stopped(&self.module, &findings, self.seeds(), &gaps);
            printer.report(&text, &json);
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if let Some(why) = self.is_worthless(subject, &findings) {
            return Ok(self.worthless(printer, subject, findings.runs, &why, &gaps));
        }
        let (text, mut json) = report::passed(&self.module, &findings, &gaps);
        if let Some(json) = json.as_object_mut().filter(|_| subject.blocking().len() > 0) {
            json.insert("may-block".to_owned(), subject.blocking().collect());
        }
        judge::report(printer, subject, text, json);
        Ok(passing(&gaps))
    }

    /// Why what was found says nothing, if it does not.
    fn is_worthless(&self, subject: &Subject, findings: &Findings) -> Option<String> {
        let Findings { runs, counted, operations, succeeded, grants, .. } = findings;
        if *counted < self.seeds() {
            return Some(format!(
                "only {counted} of {runs} runs count, with {operations} operations in all, of which \
                 {succeeded} succeeded: in the others too little was called, or hardly anything of it \
                 succeeded, or hardly a fault struck a host call; a workload says what is called \
                 (promise/workload.toml)"
            ));
        }
        is_without_grants(subject, *runs, *grants)
    }

    /// What says nothing is no pass.
    fn worthless(
        &self,
        printer: &Printer,
        subject: &Subject,
        runs: u64,
        why: &str,
        gaps: &Gaps,
    ) -> ExitCode {
        let mut json = json!({ "passed": false, "runs": runs, "reason": why });
        gaps.add_to(&mut json);
        let text = format!("{}{}: {why}", gaps.text(), self.module);
        judge::report(printer, subject, text, json);
        ExitCode::from(BROKEN)
    }

    fn exhaust(&self, printer: &Printer, subject: &Subject) -> Result<ExitCode, Failure> {
        let mut told = Instant::now();
        let plan = exhaustive::widest(subject, self.first_seed(), FEW, SHORT)
            .map_err(|error| judge::failure(&error, None))?;
        let exhausted = exhaustive::exhaust(subject, plan, |runs, all| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                printer.remark(&format!("{runs} of {all} runs"));
            }
        });
        let mut exhausted = exhausted.map_err(|error| judge::failure(&error, None))?;
        if let Some(failing) = exhausted.failure.take() {
            let (gaps, is_stopped) = (Gaps::of_any(subject), interrupt::flag());
            return self.broken(printer, subject, failing, Origin::Exhaustive, &gaps, &is_stopped);
        }
        let gaps = Gaps::of(subject, Extent::Small, &exhausted.called);
        let Exhausted { runs, struck, grants, .. } = exhausted;
        if struck == 0 {
            let why = format!(
                "no fault struck anything in {runs} runs: nothing that was called asks the ensemble \
                 for anything; a workload says what is called (promise/workload.toml)"
            );
            return Ok(self.worthless(printer, subject, runs, &why, &gaps));
        }
        if subject.operations().all(|operation| exhausted.called.answered(operation) == 0) {
            let why = format!("no operation succeeded in {runs} runs, so that nothing was judged");
            return Ok(self.worthless(printer, subject, runs, &why, &gaps));
        }
        if let Some(why) = is_without_grants(subject, runs, grants) {
            return Ok(self.worthless(printer, subject, runs, &why, &gaps));
        }
        let (text, json) = report::exhausted(&self.module, &exhausted, &gaps);
        judge::report(printer, subject, text, json);
        Ok(passing(&gaps))
    }

    fn one(
        &self,
        printer: &Printer,
        subject: &Subject,
        plan: Plan,
        scenario: Option<&Scenario>,
    ) -> Result<ExitCode, Failure> {
        let verdict =
            Verdict::of(subject, plan).map_err(|error| judge::failure(&error, scenario))?;
        let gaps = Gaps::of(subject, Extent::One, &Called::of(&verdict.history));
        let (came, planned) = (verdict.came(), verdict.plan.faults.len());
        if scenario.is_some() && self.seed.is_none() && came < planned {
            printer.remark(&format!(
                "{} of the {planned} faults never came: nothing was as their `when` says, or there was \
                 nothing for them to strike",
                planned - came
            ));
        }
        let (text, json) = report::one(&self.module, subject, &verdict, &gaps);
        judge::report(printer, subject, text, json);
        // Behind the report: what was found is told in any case, and counts.
        let written = self.write_run(subject, &verdict, gravest(&verdict.violations));
        if verdict.violations.is_empty() {
            let unjudged = report::why_unjudged(&verdict);
            return written
                .map(|()| if unjudged.is_none() { passing(&gaps) } else { BROKEN.into() });
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
        gaps: &Gaps,
        is_stopped: &AtomicBool,
    ) -> Result<ExitCode, Failure> {
        let Some(first) = gravest(&failing.violations) else { return Ok(ExitCode::SUCCESS) };
        let (invariant, seed) = (first.invariant.clone(), failing.plan.seed);
        let name = match origin {
            Origin::Seed => format!("seed {seed}"),
            Origin::Exhaustive if failing.plan.faults.is_empty() => {
                "a run without faults".to_owned()
            }
            Origin::Exhaustive => "one fault".to_owned(),
        };
        printer.remark(&format!("{name} breaks {invariant}; looking for a smaller run"));
        let smallest = shrink(subject, failing, &invariant, is_stopped);
        let Some(violation) = smallest.violations.iter().find(|it| it.invariant == invariant)
        else {
            return Ok(ExitCode::from(BROKEN));
        };
        let stem = ModuleSource::parse(&self.module).name();
        let stem = match origin {
            Origin::Seed => format!("{stem}-seed-{seed}"),
            Origin::Exhaustive => format!("{stem}-exhaustive"),
        };
        let plan = toml::to_string(&smallest.plan.clone().for_a_file(subject.config()));
        let written = match &plan {
            Ok(plan) => write_scenario(&stem, plan),
            Err(error) => Err(Failure::Config(format!("the scenario cannot be written: {error}"))),
        };
        let module = &self.module;
        let mut text = format!(
            "{}{module}: BROKEN by {name}\n\n{}",
            gaps.text(),
            report::story(subject, &smallest, violation)
        );
        let Plan { applications, faults, .. } = &smallest.plan;
        write!(
            text,
            "\nThis is the smallest run found: {} applications, {} faults. ",
            applications.len(),
            faults.len(),
        )
        .unwrap_or_default();
        text += &match &written {
            Ok(file) => format!(
                "Run it again with\n  wok test {} --scenario {}{}",
                word(module),
                path_word(file),
                judge::argument(self.judge.as_deref()),
            ),
            Err(failed) => failed.to_string(),
        };
        if let Origin::Seed = origin {
            let how = self.again();
            let module = word(module);
            write!(text, "\nand the whole seed with\n\x20 wok test {module} --seed {seed}{how}")
                .unwrap_or_default();
        }
        let mut json = json!({
            "passed": false,
            "seed": seed,
            "invariant": invariant,
            "sentence": violation.sentence,
            "scenario": written.as_ref().ok(),
            "plan": plan.as_ref().ok(),
        });
        gaps.add_to(&mut json);
        judge::report(printer, subject, text, json);
        // What was found is told, and counts, though it cannot be drawn.
        if let Err(failed) = self.write_run(subject, &smallest, Some(violation)) {
            printer.remark(&failed.to_string());
        }
        Ok(ExitCode::from(BROKEN))
    }

    /// The arguments that decide a run besides its seed.
    fn again(&self) -> String {
        let files =
            [("scenario", &self.scenario), ("workload", &self.workload), ("judge", &self.judge)];
        let files = files.into_iter().filter_map(|(name, path)| {
            path.as_deref().map(|path| format!(" --{name} {}", path_word(path)))
        });
        let config = self.config.iter().map(|config| format!(" --config {}", word(config)));
        files.chain(config).collect()
    }

    fn write_run(
        &self,
        subject: &Subject,
        verdict: &Verdict,
        violation: Option<&Violation>,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.history {
            let lines: Vec<String> = verdict::lines(&verdict.history).collect();
            write(path, &(lines.join("\n") + "\n"))?;
        }
        match &self.picture {
            Some(path) => write(path, &picture::svg(&verdict.history, violation, subject.judge())),
            None => Ok(()),
        }
    }
}

/// A pass is one of all that the module offers.
fn passing(gaps: &Gaps) -> ExitCode {
    if gaps.are_none() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) }
}

/// Of a recipe that claims what it grants, it is the grants that are judged.
fn is_without_grants(subject: &Subject, runs: u64, grants: u64) -> Option<String> {
    (subject.is_judged() && subject.claims() && grants == 0)
        .then(|| format!("nobody was granted anything in {runs} runs, so that nothing was judged"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// What is said of `wok test lock` with these arguments.
    #[track_caller]
    fn refused(option: &str, value: &str) -> String {
        let line = ["wok", "test", "lock", option, value];
        let refused = crate::cli::Arguments::command().try_get_matches_from(line).unwrap_err();
        refused.to_string()
    }

    #[test]
    fn what_is_no_seed_is_told_with_what_is_one() {
        for (option, value, expected) in [
            ("--seed", "-1", "a seed is a number from 0 to 18446744073709551615"),
            ("--first-seed", "-1", "a seed is a number from 0 to 18446744073709551615"),
            ("--seed", "18446744073709551616", "a seed is a number from 0 to"),
            ("--seed", "one", "a seed is a number from 0 to"),
            ("--seeds", "-1", "it is a number of seeds, from 1 to 18446744073709551615"),
            ("--seeds", "0", "it is a number of seeds, from 1 to"),
        ] {
            let told = refused(option, value);
            assert!(told.contains(&format!("invalid value '{value}' for '{option}")), "{told}");
            assert!(told.contains(expected), "{told}");
        }
        let told = refused("--jobs", "-1");
        assert!(told.contains("invalid value '-1' for '--jobs"), "{told}");
    }
}
