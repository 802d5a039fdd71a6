//! Which compiler builds the guests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::cargo::clear_environment;

/// The variable that forces a toolchain: `target` or `debian`.
pub const TOOLCHAIN_VARIABLE: &str = "WOK_GUEST_TOOLCHAIN";

/// The target of every guest.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler. It comes without a std for the target, but its std builds from source.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// A way to compile for WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The current toolchain has the target installed.
    Target {
        /// Its compiler.
        rustc: PathBuf,
    },
    /// Debian's `rustc-web` builds std from `rust-web-src`; the current toolchain links.
    Debian {
        /// The linker of the current toolchain, since Debian's packages bring none for the target.
        linker: PathBuf,
    },
}

impl Toolchain {
    /// Finds one, the installed target first. `directory` is where the guests are, because a
    /// `rust-toolchain.toml` above it decides which toolchain is current.
    ///
    /// # Errors
    /// [`Error::NoToolchain`] says what to install; [`Error::UnknownToolchain`] is a wrong
    /// [`TOOLCHAIN_VARIABLE`].
    pub fn find(directory: &Path) -> Result<Self, Error> {
        match env::var(TOOLCHAIN_VARIABLE).ok().filter(|value| !value.is_empty()).as_deref() {
            None => Self::target(directory).or_else(|target| {
                Self::debian(directory).map_err(|debian| no_toolchain(&[target, debian]))
            }),
            Some("target") => Self::target(directory).map_err(|reason| no_toolchain(&[reason])),
            Some("debian") => Self::debian(directory).map_err(|reason| no_toolchain(&[reason])),
            Some(other) => Err(Error::UnknownToolchain {
                variable: TOOLCHAIN_VARIABLE,
                value: other.to_owned(),
            }),
        }
    }

    fn target(directory: &Path) -> Result<Self, String> {
        let rustc = current_rustc();
        let libdir = print(&rustc, directory, &["target-libdir", "--target", TARGET])?;
        // rustc prints the path whether or not the target is there, and an interrupted
        // `rustup target add` leaves it empty.
        if has_core(Path::new(&libdir)) {
            Ok(Toolchain::Target { rustc })
        } else {
            Err(format!("{} has no target {TARGET}", rustc.display()))
        }
    }

    fn debian(directory: &Path) -> Result<Self, String> {
        let rustc = Path::new(DEBIAN_RUSTC);
        let sysroot = print(rustc, directory, &["sysroot"])?;
        let std = Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml");
        if !std.is_file() {
            return Err(format!("{DEBIAN_RUSTC} has no std sources ({})", std.display()));
        }
        let current = current_rustc();
        let host = host_of(&current, directory)?;
        let sysroot = print(&current, directory, &["sysroot"])?;
        let linker =
            Path::new(&sysroot).join("lib/rustlib").join(host).join("bin").join("rust-lld");
        if !linker.is_file() {
            return Err(format!("{} is missing", linker.display()));
        }
        Ok(Toolchain::Debian { linker })
    }

    /// Makes a cargo command use this toolchain.
    pub(crate) fn apply(&self, cargo: &mut Command) {
        match self {
            Toolchain::Target { rustc } => {
                cargo.env("RUSTC", rustc);
            }
            Toolchain::Debian { linker } => {
                cargo
                    .env("RUSTC", DEBIAN_RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    .arg("-Zbuild-std=std,panic_abort");
            }
        }
    }
}

fn has_core(libdir: &Path) -> bool {
    let is_core = |file: fs::DirEntry| file.file_name().to_string_lossy().starts_with("libcore-");
    fs::read_dir(libdir).is_ok_and(|files| files.flatten().any(is_core))
}

fn no_toolchain(reasons: &[String]) -> Error {
    Error::NoToolchain { looked_for: reasons.join("; ") }
}

/// Cargo tells a build script which compiler it uses; elsewhere the one in `PATH` is current.
fn current_rustc() -> PathBuf {
    env::var_os("RUSTC").filter(|rustc| !rustc.is_empty()).unwrap_or_else(|| "rustc".into()).into()
}

fn host_of(rustc: &Path, directory: &Path) -> Result<String, String> {
    let version = run(rustc, directory, &["-vV"])?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| format!("{} names no host", rustc.display()))
}

fn print(rustc: &Path, directory: &Path, what: &[&str]) -> Result<String, String> {
    let mut arguments = vec!["--print"];
    arguments.extend_from_slice(what);
    run(rustc, directory, &arguments)
}

fn run(rustc: &Path, directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(rustc);
    clear_environment(&mut command);
    let output = command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} does not run ({error})", rustc.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} fails: {}", rustc.display(), said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
