//! kazoo's own tests, unchanged, with a `java` that runs `wok zookeeper`.
//!
//! `WOK_KAZOO_ON=apache` runs them on Apache ZooKeeper: none may be expected to fail on wok that
//! passes there without a reason in `kazoo/expected.toml`.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use wok_tests::outside::kazoo::{self, Kazoo};
use wok_tests::outside::{self, Expected, On};
use wok_tests::{launch, ports, scratch};

/// Seconds for one test: the slowest needs ten.
const LIMIT: &str = "120";

/// How many pass at least, or they were not played.
const LEAST: usize = 200;

/// How many play them at a time, each with a part of the files: a test of kazoo's waits most of the time.
const SHARES: usize = 3;

#[test]
fn kazoos_own_tests_fail_only_where_it_is_expected() {
    run().unwrap();
}

fn run() -> Result<()> {
    let on = env::var("WOK_KAZOO_ON").map_or(Ok(On::Wok), |name| On::named(&name))?;
    let expected = Expected::read("kazoo", on)?;
    let kazoo = kazoo::install()?;
    let files = files(&kazoo)?;
    let play = |share| {
        let of_share = files.iter().skip(share).step_by(SHARES);
        Share::play(&kazoo, on, &expected, of_share)
    };
    let shares = (0..SHARES).map(play).collect::<Result<Vec<_>>>()?;
    let logs = shares.into_iter().map(Share::log).collect::<Result<Vec<_>>>()?;
    let log = logs.concat();
    let kept = kazoo.place().join("last.log");
    fs::write(&kept, &log)?;
    let figures = expected
        .judge(&outcomes(&log), LEAST)
        .map_err(|surprise| surprise.with_log(&kept, |test| of_test(&log, test)))?;
    eprintln!("kazoo: {figures}");
    Ok(())
}

/// The files with tests, in the order of their names.
fn files(kazoo: &Kazoo) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(kazoo.sources().join("kazoo/tests"))? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with("test_") {
            files.push(Path::new("kazoo/tests").join(name));
        }
    }
    files.sort();
    ensure!(files.len() > SHARES, "{files:?}");
    Ok(files)
}

/// Some of the files, played with a server of their own.
struct Share {
    pytest: Child,
    directory: TempDir,
}

impl Share {
    fn play<'a>(
        kazoo: &Kazoo,
        on: On,
        expected: &Expected,
        files: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Self> {
        let directory = scratch::dir()?;
        // Shared, so that neither writes over what the other wrote.
        let output = File::create(directory.path().join("log"))?;
        let mut pytest = launch::command(kazoo.python());
        pytest
            .args(["-m", "pytest", "-q", "-rA", "--color=no", "-o", "log_cli=false"])
            .args(["-p", "no:cacheprovider", "--timeout", LIMIT])
            .args(expected.left_out().flat_map(|test| ["--deselect", test]))
            .args(files)
            .current_dir(kazoo.sources())
            .env("ZOOKEEPER_VERSION", "3.8.0")
            .env("ZOOKEEPER_CLUSTER_SIZE", "1")
            .env("ZOOKEEPER_PORT_OFFSET", ports::free()?.to_string())
            .env("TMPDIR", directory.path())
            // On kazoo's own continuous integration it has more to test: how that is set up.
            .env_remove("CI")
            .stdout(output.try_clone()?)
            .stderr(output);
        match on {
            On::Wok => on.put_java(&mut pytest)?,
            // By itself kazoo starts servers as Apache ZooKeeper is started.
            On::Apache => {
                pytest.env("ZOOKEEPER_CLASSPATH", outside::class_path());
            }
        }
        Ok(Share { pytest: launch::start(pytest)?, directory })
    }

    /// What pytest printed, once it has ended. Its summary comes last and names every test of the share: one
    /// that ended before it would go unnoticed beside the others.
    fn log(mut self) -> Result<String> {
        self.pytest.wait()?;
        let log = fs::read(self.directory.path().join("log"))?;
        let log = String::from_utf8_lossy(&log).into_owned();
        ensure!(!outcomes(&log).is_empty(), "pytest ended without a summary:\n{log}");
        Ok(log)
    }
}

/// Reads pytest's summary, which has a line for each test: whether each of them passed.
fn outcomes(log: &str) -> BTreeMap<String, bool> {
    let mut outcomes = BTreeMap::new();
    for line in log.lines() {
        for outcome in ["PASSED", "FAILED", "ERROR"] {
            let test = line.strip_prefix(outcome).and_then(|rest| rest.strip_prefix(" kazoo/"));
            if let Some(test) = test.and_then(|test| test.split_whitespace().next()) {
                // A test that passes and then fails to tidy up has two lines.
                let is_passed = outcome == "PASSED";
                *outcomes.entry(format!("kazoo/{test}")).or_insert(true) &= is_passed;
            }
        }
    }
    outcomes
}

/// What pytest tells of a test that failed: what stands below its name in the middle of a line.
fn of_test(log: &str, test: &str) -> String {
    let name = test.split("::").skip(1).collect::<Vec<_>>().join(".");
    let is_ruled = |line: &str, with: char| {
        line.starts_with(&with.to_string().repeat(3)) && line.ends_with(with)
    };
    let named = |line: &&str| line.trim_matches(['_', ' ']).ends_with(&name);
    let below = log.lines().skip_while(|line| !(is_ruled(line, '_') && named(line)));
    let below = below.skip(1).take_while(|line| !is_ruled(line, '_') && !is_ruled(line, '='));
    let summary = log.lines().filter(|line| line.contains(test));
    below.chain(summary).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_test_has_passed_if_none_of_its_lines_says_otherwise() {
    let log = "PASSED kazoo/t.py::T::a\nnoise\nFAILED kazoo/t.py::T::b - assert False\n\
               PASSED kazoo/t.py::T::c\nERROR kazoo/t.py::T::c - no\n";
    let expected = [("a", true), ("b", false), ("c", false)];
    let expected = expected.map(|(test, passed)| (format!("kazoo/t.py::T::{test}"), passed));
    assert_eq!(outcomes(log), expected.into());
}

#[test]
fn of_a_test_that_failed_its_own_lines_are_shown() {
    let log = "noise\n____ T.a ____\nof a\n____ T.b ____\n\nof b\nE   assert 1\n\
               ____ U.c ____\nof c\n==== short test summary info ====\n\
               FAILED kazoo/t.py::T::b - assert 1\n";
    let told = of_test(log, "kazoo/t.py::T::b");
    assert_eq!(told, "\nof b\nE   assert 1\nFAILED kazoo/t.py::T::b - assert 1\n");
}
