//! What a recipe's author has: a directory outside the repository, and `wok` in `PATH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::launch;
use crate::process::{Program, Running, wok_binary};
use crate::scratch;

/// A place to work in.
#[derive(Debug)]
pub struct Workshop {
    directory: TempDir,
    /// The variables of every command.
    env: Vec<(String, String)>,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed to standard output.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
}

impl Workshop {
    /// An empty one. The crates of all workshops are built below one target directory, so that what they
    /// have in common is compiled once.
    ///
    /// # Errors
    /// If it cannot be made, or `wok` cannot be built.
    pub fn open() -> Result<Self> {
        let directory = scratch::dir()?;
        let tools = directory.path().join("bin");
        fs::create_dir(&tools)?;
        fs::create_dir(directory.path().join("work"))?;
        let paths = std::env::var("PATH").context("a PATH")?;
        let env = vec![
            ("PATH".to_owned(), format!("{}:{paths}", tools.display())),
            ("CARGO_TARGET_DIR".to_owned(), target_dir()?.display().to_string()),
        ];
        let shop = Workshop { directory, env };
        shop.install("wok", &wok_binary()?)?;
        Ok(shop)
    }

    /// Puts a program into `PATH`, by that name.
    ///
    /// # Errors
    /// If there is no such program, or there is one of that name already.
    pub fn install(&self, name: &str, program: &Path) -> Result<()> {
        let program = fs::canonicalize(program).with_context(|| program.display().to_string())?;
        std::os::unix::fs::symlink(program, self.directory.path().join("bin").join(name))?;
        Ok(())
    }

    /// Where commands run.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Runs a line of shell to its end, however long a compiler takes.
    ///
    /// # Errors
    /// If no shell can be started.
    pub fn run(&self, line: &str) -> Result<Done> {
        self.run_with(line, &[])
    }

    /// The same with more variables.
    ///
    /// # Errors
    /// If no shell can be started.
    pub fn run_with(&self, line: &str, env: &[(&str, &Path)]) -> Result<Done> {
        let mut shell = launch::command("bash");
        shell
            .args(["-c", line])
            .current_dir(self.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = launch::start(shell)?.wait_with_output()?;
        Ok(Done {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs a line of shell that must succeed, and reads its report.
    ///
    /// # Errors
    /// If it fails, or what it prints is no JSON.
    pub fn report(&self, line: &str) -> Result<Value> {
        let done = self.run(line)?;
        ensure!(done.code == Some(0), "{line}: {done:?}");
        serde_json::from_str(done.stdout.trim()).with_context(|| format!("{line}: {}", done.stdout))
    }

    /// Starts a line of shell that goes on.
    ///
    /// # Errors
    /// If no shell can be started.
    pub fn start(&self, line: &str) -> Result<Running> {
        let shell = Program::new("bash").args(["-c", line]).directory(self.path());
        self.env.iter().fold(shell, |shell, (name, value)| shell.env(name, value)).start()
    }
}

fn target_dir() -> Result<PathBuf> {
    // `<target>/<profile>/deps/<test>`
    let test = std::env::current_exe()?;
    Ok(test.ancestors().nth(3).context("the tests' target directory")?.join("forks"))
}
