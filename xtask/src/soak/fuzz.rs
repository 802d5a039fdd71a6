//! Hostile bytes for the embedded server, guided by the code that they reach.
//!
//! `host/embedded/fuzz` is a workspace of its own, compiled here with the counters of a fuzzer,
//! which the stable compiler has. What the bytes found is kept in `target/fuzz/corpus`, and how many
//! were played beside it: all of them take hours, and a run that was stopped is gone on with.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;
use crate::progress::spell;
use crate::setup::{self, Purpose};
use crate::workspace;

/// What is played, half of it by each target.
const EXECUTIONS: u64 = 100_000_000;
/// Another number of them, to try the part out.
const SETTING: &str = "WOK_FUZZ_EXECUTIONS";
/// What is played before the next line of progress, and is lost when a run is stopped.
const ROUND: u64 = 1_000_000;
const TARGETS: [&str; 2] = ["frames", "files"];

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

/// Plays the part and gives its figures.
pub(super) fn play() -> Result<Vec<String>> {
    setup::make_ready(Purpose::Fuzz)?;
    let executions = executions()?.div_ceil(2);
    let home = workspace::target()?.join("fuzz");
    let programs = build(&home)?;
    let mut figures = Vec::new();
    for name in TARGETS {
        let target = Target { name, program: programs.join(name), home: home.clone() };
        figures.push(target.play(executions)?);
    }
    Ok(figures)
}

fn executions() -> Result<u64> {
    match std::env::var(SETTING) {
        Ok(text) => text.parse().with_context(|| format!("{SETTING}={text}: no number")),
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
    program: PathBuf,
    home: PathBuf,
}

impl Target {
    fn play(&self, executions: u64) -> Result<String> {
        let corpus = self.home.join("corpus").join(self.name);
        for directory in [&corpus, &self.crashes()] {
            fs::create_dir_all(directory)
                .with_context(|| format!("create {}", directory.display()))?;
        }
        let started = Instant::now();
        let before = self.executed_before()?;
        let mut executed = before;
        while executed < executions {
            executed += self.round(&corpus, executed, ROUND.min(executions - executed))?;
            fs::write(self.count(), executed.to_string()).context("keep the count")?;
        }
        // The next run begins a count of its own.
        fs::remove_file(self.count()).context("begin a new count")?;
        let kept = fs::read_dir(&corpus).context("count what is kept")?.count();
        let took = spell(started.elapsed());
        let name = self.name;
        Ok(format!(
            "{name}: {executed} executions, {before} of them before this run of {took}, {kept} inputs kept"
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

    fn round(&self, corpus: &Path, before: u64, runs: u64) -> Result<u64> {
        let mut prefix = OsString::from("-artifact_prefix=");
        // A path that ends with a slash is a directory to it.
        prefix.push(self.crashes().join(""));
        let mut command = Command::new(&self.program);
        command
            .arg(format!("-runs={runs}"))
            .args(["-max_len=1024", "-timeout=10", "-print_final_stats=1"])
            .arg(prefix)
            .arg(corpus)
            .arg(workspace::root().join("host/embedded/fuzz/seeds").join(self.name))
            // It would need memory of its own, where the limit is just what was passed.
            .env("RUST_BACKTRACE", "0");
        let text = format!("{}: {before} executions so far", self.name);
        let log = workspace::notes()?.join(format!("fuzz-{}.log", self.name));
        let outcome = process::run_quietly(&text, &mut command, LIMIT, &log);
        let told = fs::read(&log).with_context(|| format!("read {}", log.display()))?;
        let told = String::from_utf8_lossy(&told);
        match (outcome, after(&told, "Test unit written to ")) {
            (Err(error), Some(input)) => {
                bail!("{error:#}\nto play it again: {} {input}", self.program.display())
            }
            (Err(error), None) => Err(error),
            (Ok(()), _) => {
                let count = after(&told, "stat::number_of_executed_units:");
                let count = count.and_then(|count| count.parse().ok());
                count.with_context(|| format!("{} tells no number of executions", log.display()))
            }
        }
    }

    fn crashes(&self) -> PathBuf {
        self.home.join("crashes").join(self.name)
    }
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
