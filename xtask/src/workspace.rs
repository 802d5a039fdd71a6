//! Where things are, and how nested cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// What a question to a tool on this machine may take before it counts as hung.
pub(crate) const QUESTION: Duration = Duration::from_secs(60);

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A directory for this program's own notes and logs, outside version control.
pub(crate) fn notes() -> Result<PathBuf> {
    let notes = root().join(".xtask");
    std::fs::create_dir_all(&notes).with_context(|| format!("create {}", notes.display()))?;
    Ok(notes)
}

/// Cargo, called as the user would from the root of the workspace.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    // `cargo run` describes this package in the environment. A build script that looks at such a
    // variable would run again each time xtask and the user take turns.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The directory cargo builds into.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata.get("target_directory").and_then(Value::as_str);
    Ok(target.context("cargo metadata names no target directory")?.into())
}

/// The integration tests of the workspace, each with its package.
pub(crate) fn integration_tests() -> Result<Vec<(String, String)>> {
    let metadata = metadata()?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let mut tests = Vec::new();
    for package in packages.context("cargo metadata names no packages")? {
        let name = |of: &Value| of.get("name").and_then(Value::as_str).map(str::to_owned);
        let targets = package.get("targets").and_then(Value::as_array);
        for target in targets.into_iter().flatten() {
            let kinds = target.get("kind").and_then(Value::as_array);
            let is_test = kinds.into_iter().flatten().any(|kind| kind == "test");
            if let (true, Some(package), Some(test)) = (is_test, name(package), name(target)) {
                tests.push((package, test));
            }
        }
    }
    Ok(tests)
}

fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let text = process::capture("cargo metadata", &mut command, QUESTION)?;
    serde_json::from_str(&text).context("cargo metadata")
}

/// Arguments that have cargo build the `wok` binary as the tests use it.
///
/// Cargo compiles a dependency again when another selection of packages asks for other features of
/// it, and wasmtime takes minutes; so `wok-features` is selected along, which asks for what the tests
/// ask. Nothing is compiled that only the tests need.
pub(crate) const BUILD_WOK: [&str; 7] = [
    "build",
    "--profile=ci",
    "--package=wok",
    "--package=wok-features",
    "--features=wok/command-line",
    "--bin=wok",
    "--lib",
];

/// A first build compiles wasmtime, and optimizes across all crates.
const RELEASE: Duration = Duration::from_secs(60 * 60);

/// A program of the workspace as users would have it, beside the `wok` that it is to start. Not
/// profile `ci`: its debug assertions would be part of what is measured.
pub(crate) fn released(program: &str) -> Result<Command> {
    let mut build = cargo();
    build.args(["build", "--release", "--workspace", "--bin=wok"]);
    build.arg(format!("--bin={program}"));
    let status = process::run("cargo build --release", &mut build, RELEASE, |_| {})?;
    anyhow::ensure!(status.success(), "cargo build --release: {}", process::describe(status));
    let directory = target()?.join("release");
    let mut command = Command::new(directory.join(program));
    command.current_dir(root()).env("WOK_BINARY", directory.join("wok"));
    Ok(command)
}

/// The target triple of the machine itself.
pub(crate) fn host() -> Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root()).args(["--print", "host-tuple"]);
    Ok(process::capture("rustc --print host-tuple", &mut rustc, QUESTION)?.trim().to_owned())
}

/// The sysroot of the toolchain that builds the workspace.
pub(crate) fn sysroot() -> Result<PathBuf> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root()).args(["--print", "sysroot"]);
    let text = process::capture("rustc --print sysroot", &mut rustc, QUESTION)?;
    Ok(text.trim().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What cargo would do.
    fn plan(arguments: &[&str]) -> Value {
        let mut command = cargo();
        // A plan of the build is shown by development versions alone, and by one that is told to be.
        command.env("RUSTC_BOOTSTRAP", "1").args(arguments);
        command.args(["--offline", "-Zunstable-options", "--unit-graph"]);
        let text = process::capture("cargo --unit-graph", &mut command, QUESTION).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// How many parts of a build wait for one, which is by what cargo chooses where to begin: the most
    /// for any part of that package and mode.
    fn waiting_for(plan: &Value, package: &str, kind: &str, mode: &str) -> usize {
        let units = plan["units"].as_array().unwrap();
        let is_it = |unit: &Value| {
            let id = unit["pkg_id"].as_str().unwrap();
            id.contains(package) && unit["target"]["kind"][0] == kind && unit["mode"] == mode
        };
        let waiting = (0..units.len()).filter(|index| is_it(&units[*index])).map(|of| {
            let mut waiting = BTreeSet::from([of]);
            loop {
                let more: Vec<usize> = (0..units.len())
                    .filter(|index| !waiting.contains(index))
                    .filter(|index| {
                        let needs = units[*index]["dependencies"].as_array().unwrap();
                        let index_of = |it: &Value| it["index"].as_u64().unwrap() as usize;
                        needs.iter().any(|it| waiting.contains(&index_of(it)))
                    })
                    .collect();
                if more.is_empty() {
                    return waiting.len() - 1;
                }
                waiting.extend(more);
            }
        });
        waiting.max().unwrap()
    }

    #[test]
    fn a_build_that_lacks_a_compiler_for_guests_says_so_before_it_takes_long() {
        let installed = ["build", "--release", "--package=wok", "--features=command-line"];
        for arguments in [&["build"][..], &installed] {
            let plan = plan(arguments);
            let look = waiting_for(&plan, "#wok-toolchain@", "custom-build", "run-custom-build");
            for long in ["#regalloc2@", "#cranelift-codegen@"] {
                let wait = waiting_for(&plan, long, "lib", "build");
                assert!(look > wait, "{arguments:?}: {look} wait for the look, {wait} for {long}");
            }
        }
    }

    /// What cargo would compile, each with the features it would have.
    fn units(arguments: &[&str]) -> BTreeSet<String> {
        let plan = plan(arguments);
        let unit = |unit: &Value| {
            ["pkg_id", "target", "profile", "mode", "features"]
                .map(|key| unit.get(key).map(Value::to_string).unwrap_or_default())
                .join(" ")
        };
        plan.get("units").and_then(Value::as_array).unwrap().iter().map(unit).collect()
    }

    #[test]
    fn who_installs_wok_gets_one_program() {
        let metadata = metadata().unwrap();
        let packages = metadata.get("packages").and_then(Value::as_array).unwrap();
        let wok = packages.iter().find(|package| package["name"] == "wok").unwrap();
        let targets = wok["targets"].as_array().unwrap();
        let programs = targets.iter().filter(|target| target["kind"][0] == "bin");
        let names: Vec<_> = programs.map(|target| &target["name"]).collect();
        assert_eq!(names, ["wok"]);
    }

    #[test]
    fn what_the_quick_start_compiles_is_compiled_for_the_tests_as_well() {
        let quick = units(&BUILD_WOK);
        let tests = units(&["test", "--no-run", "--profile=ci", "--workspace"]);
        assert!(quick.len() > 100, "{quick:?}");
        let only_quick: Vec<_> = quick.difference(&tests).collect();
        assert!(only_quick.is_empty(), "the tests would compile these again: {only_quick:#?}");
        for needless in ["wok-tests", "proptest", "rcgen"] {
            let found = quick.iter().find(|unit| unit.contains(&format!("#{needless}@")));
            assert_eq!(found, None, "the quick start needs no {needless}");
        }
    }
}
