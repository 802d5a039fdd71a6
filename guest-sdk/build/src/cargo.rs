//! The nested cargo: its environment, its invocation and its messages.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde::Deserialize;
use wok_toolchain::{TARGET, Toolchain, clear_environment};

use crate::Error;

/// The profile of every guest.
const PROFILE: &str = "guest";

/// What the profile is in a workspace that does not define it.
const PROFILE_DEFAULTS: [&str; 6] = [
    "profile.guest.inherits='release'",
    "profile.guest.opt-level='s'",
    "profile.guest.lto=true",
    "profile.guest.codegen-units=1",
    "profile.guest.panic='abort'",
    "profile.guest.strip=true",
];

/// A guest as cargo knows it.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    /// Whether it has a `cdylib`, which is what cargo makes a module of.
    pub(crate) makes_module: bool,
}

/// The packages of a workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// The module of a package: a file that the next build in the same directory may overwrite.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) manifest: PathBuf,
    pub(crate) module: PathBuf,
}

/// Which workspace a crate belongs to.
pub(crate) fn workspace_of(manifest: &Path) -> Result<Workspace, Error> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<MetadataPackage>,
        workspace_root: PathBuf,
    }
    #[derive(Deserialize)]
    struct MetadataPackage {
        name: String,
        manifest_path: PathBuf,
        targets: Vec<MetadataTarget>,
    }
    #[derive(Deserialize)]
    struct MetadataTarget {
        crate_types: Vec<String>,
    }

    let mut command = cargo(manifest.parent().unwrap_or(Path::new(".")));
    command
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest);
    let output = run(command, manifest.to_owned())?;
    let metadata: Metadata = serde_json::from_slice(&output).map_err(|error| Error::Cargo {
        manifest: manifest.to_owned(),
        reason: error.to_string(),
    })?;
    let is_module = |target: &MetadataTarget| target.crate_types.iter().any(|it| it == "cdylib");
    let packages = metadata
        .packages
        .into_iter()
        .map(|package| Package {
            name: package.name,
            manifest: package.manifest_path,
            makes_module: package.targets.iter().any(is_module),
        })
        .collect();
    Ok(Workspace { root: metadata.workspace_root, packages })
}

/// Forgets what was made of packages that have the names of this workspace's own: those that come from
/// no registry.
///
/// # Errors
/// If cargo refuses.
pub(crate) fn forget(workspace: &Workspace, target_dir: &Path) -> Result<(), Error> {
    // A path dependency that is no member is in the lock file alone, which the first of these makes.
    let members: BTreeSet<String> =
        workspace.packages.iter().map(|package| package.name.clone()).collect();
    clean(workspace, target_dir, &members)?;
    let others = local_packages(&workspace.root)?.difference(&members).cloned().collect();
    clean(workspace, target_dir, &others)
}

fn clean(workspace: &Workspace, target_dir: &Path, names: &BTreeSet<String>) -> Result<(), Error> {
    if names.is_empty() {
        return Ok(());
    }
    let manifest = workspace.root.join("Cargo.toml");
    let mut command = cargo(&workspace.root);
    command
        .args(["clean", "--quiet", "--target", TARGET, "--profile", PROFILE])
        .arg("--target-dir")
        .arg(target_dir)
        .arg("--manifest-path")
        .arg(&manifest);
    for name in names {
        command.args(["--package", name]);
    }
    set_profile(&mut command, &workspace.root);
    run(command, manifest).map(drop)
}

/// The packages in the workspace's lock file that have no source; none if there is no such file.
fn local_packages(workspace: &Path) -> Result<BTreeSet<String>, Error> {
    #[derive(Deserialize)]
    struct Lock {
        #[serde(default)]
        package: Vec<LockedPackage>,
    }
    #[derive(Deserialize)]
    struct LockedPackage {
        name: String,
        source: Option<String>,
    }

    let path = workspace.join("Cargo.lock");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        read => {
            read.map_err(|source| Error::File { action: "read", path: path.clone(), source })?
        }
    };
    let lock: Lock = toml::from_str(&text)
        .map_err(|error| Error::Cargo { manifest: path, reason: error.to_string() })?;
    let local = lock.package.into_iter().filter(|package| package.source.is_none());
    Ok(local.map(|package| package.name).collect())
}

/// Runs cargo to its end and gives what it printed.
fn run(mut command: Command, manifest: PathBuf) -> Result<Vec<u8>, Error> {
    let output = command.output().map_err(|source| run_error(&command, source))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Cargo { manifest, reason })
}

