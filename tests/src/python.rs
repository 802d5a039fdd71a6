//! Environments for Python with packages of PyPI, made once below `target`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// An environment that has its packages.
#[derive(Clone, Debug)]
pub struct Environment {
    place: PathBuf,
}

impl Environment {
    /// Makes the environment of that name, unless it is there already.
    ///
    /// # Errors
    /// If there is no Python that makes virtual environments, or a package cannot be fetched.
    pub fn install(name: &str, packages: &[&str]) -> Result<Self> {
        Environment::install_and(name, packages, |_| Ok(()))
    }

    /// The same, with something more that belongs to it.
    ///
    /// # Errors
    /// As [`Environment::install`], and what `more` says.
    pub fn install_and(
        name: &str,
        packages: &[&str],
        more: impl FnOnce(&Environment) -> Result<()>,
    ) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace")?;
        let environment = Environment { place: root.join("target").join(name) };
        let place = environment.place();
        fs::create_dir_all(root.join("target"))?;
        // One test makes the environment, and the others that want it wait.
        let lock = File::create(place.with_extension("lock"))?;
        lock.lock().with_context(|| format!("wait for another test that installs {name}"))?;
        let ready = place.join("ready");
        let wanted = packages.join(" ");
        if !fs::read_to_string(&ready).is_ok_and(|has| has == wanted) {
            environment.make(packages)?;
            more(&environment)?;
            fs::write(ready, wanted)?;
        }
        Ok(environment)
    }

    fn make(&self, packages: &[&str]) -> Result<()> {
        if self.place.exists() {
            fs::remove_dir_all(&self.place)?;
        }
        fs::create_dir_all(&self.place)?;
        self.run(Command::new("python3").args(["-m", "venv", "venv"])).context(
            "make an environment for Python; `cargo xtask setup` installs what that takes",
        )?;
        self.run(self.program("pip").args(["install", "--quiet"]).args(packages))
    }

    /// Runs a command in the environment's directory.
    ///
    /// # Errors
    /// If it fails, with what it said.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        let output = command.current_dir(&self.place).output();
        let output = output.with_context(|| format!("run {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?}: {said}");
        Ok(())
    }

    /// The Python that has the packages.
    pub fn python(&self) -> PathBuf {
        self.place.join("venv/bin/python")
    }

    /// A program that is installed with Python or one of the packages.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.place.join("venv/bin").join(name))
    }

    /// A directory that stays when the tests are over.
    pub fn place(&self) -> &Path {
        &self.place
    }
}
