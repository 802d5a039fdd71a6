//! Which compiler builds the guests, and in which environment.
//!
//! It is a package of its own, and without dependencies, for the sake of its build script: that one
//! compiles this file, too, and fails where there is no such compiler. So a build that cannot succeed
//! says so before the WebAssembly compiler of the host is compiled, which takes minutes.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that forces a toolchain: `target` or `debian`.
pub const TOOLCHAIN_VARIABLE: &str = "WOK_GUEST_TOOLCHAIN";

/// The target of every guest.
pub const TARGET: &str = "wasm32-unknown-unknown";

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

/// Why there is no way to compile for WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoToolchain {
    /// No compiler here can.
    Missing {
        /// What was looked for and not found.
        looked_for: String,
    },
    /// [`TOOLCHAIN_VARIABLE`] holds something else than a toolchain.
    Unknown {
        /// What it holds.
        value: String,
    },
}

impl fmt::Display for NoToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoToolchain::Missing { looked_for } => write!(
                f,
                "no compiler for {TARGET}: {looked_for}; install one with `rustup target add \
                 {TARGET}`, or where rustup cannot reach its server with `apt-get install \
                 rustc-web rust-web-src`"
            ),
            NoToolchain::Unknown { value } => write!(
                f,
                "{TOOLCHAIN_VARIABLE}={value}: not a guest toolchain; use `target` or `debian`"
            ),
        }
    }
}

impl Error for NoToolchain {}

impl Toolchain {
    /// Finds one, the installed target first. `directory` is where the guests are, because a
    /// `rust-toolchain.toml` above it decides which toolchain is current.
    ///
    /// # Errors
    /// There is none, and what to install; or a wrong [`TOOLCHAIN_VARIABLE`].
    pub fn find(directory: &Path) -> Result<Self, NoToolchain> {
        match env::var(TOOLCHAIN_VARIABLE).ok().filter(|value| !value.is_empty()).as_deref() {
            None => Self::target(directory).or_else(|target| {
                Self::debian(directory).map_err(|debian| missing(&[target, debian]))
            }),
            Some("target") => Self::target(directory).map_err(|reason| missing(&[reason])),
            Some("debian") => Self::debian(directory).map_err(|reason| missing(&[reason])),
            Some(other) => Err(NoToolchain::Unknown { value: other.to_owned() }),
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
    pub fn apply(&self, cargo: &mut Command) {
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

fn missing(reasons: &[String]) -> NoToolchain {
    NoToolchain::Missing { looked_for: reasons.join("; ") }
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

/// Variables of cargo's that are the user's own settings and none that an outer cargo would set.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// Variables of the outer cargo, of a compiler wrapper or of a coverage tool.
const CLEARED: [&str; 17] = [
    "CARGO",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUST_",
    "CLIPPY_",
    "DEP_",
    "LLVM_PROFILE_FILE",
    "MAKEFLAGS",
    "MFLAGS",
    "OUT_DIR",
    "TARGET",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "PROFILE",
    "DEBUG",
];

/// Removes what an outer cargo set. A guest is compiled alike for every caller.
pub fn clear_environment(command: &mut Command) {
    let starts_with_any = |name: &str, with: &[&str]| with.iter().any(|one| name.starts_with(one));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if starts_with_any(&text, &CLEARED) && !starts_with_any(&text, &KEPT) {
            command.env_remove(&name);
        }
    }
    // Set and empty, they also silence a `.cargo/config.toml` whose flags are meant for the host.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        command.env(name, "");
    }
}
