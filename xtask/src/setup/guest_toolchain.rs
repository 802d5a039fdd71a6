//! What guests are compiled with: the toolchain's own wasm target, or Debian's second compiler
//! that builds the standard library from source.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Package;
use super::server::is_on_path;
use crate::workspace::QUESTION;
use crate::{process, progress, workspace};

const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_COMPILER: &str = "/usr/bin/rustc";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.toml";

/// Where rustup cannot reach its server it may hang rather than fail.
const RUSTUP: Duration = Duration::from_secs(20);

/// Which of the two ways the environment allows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Either,
    Target,
    Debian,
}

fn way() -> Result<Way> {
    let value = std::env::var_os("WOK_GUEST_TOOLCHAIN").unwrap_or_default();
    match value.to_str() {
        Some("") => Ok(Way::Either),
        Some("target") => Ok(Way::Target),
        Some("debian") => Ok(Way::Debian),
        _ => bail!("WOK_GUEST_TOOLCHAIN is {}; it may be `target` or `debian`", value.display()),
    }
}

/// What is there, if it serves.
pub(super) fn look() -> Result<Option<String>> {
    let way = way()?;
    if way != Way::Debian && has_target()? {
        return Ok(Some(format!("target {TARGET} of the main toolchain")));
    }
    if way == Way::Target { Ok(None) } else { debian() }
}

/// The packages that bring the Debian way.
pub(super) fn packages() -> Vec<Package> {
    match way() {
        Ok(Way::Target) | Err(_) => vec![],
        Ok(Way::Either | Way::Debian) => ["rustc-web", "rust-web-src"]
            .map(|name| Package { name, at_least: oldest_compiler() })
            .into(),
    }
}

/// Asks rustup for the target, within a limit; a failure is remembered, so that a machine that
/// cannot reach rustup's server does not wait for it in every run.
pub(super) fn add_target() -> Result<bool> {
    if way()? == Way::Debian || !is_on_path("rustup") {
        return Ok(false);
    }
    let note = workspace::notes()?.join("rustup-target-failed");
    if note.exists() && way()? != Way::Target {
        return Ok(false);
    }
    let log = workspace::notes()?.join("rustup.log");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(workspace::root()).args(["target", "add", TARGET]);
    match process::run_quietly(&format!("rustup target add {TARGET}"), &mut rustup, RUSTUP, &log) {
        Ok(()) => Ok(true),
        Err(error) if error.is::<crate::stop::Stopped>() => Err(error),
        Err(error) => {
            let text = format!("{error:#}\n\nRemove this file to have rustup asked again.\n");
            std::fs::write(&note, text).with_context(|| format!("write {}", note.display()))?;
            progress::say!("  (noted in {}; remove it to ask rustup again)", note.display());
            Ok(false)
        }
    }
}

fn has_target() -> Result<bool> {
    let library = workspace::sysroot()?.join("lib/rustlib").join(TARGET).join("lib");
    // An interrupted download leaves the directory without the library.
    let Ok(files) = std::fs::read_dir(library) else {
        return Ok(false);
    };
    Ok(files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-")))
}

fn debian() -> Result<Option<String>> {
    if !Path::new(DEBIAN_COMPILER).exists() || !Path::new(DEBIAN_SOURCE).exists() {
        return Ok(None);
    }
    if !has_linker()? {
        progress::wrong("the main toolchain has no rust-lld, which links the guests");
        return Ok(None);
    }
    let mut rustc = Command::new(DEBIAN_COMPILER);
    let text = process::capture("Debian's rustc", rustc.arg("--version"), QUESTION)?;
    let version = text.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let serves = super::apt::first_numbers(&version) >= oldest_compiler();
    Ok(serves.then(|| format!("Debian's rustc-web {version} with its library source")))
}

/// The distribution's compiler has no linker for wasm; the main toolchain's is used.
fn has_linker() -> Result<bool> {
    let Ok(hosts) = std::fs::read_dir(workspace::sysroot()?.join("lib/rustlib")) else {
        return Ok(false);
    };
    Ok(hosts.flatten().any(|host| host.path().join("bin/rust-lld").exists()))
}

/// Guests are of this workspace, so its `rust-version` holds for their compiler too.
fn oldest_compiler() -> (u32, u32) {
    super::apt::first_numbers(env!("CARGO_PKG_RUST_VERSION"))
}
