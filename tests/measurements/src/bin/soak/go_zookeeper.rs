//! The tests of Debian's ZooKeeper client for Go, on the embedded server and on Apache ZooKeeper.
//!
//! They are compiled as Debian has them, and each is played by a process of its own: one that
//! panics or hangs takes no other along. One of the client's helpers is corrected: it reads what a
//! server says of itself, by which the tests see that one is up, and it is of 2018.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use wok_tests::outside::{Expected, On};
use wok_tests::{launch, scratch};

use crate::{Length, Options, figure, say};

/// Where Debian's package puts it.
const SOURCES: &str = "/usr/share/gocode/src";
const PACKAGE: &str = "github.com/samuel/go-zookeeper/zk";

/// What is corrected in the reading of `srvr`, and by what: Apache ZooKeeper 3.8 says a version with
/// braces, as Debian builds it, a date that begins with the year, and a mean that may not be whole.
const SRVR: [(&str, &str); 3] = [
    (r"([A-Za-z0-9\.\-]+), built on (\d\d/\d\d/\d\d\d\d ", r"(\S+), built on (\S+ "),
    (r"min/avg/max: (\d+)/(\d+)/(\d+)", r"min/avg/max: (\d+)/([\d.]+)/(\d+)"),
    (
        "buildTime, err := time.Parse(\"01/02/2006 15:04 MST\", match[1])\n",
        "buildTime, err := time.Parse(\"01/02/2006 15:04 MST\", match[1])\n\
         if err != nil { buildTime, err = time.Parse(\"2006-01-02 15:04 MST\", match[1]) }\n",
    ),
];

/// For one test; the slowest makes ten thousand nodes, one by one, each forced to the disk.
const LIMIT: &str = "15m";

/// How often a test that is a race may fail before it counts.
const TRIES: usize = 10;

/// How many pass at least, or they were not played.
const LEAST: usize = 25;

/// Plays the part: on both servers, or on the one that is named.
pub(crate) fn play(options: &Options) -> Result<()> {
    ensure!(options.length == Length::Full, "go-zookeeper: its tests are as long as they are");
    let servers = match &options.only {
        Some(name) => vec![On::named(name)?],
        None => On::ALL.to_vec(),
    };
    let suite = Suite::compile()?;
    for on in servers {
        suite.play(on)?;
    }
    Ok(())
}

/// The compiled tests.
struct Suite {
    program: PathBuf,
    names: Vec<String>,
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// By its own word.
    Skipped,
}

