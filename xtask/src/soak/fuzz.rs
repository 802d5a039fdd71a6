//! Hostile bytes for the embedded server, guided by the code that they reach.
//!
//! `host/embedded/fuzz` is a workspace of its own, compiled here with the counters of a fuzzer,
//! which the stable compiler has. What the bytes found is kept in `target/fuzz/corpus`, and how many
//! were played beside it: all of them take hours, and a run that was stopped is gone on with.

use std::ffi::OsString;
use std::fs;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;
use crate::progress::spell;
use crate::setup::{self, Purpose};
use crate::workspace;

/// What is played, half of it by each target.
const EXECUTIONS: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();
/// Another number of them, to try the part out.
const SETTING: &str = "WOK_FUZZ_EXECUTIONS";
/// How long is played before the next line of progress. It is lost when a run is stopped.
const ROUND: Duration = Duration::from_secs(5 * 60);
/// The targets and the longest inputs of theirs, in bytes: a score of requests are long enough to
/// get in each other's way, and of twice as many half as many inputs would be played.
const TARGETS: [(&str, usize); 2] = [("frames", 512), ("files", 1024)];

/// The engine is C++, the rest small.
const BUILD: Duration = Duration::from_secs(30 * 60);
/// One round, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Counters at edges, for the crates of the target alone. To look at comparisons as well would take
/// more than half of the time, and the seeds have what it is good for: every request there is.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
];

/// Plays the part, the targets side by side, and gives its figures.
pub(super) fn play() -> Result<Vec<String>> {
    setup::make_ready(Purpose::Fuzz)?;
    let executions = executions()?.get().div_ceil(2);
    let home = workspace::target()?.join("fuzz");
    let programs = build(&home)?;
    let started = Instant::now();
    let mut targets = Vec::new();
    for (name, longest) in TARGETS {
        targets.push(Target::new(name, longest, &programs, &home)?);
    }
    loop {
        let mut due: Vec<_> = targets.iter_mut().filter(|it| it.executed < executions).collect();
        if due.is_empty() {
            break;
        }
        play_round(&mut due, executions)?;
    }
    targets.iter().map(|target| target.finish(started.elapsed())).collect()
}

/// Plays the targets for a while, or until they have made so many executions. Each is played by
/// its share of the processors.
fn play_round(due: &mut [&mut Target], executions: u64) -> Result<()> {
    let so_far: Vec<_> = due.iter().map(|it| format!("{}: {}", it.name, it.executed)).collect();
    let text = format!("executions so far of {}", so_far.join(", "));
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let players = processors.div_ceil(due.len());
    let notes = workspace::notes()?;
    let mut plays = Vec::new();
    for target in due.iter() {
        let most = (executions - target.executed).div_ceil(u64::try_from(players)?);
        let log = |player| notes.join(format!("fuzz-{}-{player}.log", target.name));
        let play = |player| (target.round(most), log(player));
        plays.push((1..=players).map(play).collect::<Vec<_>>());
    }
    let together = plays.iter_mut().flatten();
    let mut together: Vec<_> = together.map(|(command, log)| (command, log.as_path())).collect();
    let outcome = process::run_together(&text, &mut together, LIMIT);
    for (target, plays) in due.iter_mut().zip(&plays) {
        for (_, log) in plays {
            match &outcome {
                Ok(()) => target.count_round(log)?,
                Err(error) => target.look_for_crash(log, error)?,
            }
        }
    }
    outcome
}

fn executions() -> Result<NonZeroU64> {
    match std::env::var(SETTING) {
        Ok(text) => {
            text.parse().with_context(|| format!("{SETTING}={text}: no number of executions"))
        }
        Err(_) => Ok(EXECUTIONS),
    }
}

/// Compiles the targets and tells where they are.
fn build(home: &Path) -> Result<PathBuf> {
    let host = workspace::host()?;
    let mut cargo = workspace::cargo();
    cargo
        .args(["build", "--release", "--locked", "--manifest-path=host/embedded/fuzz/Cargo.toml"])
        // Named, so that build scripts are compiled without the flags.
        .arg(format!("--target={host}"))
        .arg("--target-dir")
        .arg(home)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    let log = workspace::notes()?.join("fuzz-build.log");
    process::run_quietly("compiling the targets", &mut cargo, BUILD, &log)?;
    Ok(home.join(host).join("release"))
}

