//! kazoo's own tests, unchanged, with a `java` that runs `wok zookeeper`.
//!
//! `WOK_KAZOO_ON=apache` runs them on Apache ZooKeeper: none may be expected to fail on wok that
//! passes there without a reason in `kazoo/expected.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use wok_tests::process::wok_binary;
use wok_tests::{launch, ports, scratch};

const SDIST: &str = "kazoo==2.11.0";
/// What its tests import, and a limit for each of them. The later versions of `pyopenssl` no longer
/// have what kazoo makes its certificates with.
const PACKAGES: [&str; 5] = [
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    "pyjks==20.0.0",
    "pyopenssl==23.3.0",
    "objgraph==3.7.0",
];

/// Seconds for one test: the slowest needs ten.
const LIMIT: &str = "120";

const JARS: [&str; 5] = ["zookeeper", "slf4j-simple", "netty-all", "netty-codec", "netty-resolver"];

#[test]
fn kazoos_own_tests_fail_only_where_it_is_expected() {
    run().unwrap();
}

fn run() -> Result<()> {
    let on = env::var("WOK_KAZOO_ON").unwrap_or_else(|_| "wok".to_owned());
    let expected = Expected::read(&on)?;
    let suite = install()?;
    let directory = scratch::dir()?;
    let log = directory.path().join("log");
    let port = ports::free()?;
    let mut pytest = launch::command(suite.join("venv/bin/python"));
    pytest
        .args(["-m", "pytest", "-q", "-rA", "--color=no", "-o", "log_cli=false"])
        .args(["-p", "no:cacheprovider", "--timeout", LIMIT])
        .args(expected.left_out.iter().flat_map(|test| ["--deselect", test]))
        .arg("kazoo/tests")
        .current_dir(suite.join(SDIST.replace("==", "-")))
        .env("ZOOKEEPER_VERSION", "3.8.0")
        .env("ZOOKEEPER_CLUSTER_SIZE", "1")
        .env("ZOOKEEPER_PORT_OFFSET", port.to_string())
        .env("TMPDIR", directory.path())
        // On kazoo's own continuous integration it has more to test: how that is set up.
        .env_remove("CI")
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    if on == "apache" {
        let jars = JARS.map(|jar| format!("/usr/share/java/{jar}.jar"));
        pytest.env("ZOOKEEPER_CLASSPATH", jars.join(":"));
    } else {
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("kazoo/bin");
        let paths = env::var("PATH").unwrap_or_default();
        pytest
            .env("PATH", format!("{}:{paths}", stand_in.display()))
            .env("WOK_BINARY", wok_binary()?)
            .env("ZOOKEEPER_CLASSPATH", "none");
    }
    launch::start(pytest)?.wait()?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    expected.judge(&text)
}

/// What the checked-in list says.
#[derive(Debug)]
struct Expected {
    failures: BTreeSet<String>,
    left_out: Vec<String>,
}

impl Expected {
    fn read(on: &str) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kazoo/expected.toml");
        let table: toml::Table = fs::read_to_string(path)?.parse()?;
        let entries = |key: &str| table.get(key).and_then(toml::Value::as_array).cloned();
        let text = |entry: &toml::Value, key: &str| {
            let text = entry.get(key).and_then(toml::Value::as_str);
            text.map(str::to_owned).with_context(|| format!("an entry without `{key}`: {entry}"))
        };
        let (mut failures, mut left_out) = (BTreeSet::new(), Vec::new());
        for entry in entries("failure").unwrap_or_default() {
            text(&entry, "reason")?;
            let servers = entry.get("on").and_then(toml::Value::as_array);
            let servers = servers.context("an entry without `on`")?;
            if servers.iter().any(|server| server.as_str() == Some(on)) {
                failures.insert(text(&entry, "test")?);
            }
        }
        for entry in entries("left_out").unwrap_or_default() {
            text(&entry, "reason")?;
            left_out.push(text(&entry, "test")?);
        }
        Ok(Expected { failures, left_out })
    }

    /// Reads pytest's summary, which has a line for each test.
    fn judge(&self, log: &str) -> Result<()> {
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
        let failed: BTreeSet<_> = outcomes
            .iter()
            .filter(|(_, is_passed)| !**is_passed)
            .map(|(test, _)| test.clone())
            .collect();
        let passed = outcomes.len() - failed.len();
        eprintln!("kazoo: {passed} passed, {} failed", failed.len());
        let unexpected: Vec<_> = failed.difference(&self.failures).collect();
        let unfulfilled: Vec<_> = self.failures.difference(&failed).collect();
        ensure!(passed > 200, "only {passed} tests passed:\n{log}");
        ensure!(unexpected.is_empty(), "these fail: {unexpected:#?}\n{log}");
        ensure!(unfulfilled.is_empty(), "these no longer fail: {unfulfilled:#?}");
        Ok(())
    }
}

/// kazoo's sources and an environment for its tests, made once below `target`.
fn install() -> Result<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace")?;
    let place = target.join("target/kazoo");
    let ready = place.join("ready");
    let wanted = format!("{SDIST} {PACKAGES:?}");
    if fs::read_to_string(&ready).is_ok_and(|has| has == wanted) {
        return Ok(place);
    }
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    let done = |command: &mut Command| {
        let output = command.current_dir(&place).output();
        let output = output.with_context(|| format!("run {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?}: {said}");
        anyhow::Ok(())
    };
    done(Command::new("python3").args(["-m", "venv", "venv"]))
        .context("install Debian's packages `python3` and `python3-venv`")?;
    let pip = || Command::new(place.join("venv/bin/pip"));
    done(pip().args(["install", "--quiet", SDIST]).args(PACKAGES))?;
    done(pip().args(["download", "--quiet", "--no-deps", "--no-binary", "kazoo", SDIST]))?;
    done(Command::new("tar").args(["xzf", &format!("{}.tar.gz", SDIST.replace("==", "-"))]))?;
    fs::write(ready, wanted)?;
    Ok(place)
}

#[test]
fn a_test_that_fails_or_passes_unexpectedly_is_told() {
    let log = |lines: &str| {
        let many = (0..300).map(|test| format!("PASSED kazoo/t.py::T::t{test}\n"));
        many.collect::<String>() + lines
    };
    let failures = BTreeSet::from(["kazoo/t.py::T::bad".to_owned()]);
    let expected = Expected { failures, left_out: Vec::new() };
    let bad = "FAILED kazoo/t.py::T::bad - assert False\n";
    assert!(expected.judge(&log(bad)).is_ok());
    assert!(expected.judge(&log("PASSED kazoo/t.py::T::bad\n")).is_err());
    assert!(expected.judge(&log(&format!("{bad}ERROR kazoo/t.py::T::t7 - no\n"))).is_err());
    assert!(expected.judge(bad).is_err());
}
