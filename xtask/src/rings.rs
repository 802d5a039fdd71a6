//! `cargo xtask test`: the rings of tests, each part timed, none of them skipped silently.
//!
//! Ring 1 is the unit tests beside the code, ring 2 the release `.wasm` of recipes in simulation,
//! ring 3 the tests on a real Apache ZooKeeper. Those of ring 3 that build recipes from their sources are
//! played beside ring 2.
//! The last line printed is the sum over all runs of cargo's own summaries.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::progress::{self, spell};
use crate::setup::{self, Purpose};
use crate::{process, stop, workspace};

mod failures;
mod needs;
mod summary;

use failures::Failures;
use needs::{Need, Tests};
use summary::Figures;

/// How many minutes all parts together may take. They are to take less than an hour, together with what
/// else CI asks for; a machine that is a little slower than most must not fail for it.
const MINUTES: u64 = 76;

/// The package whose tests need a ZooKeeper server.
const REAL: &str = "wok-tests";

/// The test of recipes in simulation.
const SIMULATION: &str = "simulation";

/// A test of another package that needs one.
const REAL_TEST: (&str, &str) = ("wok-embedded", "hand_over");

/// Those of [`REAL`] that build recipes from their sources. They wait for a compiler that has one thread
/// most of the time, and hardly ever for a server; no promise of a time is played in them.
const SOURCES: [&str; 3] = ["authors", "guide", "languages"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The rings to run; all of them if none is named
    #[arg(value_enum)]
    rings: Vec<Ring>,
    /// How many minutes all parts together may take
    #[arg(long, value_name = "MINUTES", default_value_t = MINUTES, value_parser = clap::value_parser!(u64).range(1..=1440))]
    within: u64,
}

/// One ring of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ring {
    /// Unit tests, beside the code
    #[value(name = "1")]
    Units,
    /// Recipes in simulation
    #[value(name = "2")]
    Simulation,
    /// Tests on a real Apache ZooKeeper
    #[value(name = "3")]
    Real,
}

impl Ring {
    fn parts(self) -> &'static [Part] {
        match self {
            Self::Units => &[Part::Units],
            Self::Simulation => &[Part::Simulation],
            Self::Real => &[Part::Sources, Part::Servers],
        }
    }
}

/// The tests of a ring that one cargo plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Units,
    Simulation,
    Sources,
    Servers,
}

impl Part {
    fn of(package: &str, test: &str) -> Self {
        match test {
            _ if package == REAL && SOURCES.contains(&test) => Self::Sources,
            _ if package == REAL || (package, test) == REAL_TEST => Self::Servers,
            SIMULATION => Self::Simulation,
            _ => Self::Units,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Units => "ring 1: unit tests",
            Self::Simulation => "ring 2: recipes in simulation",
            Self::Sources => "ring 3: recipes from sources",
            Self::Servers => "ring 3: real ZooKeeper",
        }
    }

    /// Its targets, less programs that lack something. The packages are always all, so that nothing is
    /// compiled twice.
    fn targets(self, missing: &[Missing]) -> Result<Vec<String>> {
        let mut targets: Vec<String> = workspace::integration_tests()?
            .into_iter()
            .filter(|(package, test)| Self::of(package, test) == self)
            .filter(|(_, test)| !missing.iter().any(|(need, _)| need.is_whole_program(test)))
            .map(|(_, test)| format!("--test={test}"))
            .collect();
        if self == Self::Units {
            targets.extend(["--lib".to_owned(), "--bins".to_owned()]);
        }
        Ok(targets)
    }
}

/// What this machine lacks, and why.
type Missing = (Need, anyhow::Error);

/// Some part failed; everything there is to say about it is printed.
#[derive(Debug)]
pub(crate) struct Red;

impl std::fmt::Display for Red {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("some part failed")
    }
}

impl std::error::Error for Red {}

/// A part that was played.
struct Row {
    title: String,
    took: Duration,
    told: Told,
    outcome: Result<()>,
}

/// What cargo's tests told in a part.
#[derive(Debug, Default)]
struct Told {
    figures: Figures,
    failures: Failures,
}

impl Told {
    fn read(&mut self, line: &str) {
        self.figures.read(line);
        self.failures.read(line);
    }
}

