//! The tests beside Curator and kazoo once more, with the newest Curator and ZooKeeper there are.
//!
//! Debian's packages are some years old. PySpark's source package on PyPI brings the jars of newer
//! versions along, and PyPI is where kazoo comes from as well.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Profile;
use crate::setup::{self, Purpose};
use crate::{process, workspace};

/// The source package that the jars are in.
const PACKAGE: &str = "pyspark==4.0.1";
const ARCHIVE: &str = "pyspark-4.0.1.tar.gz";

/// What is taken out of it: Curator, ZooKeeper with its server, and what the two of them need.
const JARS: [&str; 11] = [
    "commons-io-*",
    "curator-*",
    "failureaccess-*",
    "guava-*",
    "jackson-*",
    "metrics-core-*",
    "netty-*.Final.jar",
    "slf4j-api-*",
    "snappy-java-*",
    "zookeeper-3*",
    "zookeeper-jute-*",
];

/// Four hundred megabytes, on a slow line.
const FETCH: Duration = Duration::from_secs(30 * 60);

/// The jars that tell the versions.
const TOLD: [&str; 2] = ["curator-recipes-", "zookeeper-3"];

/// Plays the tests on a server of that version as well as on Debian's.
pub(super) fn play() -> Result<Vec<String>> {
    setup::make_ready(Purpose::Test)?;
    let jars = workspace::target()?.join("newest-peers");
    let versions = match versions(&jars) {
        Ok(versions) => versions,
        Err(_) => {
            fetch(&jars)?;
            versions(&jars)?
        }
    };
    let curator = ("WOK_CURATOR_JARS", jars.as_os_str());
    let server = ("WOK_ZOOKEEPER_JAR", jars.as_os_str());
    let mut figures = vec![versions];
    figures.extend(super::play_test(Profile::Ci, "interop", "", &[curator])?);
    figures.extend(super::play_test(Profile::Ci, "interop", "", &[curator, server])?);
    Ok(figures)
}

/// The names of the jars that count.
fn versions(jars: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(jars).with_context(|| format!("read {}", jars.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let found = TOLD.map(|start| names.iter().find(|name| name.starts_with(start)));
    let found: Vec<_> =
        found.into_iter().flatten().map(|name| name.trim_end_matches(".jar")).collect();
    ensure!(found.len() == TOLD.len(), "{} lacks jars; delete that directory", jars.display());
    Ok(found.join(", "))
}

/// Fetches the package, and leaves the jars in their place when all of them are there.
fn fetch(jars: &Path) -> Result<()> {
    let place = jars.with_extension("fetched");
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("clear {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("create {}", place.display()))?;
    let run = |title: &str, command: &mut Command| {
        let log = workspace::notes()?.join("newest-peers.log");
        process::run_quietly(title, command.current_dir(&place), FETCH, &log)
    };
    // Debian's Python has pip in virtual environments only.
    run("making an environment for pip", Command::new("python3").args(["-m", "venv", "venv"]))?;
    let mut pip = Command::new(place.join("venv/bin/pip"));
    run("fetching PySpark", pip.args(["download", "--no-deps", PACKAGE]))?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--wildcards", "--strip-components=3", "--file", ARCHIVE]);
    tar.args(JARS.map(|name| format!("*/deps/jars/{name}")));
    run("unpacking its jars", &mut tar)?;
    fs::create_dir_all(place.join("jars"))?;
    for entry in fs::read_dir(&place)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            let name = path.file_name().context("a jar has a name")?;
            fs::rename(&path, place.join("jars").join(name))?;
        }
    }
    fs::rename(place.join("jars"), jars).with_context(|| format!("make {}", jars.display()))?;
    fs::remove_dir_all(&place).with_context(|| format!("clear {}", place.display()))
}