impl Suite {
    fn compile() -> Result<Self> {
        let workspace = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?;
        let place = workspace.join("target/go-zookeeper");
        copy(&place.join("src")).with_context(|| {
            format!("copy {SOURCES}/{PACKAGE}, of golang-github-samuel-go-zookeeper-dev")
        })?;
        let program = place.join("zk.test");
        let mut go = Command::new("go");
        go.args(["test", "-c", "-vet=off", "-o"])
            .arg(&program)
            .arg(PACKAGE)
            .current_dir(&place)
            // There are no modules, nothing to fetch, and nothing of the user's.
            .envs([("GO111MODULE", "off"), ("GOENV", "off"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")])
            .env("GOPATH", &place)
            .env("GOCACHE", place.join("cache"));
        told(&mut go).context("compile the tests with Debian's golang-go")?;
        let list = told(Command::new(&program).args(["-test.list", "^Test"]))?;
        Ok(Suite { program, names: list.lines().map(str::to_owned).collect() })
    }

    fn play(&self, on: On) -> Result<()> {
        let started = Instant::now();
        let expected = Expected::read("go-zookeeper", on)?;
        let left_out: Vec<_> = expected.left_out().collect();
        let mut passed = BTreeMap::new();
        for name in self.names.iter().filter(|name| !left_out.contains(&name.as_str())) {
            let tries = if expected.is_race(name) { TRIES } else { 1 };
            let outcome = (1..=tries).try_fold(Outcome::Failed, |outcome, _| match outcome {
                Outcome::Failed => self.play_one(on, name, &expected),
                _ => Ok(outcome),
            })?;
            if outcome != Outcome::Skipped {
                passed.insert(name.clone(), outcome == Outcome::Passed);
            }
        }
        let figures = expected.judge(&passed, LEAST).with_context(|| on.name())?;
        let skipped = self.names.len() - passed.len() - left_out.len();
        figure(&format!(
            "{}: {figures}, {skipped} skipped by itself, {} left out, in {} s",
            on.name(),
            left_out.len(),
            started.elapsed().as_secs()
        ));
        Ok(())
    }

    fn play_one(&self, on: On, name: &str, expected: &Expected) -> Result<Outcome> {
        let started = Instant::now();
        let directory = scratch::dir()?;
        let log = directory.path().join("log");
        // It is looked for, and then only named to `java`.
        let jar = directory.path().join("contrib/fatjar/zookeeper-0-fatjar.jar");
        fs::create_dir_all(jar.parent().context("a directory")?)?;
        File::create(jar)?;
        let output = File::create(&log)?;
        let mut test = launch::command(&self.program);
        test.args(["-test.v", "-test.timeout", LIMIT, "-test.run", &format!("^{name}$")])
            .current_dir(directory.path())
            .env("ZOOKEEPER_PATH", directory.path())
            .env("TMPDIR", directory.path())
            .stdout(output.try_clone()?)
            .stderr(output);
        on.put_java(&mut test)?;
        let status = launch::start(test)?.wait()?;
        let log = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let outcome = if status.success() { outcome(&log, name)? } else { Outcome::Failed };
        let took = started.elapsed().as_secs_f64();
        say(&format!("{}: {name}: {outcome:?} after {took:.1} s", on.name()));
        if outcome == Outcome::Failed && !expected.is_failure(name) {
            say(&log);
        }
        Ok(outcome)
    }
}

/// What a test that did not fail says of itself.
fn outcome(log: &str, name: &str) -> Result<Outcome> {
    let says = |word: &str| {
        let line = format!("--- {word}: {name} (");
        log.lines().any(|said| said.starts_with(&line))
    };
    match (says("PASS"), says("SKIP")) {
        (true, false) => Ok(Outcome::Passed),
        (false, true) => Ok(Outcome::Skipped),
        _ => bail!("{name} was not played:\n{log}"),
    }
}

/// Copies the package to `to`, with its reading of `srvr` corrected.
fn copy(to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let to = to.join(PACKAGE);
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(Path::new(SOURCES).join(PACKAGE))? {
        let entry = entry?;
        let text = fs::read_to_string(entry.path())?;
        let text = if entry.file_name() == "flw.go" { correct(text)? } else { text };
        fs::write(to.join(entry.file_name()), text)?;
    }
    Ok(())
}

fn correct(mut text: String) -> Result<String> {
    for (from, to) in SRVR {
        ensure!(text.matches(from).count() == 1, "flw.go is another: it has not one {from:?}");
        text = text.replace(from, to);
    }
    Ok(text)
}

/// What a command prints; anything but success is an error.
fn told(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_passes_or_is_skipped_by_its_own_line() {
        let check = |log: &str, is: Option<Outcome>| assert_eq!(outcome(log, "TestLock").ok(), is);
        check("=== RUN   TestLock\n--- PASS: TestLock (1.00s)\nPASS\n", Some(Outcome::Passed));
        check("--- SKIP: TestLock (0.00s)\nPASS\n", Some(Outcome::Skipped));
        check("testing: warning: no tests to run\nPASS\n", None);
        check("--- PASS: TestLocks (1.00s)\nPASS\n", None);
    }

    #[test]
    fn a_helper_of_another_version_is_not_corrected_in_part() {
        let text: String = SRVR.iter().map(|(from, _)| *from).collect();
        assert!(correct(text.clone()).is_ok_and(|corrected| corrected.contains("2006-01-02")));
        assert!(correct(text.replace("built on", "made on")).is_err());
    }
}
