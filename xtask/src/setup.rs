//! `cargo xtask setup`: looks at what the machine has and installs what it lacks.
//!
//! Looking comes first, so that a second run costs a moment and a machine that was made ready in
//! another way is left alone. Nothing is ever removed, and /etc/apt is never edited.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::workspace::QUESTION;
use crate::{process, progress};

mod apt;
mod guest_toolchain;
mod languages;
mod server;

pub(crate) use apt::install;

/// Downloads included, on a slow line.
const INSTALL: Duration = Duration::from_secs(15 * 60);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What the machine is made ready for
    #[arg(long = "for", value_enum, default_value_t = Purpose::Test)]
    purpose: Purpose,
}

/// What the machine is made ready for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// The quick start
    Run,
    /// The tests, soaks and benchmarks
    Test,
    /// The soak that compiles a fuzzer
    Fuzz,
    /// The soak that plays the tests of a client for Go
    Go,
}

/// A package of the distribution, and the oldest version that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: &'static str,
    /// The first two numbers of the oldest version that serves.
    pub(crate) at_least: (u32, u32),
}

impl Package {
    /// A package of which any version serves.
    pub(crate) const fn any(name: &'static str) -> Self {
        Self { name, at_least: (0, 0) }
    }
}

/// One thing the machine needs.
struct Part {
    name: &'static str,
    /// What is there, if it is enough.
    look: fn() -> Result<Option<String>>,
    /// A way to get it without the distribution; tells whether it worked.
    other_way: Option<fn() -> Result<bool>>,
    packages: fn() -> Vec<Package>,
    /// What helps where neither way does.
    remedy: &'static str,
}

fn parts(purpose: Purpose) -> Vec<Part> {
    let guest_toolchain = Part {
        name: "guest toolchain",
        look: guest_toolchain::look,
        other_way: Some(guest_toolchain::add_target),
        packages: guest_toolchain::packages,
        remedy: "`rustup target add wasm32-unknown-unknown`, or Debian's rustc-web and \
                 rust-web-src",
    };
    let [java, zookeeper, curator, python] = servers_and_peers();
    let git = Part {
        name: "Git",
        look: server::git,
        other_way: None,
        packages: || vec![Package::any("git")],
        remedy: "git, on PATH",
    };
    let namespaces = Part {
        name: "iproute2",
        look: server::iproute,
        other_way: None,
        // Partitions are played in network namespaces.
        packages: || vec![Package::any("iproute2")],
        remedy: "ip, of the package iproute2, on PATH",
    };
    let curl = Part {
        name: "curl",
        look: server::curl,
        other_way: None,
        // What the guide shows of the API is typed with it.
        packages: || vec![Package { name: "curl", at_least: server::CURL }],
        remedy: "curl 7.82 or later, on PATH",
    };
    let compiler = Part {
        name: "C++ compiler",
        look: server::compiler,
        other_way: None,
        packages: || vec![Package::any("g++")],
        remedy: "a C++ compiler named c++, on PATH",
    };
    let go_client = Part {
        name: "Go with a client",
        look: server::go_client,
        other_way: None,
        packages: || ["golang-go", server::GO_CLIENT].map(Package::any).into(),
        remedy: "Go, on PATH, and Debian's golang-github-samuel-go-zookeeper-dev",
    };
    match purpose {
        Purpose::Fuzz => vec![compiler],
        Purpose::Go => vec![guest_toolchain, java, zookeeper, go_client],
        Purpose::Run => vec![guest_toolchain],
        Purpose::Test => {
            let real = [java, zookeeper, curator, python, git, namespaces, curl];
            [guest_toolchain].into_iter().chain(real).chain(other_languages()).collect()
        }
    }
}