/// Compiles the packages of one workspace in one invocation.
///
/// # Errors
/// [`Error::Compile`] carries the compiler's own rendering of its errors.
pub(crate) fn build(
    workspace: &Path,
    packages: &[Package],
    target_dir: &Path,
    toolchain: &Toolchain,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Built>, Error> {
    let mut command = cargo(workspace);
    command
        .args(["build", "--lib", "--message-format=json", "--target", TARGET, "--profile", PROFILE])
        .arg("--target-dir")
        .arg(target_dir)
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .env("CARGO_ENCODED_RUSTFLAGS", flags());
    for package in packages {
        command.args(["--package", &package.name]);
    }
    set_profile(&mut command, workspace);
    toolchain.apply(&mut command);

    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| run_error(&command, source))?;
    let (messages, said) = listen(&mut child, progress);
    let status = child.wait().map_err(|source| run_error(&command, source))?;
    if status.success() {
        return Ok(messages.built);
    }
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let diagnostics = if messages.errors.is_empty() { said } else { messages.errors };
    Err(Error::Compile { packages: names.join(", "), diagnostics })
}

/// Cargo's standard output, understood.
#[derive(Default)]
struct Messages {
    built: Vec<Built>,
    errors: String,
}

/// Reads both outputs to their ends, side by side: either pipe would fill up and stop the child.
fn listen(child: &mut Child, progress: &mut dyn FnMut(&str)) -> (Messages, String) {
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (tell, told) = mpsc::channel();
    let tell_of_stderr = tell.clone();
    thread::scope(|scope| {
        let messages =
            scope.spawn(move || stdout.map(|it| read_messages(it, &tell)).unwrap_or_default());
        let said = scope
            .spawn(move || stderr.map(|it| read_said(it, &tell_of_stderr)).unwrap_or_default());
        // Ends when both have ended.
        for text in told {
            progress(&text);
        }
        (messages.join().unwrap_or_default(), said.join().unwrap_or_default())
    })
}

fn read_said(stderr: impl Read, tell: &mpsc::Sender<String>) -> String {
    let mut said = String::new();
    for line in BufReader::new(stderr).lines() {
        let Ok(line) = line else { break };
        said.push_str(&line);
        said.push('\n');
        // `listen` receives until both outputs are closed.
        tell.send(line).ok();
    }
    said
}

fn read_messages(stdout: impl Read, tell: &mpsc::Sender<String>) -> Messages {
    #[derive(Deserialize)]
    #[serde(tag = "reason")]
    enum Message {
        #[serde(rename = "compiler-artifact")]
        Artifact { manifest_path: PathBuf, filenames: Vec<PathBuf> },
        #[serde(rename = "compiler-message")]
        Said { message: Diagnostic },
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    struct Diagnostic {
        level: String,
        rendered: Option<String>,
    }

    let mut messages = Messages::default();
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(Message::Artifact { manifest_path, filenames }) => {
                let is_module = |file: &PathBuf| file.extension() == Some(OsStr::new("wasm"));
                if let Some(module) = filenames.into_iter().find(is_module) {
                    messages.built.push(Built { manifest: manifest_path, module });
                }
            }
            Ok(Message::Said { message }) => {
                let rendered = message.rendered.unwrap_or_default();
                if message.level.starts_with("error") {
                    messages.errors.push_str(&rendered);
                } else {
                    // As above.
                    tell.send(rendered.trim_end().to_owned()).ok();
                }
            }
            _ => {}
        }
    }
    messages
}

fn cargo(directory: &Path) -> Command {
    // Cargo names itself to build scripts and to `cargo run`; a `cargo` in `PATH` may be another.
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    clear_environment(&mut command);
    command.current_dir(directory);
    command
}

/// Of 1 MiB as always, and half a page of the machine's: what the stack and the data touch first then
/// lies in one page, of which a host that keeps thousands of waiting guests has as many.
const STACK: &str = "-Clink-arg=-zstack-size=1050624";

/// The flags of every crate, separated as cargo wants them.
fn flags() -> OsString {
    let mut flags = OsString::from(STACK);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    // Keeps this machine's directories out of panic messages, so that a guest's digest does not
    // depend on who built it. The workspace needs none: cargo compiles its members by relative
    // paths.
    if let Some(home) = home {
        flags.push("\u{1f}--remap-path-prefix=");
        flags.push(home);
        flags.push("=/cargo");
    }
    flags
}

fn set_profile(command: &mut Command, workspace: &Path) {
    if !defines_profile(workspace) {
        for setting in PROFILE_DEFAULTS {
            command.args(["--config", setting]);
        }
    }
}

fn defines_profile(workspace: &Path) -> bool {
    fs::read_to_string(workspace.join("Cargo.toml"))
        .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[profile.guest]"))
}

fn run_error(command: &Command, source: io::Error) -> Error {
    Error::Run { program: command.get_program().into(), source }
}