/// `cargo xtask test`.
pub(crate) fn test(arguments: &Arguments) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(arguments.within.saturating_mul(60));
    let rings = match arguments.rings.is_empty() {
        true => Ring::value_variants(),
        false => &arguments.rings,
    };
    let mut rows = vec![part("set-up", |_| setup::make_ready(Purpose::Test))?];
    rows.push(part("build", |_| build(deadline))?);
    // Looked for once: what is left out and what is said to be left out are the same.
    let missing = needs::missing();
    // The same commands run although their build failed: they say so in their own figures.
    let play = |it: Part| part(it.title(), |told| play(it, &missing, deadline, told));
    let parts: Vec<Part> = rings.iter().flat_map(|ring| ring.parts()).copied().collect();
    // A simulation keeps its processors busy, and a compiler that has one thread leaves some idle.
    let is_beside = parts.contains(&Part::Simulation) && parts.contains(&Part::Sources);
    for it in parts {
        match it {
            Part::Simulation if is_beside => {
                let (simulated, built) = std::thread::scope(|scope| {
                    let built = scope.spawn(|| play(Part::Sources));
                    (play(it), built.join())
                });
                rows.push(simulated?);
                rows.push(built.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Part::Sources if is_beside => {}
            _ => rows.push(play(it)?),
        }
    }
    for ring in rings {
        let of_the_ring = missing.iter().filter(|(need, _)| need.rings.contains(ring));
        rows.extend(of_the_ring.map(|(need, why)| not_played(need, why)));
    }
    conclude(&rows)
}

/// Plays one part; only Ctrl-C keeps the next one from its turn.
fn part(title: &str, body: impl FnOnce(&mut Told) -> Result<()>) -> Result<Row> {
    let started = Instant::now();
    let mut told = Told::default();
    let outcome = body(&mut told);
    stop::look()?;
    if let Err(error) = &outcome {
        eprintln!("error: {title}: {error:#}");
    }
    Ok(Row { title: title.to_owned(), took: started.elapsed(), told, outcome })
}

/// What a machine cannot play is said loudly where it is not played.
fn not_played(need: &Need, why: &anyhow::Error) -> Row {
    let title = format!("{}: NOT PLAYED", need.title);
    progress::wrong(&format!("{title}: {why:#}; to have it played, {}", need.remedy));
    Row { title, took: Duration::ZERO, told: Told::default(), outcome: Ok(()) }
}

fn build(deadline: Instant) -> Result<()> {
    progress::heading("build");
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--profile=ci", "--workspace", "--no-run"]);
    let status = process::run("cargo test --no-run", &mut cargo, left(deadline)?, |_| {})?;
    anyhow::ensure!(status.success(), "cargo test --no-run: {}", process::describe(status));
    Ok(())
}

fn play(part: Part, missing: &[Missing], deadline: Instant, told: &mut Told) -> Result<()> {
    progress::heading(part.title());
    let mut cargo = workspace::cargo();
    cargo
        .args(["test", "--profile=ci", "--workspace", "--no-fail-fast"])
        .args(part.targets(missing)?);
    // Built along with the tests, so the tests need not ask for it.
    cargo.env("WOK_BINARY", workspace::target()?.join("ci/wok"));
    cargo.arg("--");
    for (need, _) in missing {
        if let Tests::Module(name) = need.tests {
            cargo.arg(format!("--skip={name}::"));
        }
    }
    match part {
        Part::Units | Part::Sources => {}
        // What was simulated: coverage, and what each mutant was caught by.
        Part::Simulation => drop(cargo.arg("--show-output")),
        // Most of the time they wait: for a session to end, a server to start, a command to be killed.
        Part::Servers => drop(cargo.arg("--test-threads=4")),
    }
    cargo_test(cargo, deadline, told)?;
    if part == Part::Units {
        // The examples in documents, which cargo plays in a run of their own.
        let mut cargo = workspace::cargo();
        cargo.args(["test", "--profile=ci", "--workspace", "--no-fail-fast", "--doc"]);
        cargo_test(cargo, deadline, told)?;
    }
    told.figures.judge()
}

fn cargo_test(mut cargo: Command, deadline: Instant, told: &mut Told) -> Result<()> {
    let status = process::run("cargo test", &mut cargo, left(deadline)?, |line| {
        told.read(line);
    })?;
    anyhow::ensure!(status.success(), "cargo test: {}", process::describe(status));
    Ok(())
}

fn left(deadline: Instant) -> Result<Duration> {
    deadline
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .context("not started: the time of all parts is up; `--within` gives them more")
}

/// Prints what failed, the table and, as the last line, the sum.
fn conclude(rows: &[Row]) -> Result<()> {
    let mut failed = rows.iter().flat_map(|row| row.told.failures.lines()).peekable();
    if failed.peek().is_some() {
        progress::heading("failures");
        failed.for_each(|line| progress::say!("{line}"));
    }
    progress::heading("parts");
    let mut sum = Figures::default();
    for row in rows {
        let figures = row.told.figures.with_outcome(row.outcome.is_ok());
        sum.add(figures);
        let mark = match row.outcome {
            Ok(()) if row.took.is_zero() => "!",
            Ok(()) => "✓",
            Err(_) => "✗",
        };
        progress::say!("{mark} {:<32} {:>14}  {}", row.title, spell(row.took), figures.spell());
    }
    progress::say!("\n{}", sum.closing_line());
    if sum.is_green() { Ok(()) } else { Err(Red.into()) }
}