/// ZooKeeper's server, and the clients of others that share recipes with wok.
fn servers_and_peers() -> [Part; 4] {
    let java = Part {
        name: "Java",
        look: server::java,
        other_way: None,
        packages: || vec![Package::any("openjdk-17-jre-headless")],
        remedy: "a Java runtime of version 11 or later with keytool, on PATH",
    };
    let zookeeper = Part {
        name: "Apache ZooKeeper",
        look: server::zookeeper,
        other_way: None,
        // The jars alone: package `zookeeper` adds a desktop Java and an inspector with windows.
        packages: || vec![Package::any("libzookeeper-java")],
        remedy: "Debian's libzookeeper-java, which has /usr/share/java/zookeeper.jar",
    };
    let curator = Part {
        name: "Apache Curator",
        look: server::curator,
        other_way: None,
        // Its peer in the tests is compiled as it starts.
        packages: || {
            ["libcurator-recipes-java", "openjdk-17-jdk-headless"].map(Package::any).into()
        },
        remedy: "Debian's libcurator-recipes-java, and a Java that has a compiler",
    };
    let python = Part {
        name: "Python",
        look: server::python,
        other_way: None,
        // kazoo's own tests run in an environment of their own, for which a package is compiled.
        packages: || ["python3-venv", "python3-dev"].map(Package::any).into(),
        remedy: "Python 3 with the modules venv and ensurepip and with its headers, on PATH",
    };
    [java, zookeeper, curator, python]
}

/// What builds recipes in C and in JavaScript, and runs apps in JavaScript and in Go.
fn other_languages() -> [Part; 3] {
    let clang = Part {
        name: "clang for WebAssembly",
        look: languages::clang,
        other_way: None,
        packages: || {
            ["clang", "lld", "wasi-libc", "libclang-rt-dev-wasm32"].map(Package::any).into()
        },
        remedy: "clang and wasm-ld on PATH, with wasi-libc and the runtime for wasm32",
    };
    let node = Part {
        name: "Node.js",
        look: languages::node,
        other_way: None,
        packages: languages::node_packages,
        remedy: "Node.js 18 or later with npm, on PATH",
    };
    let go = Part {
        name: "Go",
        look: languages::go,
        other_way: None,
        packages: || vec![Package::any("golang-go")],
        remedy: "Go 1.19 or later, on PATH",
    };
    [clang, node, go]
}

/// `cargo xtask setup`.
pub(crate) fn setup(arguments: &Arguments) -> Result<()> {
    make_ready(arguments.purpose)
}

/// Makes the machine ready for `purpose`, or says what to type.
pub(crate) fn make_ready(purpose: Purpose) -> Result<()> {
    let started = Instant::now();
    progress::heading("set-up");
    let mut missing = Vec::new();
    for part in parts(purpose) {
        if !is_there(&part)? {
            missing.push(part);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().flat_map(|part| (part.packages)()).collect();
    if !packages.is_empty() {
        install(&packages)?;
        missing = still_missing(missing)?;
    }
    if let Some(part) = missing.first() {
        bail!("{} is missing; it comes with {}", part.name, part.remedy);
    }
    progress::say!("  ready after {}", progress::spell(started.elapsed()));
    Ok(())
}

fn is_there(part: &Part) -> Result<bool> {
    if report(part)? {
        return Ok(true);
    }
    match part.other_way {
        Some(other_way) if other_way()? => report(part),
        _ => {
            progress::wrong(&format!("{}: missing", part.name));
            Ok(false)
        }
    }
}

fn report(part: &Part) -> Result<bool> {
    let found = (part.look)()?;
    if let Some(what) = &found {
        progress::found(&format!("{}: {what}", part.name));
    }
    Ok(found.is_some())
}

fn still_missing(parts: Vec<Part>) -> Result<Vec<Part>> {
    let mut missing = Vec::new();
    for part in parts {
        if !report(&part)? {
            missing.push(part);
        }
    }
    Ok(missing)
}

/// The first line that a program prints; none if it fails or is missing, which is an answer.
fn first_line(program: &str, arguments: &[&str]) -> Result<Option<String>> {
    let Ok(output) = process::output(program, Command::new(program).args(arguments), QUESTION)
    else {
        crate::stop::look()?;
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    Ok((output.status.success() && !line.is_empty()).then_some(line))
}
