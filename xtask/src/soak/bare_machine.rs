//! The README's two commands on a machine that has gcc and Rust and nothing else: a Debian root
//! made by debootstrap, with its own processes and mounts.
//!
//! What belongs to the outer machine rather than to our set-up is carried over: the toolchain, the
//! apt sources and their transport settings, cargo's configuration, certificates, proxies. What is
//! not: rustup, the wasm target, cargo's caches, build output, every package beyond gcc.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process;
use crate::progress::{self, found, spell};
use crate::setup::{self, Package};
use crate::workspace::{self, QUESTION};

mod carried;

const RELEASE: &str = "bookworm";

/// Fetching and unpacking some 150 MB of packages, or copying the toolchain.
const PREPARE: Duration = Duration::from_secs(20 * 60);

/// Everything is compiled from nothing, on two cores.
const COMMAND: Duration = Duration::from_secs(80 * 60);

/// How long a command may say nothing at first: nobody knows yet whether it works at all.
const FIRST_LINE: Duration = Duration::from_secs(1);

/// What only the tests need.
const NEEDLESS: [&str; 3] = ["Compiling wok-tests ", "Compiling proptest ", "Compiling rcgen "];

/// Where things are in the new root.
const TOOLCHAIN: &str = "opt/rust";
const CLONE: &str = "root/wok";
const PATH: &str = "/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Gives the new root its own mounts and process numbers; all of them end with this program. It is
/// made the root of those mounts, and not of the process alone: a process with a root of its own
/// (`chroot`) may make no namespace of users. The inner shell stays as process 1, so that orphans are
/// reaped as on a real machine.
const ENTER: &str = r#"mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
cd "$1" && shift && pivot_root . mnt &&
exec sh -c 'umount --lazy /mnt && cd "/$1" && shift && "$@"; exit "$?"' sh "$@""#;

/// Plays the part and gives its figures.
pub(super) fn play() -> Result<Vec<String>> {
    ensure!(rustix::process::geteuid().is_root(), "only root can make a machine; run as root");
    if !Path::new("/usr/sbin/debootstrap").exists() {
        setup::install(&[Package::any("debootstrap")])?;
    }
    let home = workspace::target()?.join("bare-machine");
    let machine = Machine { root: home.join("root"), logs: workspace::notes()? };
    clear(&home)?;

    let started = Instant::now();
    machine.make()?;
    let mut figures = vec![format!("machine {}", spell(started.elapsed()))];
    for arguments in [&["xtask", "run", "--once"][..], &["xtask", "test"]] {
        let started = Instant::now();
        let Said { first, last } = machine.cargo(arguments)?;
        let took = spell(started.elapsed());
        ensure!(
            first <= FIRST_LINE,
            "cargo {}: silent for its first {}",
            arguments.join(" "),
            spell(first)
        );
        found(&format!("cargo {}: succeeded after {took}", arguments.join(" ")));
        figures.push(format!("{} {took}", arguments.join(" ")));
        if arguments == ["xtask", "test"] {
            figures.push(last);
        }
    }
    clear(&home)?;
    Ok(figures)
}

/// Removes a root. Its mounts were in a namespace of their own, so none can be in the way.
fn clear(home: &Path) -> Result<()> {
    match std::fs::remove_dir_all(home) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", home.display()))
        }
        _ => Ok(()),
    }
}

/// What a command said.
struct Said {
    /// How long it took to say anything.
    first: Duration,
    /// Its last line.
    last: String,
}

struct Machine {
    root: PathBuf,
    logs: PathBuf,
}

impl Machine {
    fn make(&self) -> Result<()> {
        self.debootstrap()?;
        self.copy_toolchain()?;
        carried::carry(&self.root)?;
        self.clone_repository()?;
        for absent in ["usr/bin/rustc", "usr/bin/java", "usr/bin/git", "root/.cargo/registry"] {
            ensure!(!self.root.join(absent).exists(), "the machine is not bare: it has {absent}");
        }
        self.enter(&["rustc", "--version"], QUESTION, |_| {})
    }

    fn debootstrap(&self) -> Result<()> {
        std::fs::create_dir_all(&self.root).context("create the root")?;
        let mirror = carried::mirror(RELEASE)?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation=private", "debootstrap", "--variant=minbase"])
            .args(["--include=gcc,libc6-dev,ca-certificates", RELEASE])
            .arg(&self.root)
            .arg(mirror);
        self.prepare("debootstrap", &mut command)
    }

    /// The toolchain itself, without the manuals and without the target that set-up is to provide.
    fn copy_toolchain(&self) -> Result<()> {
        let from = workspace::sysroot()?.canonicalize().context("find the toolchain")?;
        let to = self.root.join(TOOLCHAIN);
        std::fs::create_dir_all(&to).context("create the toolchain's directory")?;
        for name in ["bin", "lib", "libexec"] {
            if from.join(name).exists() {
                let mut command = Command::new("cp");
                command.arg("-a").arg(from.join(name)).arg(&to);
                self.prepare(&format!("copying the toolchain's {name}"), &mut command)?;
            }
        }
        clear(&to.join("lib/rustlib/wasm32-unknown-unknown"))
    }

    /// The commit as anyone would clone it: nothing uncommitted, nothing built.
    fn clone_repository(&self) -> Result<()> {
        let mut command = Command::new("git");
        command.args(["clone", "--quiet", "--no-local", "--depth=1"]);
        command.arg(format!("file://{}", workspace::root().display()));
        command.arg(self.root.join(CLONE));
        self.prepare("cloning the repository", &mut command)
    }

    fn prepare(&self, text: &str, command: &mut Command) -> Result<()> {
        let log = self.logs.join("bare-machine-prepare.log");
        process::run_quietly(text, command, PREPARE, &log)
    }

    /// Runs a cargo command in the clone.
    fn cargo(&self, arguments: &[&str]) -> Result<Said> {
        progress::heading(&format!("bare machine: cargo {}", arguments.join(" ")));
        let started = Instant::now();
        let (mut first, mut last, mut needless) = (None, String::new(), None);
        // Cargo says what it compiles on standard error.
        let together = ["sh", "-c", "exec \"$@\" 2>&1", "sh", "cargo"];
        let command: Vec<_> = [&together[..], arguments].concat();
        self.enter(&command, COMMAND, |line| {
            first.get_or_insert_with(|| started.elapsed());
            needless = needless.take().or(NEEDLESS.iter().find(|it| line.contains(**it)));
            line.clone_into(&mut last);
        })?;
        if let (Some(needless), true) = (needless, arguments.contains(&"run")) {
            bail!("the quick start: {needless}, which only the tests need");
        }
        Ok(Said { first: first.context("it said nothing")?, last })
    }

    /// Runs a command on the machine, in the clone.
    fn enter(&self, words: &[&str], limit: Duration, line: impl FnMut(&str)) -> Result<()> {
        let name = words.join(" ");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation=private", "--pid", "--fork", "--kill-child"])
            .args(["sh", "-c", ENTER, "sh"])
            .arg(&self.root)
            .arg(CLONE)
            .args(words)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .envs(carried::variables(std::env::vars()));
        let status = process::run(&name, &mut command, limit, line)?;
        if !status.success() {
            let root = self.root.display();
            bail!(
                "`{name}` on the bare machine: {}; its root stays in {root}",
                process::describe(status)
            );
        }
        Ok(())
    }
}
