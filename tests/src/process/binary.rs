//! The `wok` binary. Cargo builds binaries for the tests of their own package only, so the harness
//! asks for it, once per test process; that takes a moment when nothing has changed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// The `wok` binary, built from this workspace with the tests' own profile; `WOK_BINARY` names
/// another one.
///
/// # Errors
/// If it cannot be built; the error has the compiler's output.
pub fn wok_binary() -> Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BINARY.get_or_init(|| match env::var_os("WOK_BINARY") {
        Some(path) => Ok(path.into()),
        None => build().map_err(|error| format!("{error:#}")),
    });
    built.clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    // `<target>/<profile>/deps/<test>`, or `<target>/<profile>/examples/<example>`.
    let test = env::current_exe()?;
    let profile_dir = test.ancestors().nth(2).context("the tests' own directory")?;
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let target_dir = profile_dir.parent().context("the target directory")?;
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace's directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        // The whole workspace with its tests, so that cargo picks the same features as for this
        // test and has nothing to build twice. A test of the host stands for its binary, which
        // cargo builds along.
        .args(["test", "--no-run", "--quiet", "--workspace", "--test", "guest"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(workspace);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_the_outer_cargo) {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().with_context(|| format!("run {}", env!("CARGO")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("build the wok binary: {}: {said}", output.status);
    }
    Ok(profile_dir.join("wok"))
}

/// Whether cargo sets that variable for the tests it runs. Left in place, they would be those of
/// another package, and build scripts that look at them would run again each time.
fn is_of_the_outer_cargo(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || matches!(name, "CARGO" | "CARGO_MAKEFLAGS" | "MAKEFLAGS" | "OUT_DIR")
}
