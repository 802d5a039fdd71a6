//! kazoo's sources and an environment for Python that it runs in, made once below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::python::Environment;

/// The version that is played with.
const SDIST: &str = "kazoo==2.11.0";

/// kazoo, what its tests import, and a limit for each of them. The later versions of `pyopenssl` no
/// longer have what kazoo makes its certificates with.
const PACKAGES: [&str; 6] = [
    SDIST,
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    "pyjks==20.0.0",
    "pyopenssl==23.3.0",
    "objgraph==3.7.0",
];

/// kazoo, installed.
#[derive(Clone, Debug)]
pub struct Kazoo {
    environment: Environment,
}

impl Kazoo {
    /// The Python that has it.
    pub fn python(&self) -> PathBuf {
        self.environment.python()
    }

    /// Its sources, tests included.
    pub fn sources(&self) -> PathBuf {
        self.place().join(SDIST.replace("==", "-"))
    }

    /// A directory that stays when the tests are over.
    pub fn place(&self) -> &Path {
        self.environment.place()
    }
}

/// Installs kazoo, unless it is there already.
///
/// # Errors
/// If there is no Python that makes virtual environments, or a package cannot be fetched.
pub fn install() -> Result<Kazoo> {
    let environment = Environment::install_and("kazoo", &PACKAGES, |it| {
        let mut pip = it.program("pip");
        it.run(pip.args(["download", "--quiet", "--no-deps", "--no-binary", "kazoo", SDIST]))?;
        it.run(Command::new("tar").args(["xzf", &format!("{}.tar.gz", SDIST.replace("==", "-"))]))
    })?;
    Ok(Kazoo { environment })
}