struct Target {
    name: &'static str,
    longest: usize,
    program: PathBuf,
    home: PathBuf,
    /// Of `executed`, what runs that were stopped have played.
    before: u64,
    executed: u64,
}

impl Target {
    fn new(name: &'static str, longest: usize, programs: &Path, home: &Path) -> Result<Self> {
        let (program, home) = (programs.join(name), home.to_owned());
        let mut target = Target { name, longest, program, home, before: 0, executed: 0 };
        for directory in [target.corpus(), target.crashes()] {
            fs::create_dir_all(&directory)
                .with_context(|| format!("create {}", directory.display()))?;
        }
        target.before = target.executed_before()?;
        target.executed = target.before;
        Ok(target)
    }

    /// What is played for a while, or until it has made so many. Several at a time learn from each
    /// other by what they keep.
    fn round(&self, most: u64) -> Command {
        let mut prefix = OsString::from("-artifact_prefix=");
        // A path that ends with a slash is a directory to it.
        prefix.push(self.crashes().join(""));
        let mut command = Command::new(&self.program);
        command
            .args([format!("-runs={most}"), format!("-max_total_time={}", ROUND.as_secs())])
            .arg(format!("-max_len={}", self.longest))
            .args(["-timeout=10", "-print_final_stats=1"])
            .arg(prefix)
            .arg(self.corpus())
            .arg(workspace::root().join("host/embedded/fuzz/seeds").join(self.name))
            // It would need memory of its own, where the limit is just what was passed.
            .env("RUST_BACKTRACE", "0");
        command
    }

    /// An input that a failed round has found is named with what plays it again.
    fn look_for_crash(&self, log: &Path, error: &anyhow::Error) -> Result<()> {
        match after(&told(log)?, "Test unit written to ") {
            Some(input) => {
                bail!("{error:#}\nto play it again: {} {input}", self.program.display())
            }
            None => Ok(()),
        }
    }

    fn count_round(&mut self, log: &Path) -> Result<()> {
        let told = told(log)?;
        let count = after(&told, "stat::number_of_executed_units:");
        let count = count.and_then(|count| count.parse::<u64>().ok());
        self.executed +=
            count.with_context(|| format!("{} tells no number of executions", log.display()))?;
        fs::write(self.count(), self.executed.to_string()).context("keep the count")
    }

    fn finish(&self, took: Duration) -> Result<String> {
        let kept = fs::read_dir(self.corpus()).context("count what is kept")?.count();
        // The next run begins a count of its own.
        fs::remove_file(self.count()).context("begin a new count")?;
        let Target { name, before, executed, .. } = self;
        let took = spell(took);
        Ok(format!(
            "{name}: {executed} executions, {before} of them before this run of {took}, {kept} \
             inputs kept"
        ))
    }

    /// What runs that were stopped have played with this very program. One that was compiled since
    /// is another.
    fn executed_before(&self) -> Result<u64> {
        let count = self.count();
        if !count.try_exists().context("look for the count")? {
            return Ok(0);
        }
        let modified = |path: &Path| -> Result<_> {
            let metadata = fs::metadata(path);
            metadata.and_then(|it| it.modified()).with_context(|| format!("{}", path.display()))
        };
        if modified(&count)? < modified(&self.program)? {
            return Ok(0);
        }
        let text = fs::read_to_string(&count).context("read the count")?;
        text.trim().parse().with_context(|| format!("{}: no number; remove it", count.display()))
    }

    fn count(&self) -> PathBuf {
        self.home.join(format!("{}.executions", self.name))
    }

    fn corpus(&self) -> PathBuf {
        self.home.join("corpus").join(self.name)
    }

    fn crashes(&self) -> PathBuf {
        self.home.join("crashes").join(self.name)
    }
}

fn told(log: &Path) -> Result<String> {
    let told = fs::read(log).with_context(|| format!("read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// What stands behind a text on its line.
fn after<'a>(told: &'a str, text: &str) -> Option<&'a str> {
    told.lines().find_map(|line| Some(line.split_once(text)?.1.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_crashes_are_read_from_what_the_fuzzer_tells() {
        let told = "Done 7 runs\nstat::number_of_executed_units: 7\n\
                    artifact_prefix='c/'; Test unit written to c/crash-1\n";
        assert_eq!(after(told, "stat::number_of_executed_units:"), Some("7"));
        assert_eq!(after(told, "Test unit written to "), Some("c/crash-1"));
        assert_eq!(after(told, "stat::peak"), None);
    }
}
