//! kazoo's own tests, unchanged, with a `java` that runs `wok zookeeper`.
//!
//! `WOK_KAZOO_ON=apache` runs them on Apache ZooKeeper: none may be expected to fail on wok that
//! passes there without a reason in `kazoo/expected.toml`.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};

use anyhow::Result;
use wok_tests::outside::{self, Expected, On, kazoo};
use wok_tests::{launch, ports, scratch};

/// Seconds for one test: the slowest needs ten.
const LIMIT: &str = "120";

/// How many pass at least, or they were not played.
const LEAST: usize = 200;

#[test]
fn kazoos_own_tests_fail_only_where_it_is_expected() {
    run().unwrap();
}

fn run() -> Result<()> {
    let on = env::var("WOK_KAZOO_ON").map_or(Ok(On::Wok), |name| On::named(&name))?;
    let expected = Expected::read("kazoo", on)?;
    let kazoo = kazoo::install()?;
    let directory = scratch::dir()?;
    let log = directory.path().join("log");
    // Shared, so that neither writes over what the other wrote.
    let output = File::create(&log)?;
    let port = ports::free()?;
    let mut pytest = launch::command(kazoo.python());
    pytest
        .args(["-m", "pytest", "-q", "-rA", "--color=no", "-o", "log_cli=false"])
        .args(["-p", "no:cacheprovider", "--timeout", LIMIT])
        .args(expected.left_out().flat_map(|test| ["--deselect", test]))
        .arg("kazoo/tests")
        .current_dir(kazoo.sources())
        .env("ZOOKEEPER_VERSION", "3.8.0")
        .env("ZOOKEEPER_CLUSTER_SIZE", "1")
        .env("ZOOKEEPER_PORT_OFFSET", port.to_string())
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
    launch::start(pytest)?.wait()?;
    let log = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let kept = kazoo.place().join("last.log");
    fs::write(&kept, &log)?;
    let figures = expected
        .judge(&outcomes(&log), LEAST)
        .map_err(|surprise| surprise.with_log(&kept, |test| of_test(&log, test)))?;
    eprintln!("kazoo: {figures}");
    Ok(())
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
