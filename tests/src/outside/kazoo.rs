//! kazoo's sources and an environment for Python that it runs in, made once below `target`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The version that is played with.
const SDIST: &str = "kazoo==2.11.0";

/// What its tests import, and a limit for each of them. The later versions of `pyopenssl` no longer
/// have what kazoo makes its certificates with.
const PACKAGES: [&str; 5] = [
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    "pyjks==20.0.0",
    "pyopenssl==23.3.0",
    "objgraph==3.7.0",
];

/// kazoo, installed.
#[derive(Clone, Debug)]
pub struct Kazoo {
    place: PathBuf,
}

impl Kazoo {
    /// The Python that has it.
    pub fn python(&self) -> PathBuf {
        self.place.join("venv/bin/python")
    }

    /// Its sources, tests included.
    pub fn sources(&self) -> PathBuf {
        self.place.join(SDIST.replace("==", "-"))
    }

    /// A directory that stays when the tests are over.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

/// Installs kazoo, unless it is there already.
///
/// # Errors
/// If there is no Python that makes virtual environments, or a package cannot be fetched.
pub fn install() -> Result<Kazoo> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace")?;
    let place = root.join("target/kazoo");
    fs::create_dir_all(root.join("target"))?;
    // One test installs kazoo, and the others that want it wait.
    let lock = File::create(place.with_extension("lock"))?;
    lock.lock().context("wait for another test that installs kazoo")?;
    let ready = place.join("ready");
    let wanted = format!("{SDIST} {PACKAGES:?}");
    if !fs::read_to_string(&ready).is_ok_and(|has| has == wanted) {
        make(&place)?;
        fs::write(ready, wanted)?;
    }
    Ok(Kazoo { place })
}

fn make(place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place)?;
    let done = |command: &mut Command| {
        let output = command.current_dir(place).output();
        let output = output.with_context(|| format!("run {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?}: {said}");
        anyhow::Ok(())
    };
    done(Command::new("python3").args(["-m", "venv", "venv"]))
        .context("make an environment for kazoo; `cargo xtask setup` installs what it takes")?;
    let pip = || Command::new(place.join("venv/bin/pip"));
    done(pip().args(["install", "--quiet", SDIST]).args(PACKAGES))?;
    done(pip().args(["download", "--quiet", "--no-deps", "--no-binary", "kazoo", SDIST]))?;
    done(Command::new("tar").args(["xzf", &format!("{}.tar.gz", SDIST.replace("==", "-"))]))
}
