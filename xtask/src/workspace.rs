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
/// it, and wasmtime takes minutes; so every build selects the whole workspace with its tests. An
/// integration test of the host stands for its binary, which cargo builds along.
pub(crate) const BUILD_WOK: [&str; 5] =
    ["test", "--no-run", "--profile=ci", "--workspace", "--test=guardian"];

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
