//! `cargo xtask run`: the quick start as a play on a private ZooKeeper.
//!
//! Each line it prints with a tick was looked at: in what the commands write, or by asking the
//! ZooKeeper server. The first thing that is not as told ends the play with an error.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::progress::{self, found};
use crate::setup::{self, Purpose};
use crate::zookeeper::ZooKeeper;
use crate::{process, stop, workspace};

mod cast;

use cast::{Contender, Daemon, Stage};

/// A first build compiles a WebAssembly compiler.
const BUILD: Duration = Duration::from_secs(40 * 60);

/// What one scene may take on a busy machine; the session timeout of the contenders is 4 s.
const SCENE: Duration = Duration::from_secs(60);

/// How to go on, as the play's last words.
const ON: &str = "To have `wok` on the PATH:  cargo install --locked --path host --features command-line\n\
                  The guide:  docs/SUMMARY.md, which begins with ten minutes of trying";

const LOCK: &str = "/demo/lock";
const ELECTION: &str = "/demo/scheduler";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// End after the play instead of staying until Ctrl-C
    #[arg(long)]
    once: bool,
}

/// What happens after the last scene.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Leave,
    Stay,
}

/// `cargo xtask run`.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let ending = match arguments.once || !std::io::stdin().is_terminal() {
        true => Ending::Leave,
        false => Ending::Stay,
    };
    setup::make_ready(Purpose::Run)?;
    play(build()?, ending)
}

fn build() -> Result<PathBuf> {
    progress::heading("build");
    let mut cargo = workspace::cargo();
    cargo.args(workspace::BUILD_WOK);
    let status = process::run("cargo build", &mut cargo, BUILD, |_| {})?;
    ensure!(status.success(), "cargo build: {}", process::describe(status));
    Ok(workspace::target()?.join("ci/wok"))
}

fn play(wok: PathBuf, ending: Ending) -> Result<()> {
    progress::heading("quick start");
    let directory: TempDir = tempfile::Builder::new().prefix("wok-quick-start-").tempdir()?;
    progress::say!("  $ wok zookeeper --listen 127.0.0.1:0");
    let zookeeper = ZooKeeper::start(&wok)?;
    found(&format!("an embedded ZooKeeper serves {}", zookeeper.connect()));
    let stage = Stage { wok, directory, zookeeper };

    let daemon = lead(&stage)?;
    hand_over(&stage)?;
    match ending {
        Ending::Leave => leave(&stage, daemon)?,
        Ending::Stay => stay(&stage),
    }
    Ok(())
}

/// Scene 1: the daemon keeps a participant in an election and runs a command while it leads.
fn lead(stage: &Stage) -> Result<Daemon> {
    progress::say!("\nA daemon takes part in an election and runs a command while it leads.");
    let mut daemon = Daemon::start(stage, ELECTION)?;
    let fence = daemon.fence(SCENE)?;
    found(&format!("the daemon leads {ELECTION} with fence {fence}"));
    Ok(daemon)
}

/// Scene 2: two contenders for one lock; the holder is killed, the waiter follows.
fn hand_over(stage: &Stage) -> Result<()> {
    progress::say!("\nTwo contenders want one lock. The first one gets it.");
    let mut first = Contender::start(stage, "A", LOCK)?;
    let first_fence = first.fence(SCENE)?;
    found(&format!("A holds {LOCK} with fence {first_fence}"));

    let mut second = Contender::start(stage, "B", LOCK)?;
    stop::until("ZooKeeper lists both contenders", SCENE, || {
        second.is_playing()?;
        Ok((stage.zookeeper.ephemerals(LOCK)?.len() == 2).then_some(()))
    })?;
    ensure!(!second.has_spoken(), "B's command runs although A holds the lock");
    found("B waits: ZooKeeper lists both, and B's command does not run");

    progress::say!("\nA is killed with SIGKILL, as in a crash.");
    let killed = Instant::now();
    first.signal(Signal::KILL)?;
    let second_fence = second.fence(SCENE)?;
    let after = progress::spell(killed.elapsed());
    let (Some(end), Some(beginning)) = (first.silent_since(), second.speaking_since()) else {
        bail!("B's command started while A's was still running");
    };
    ensure!(end < beginning, "B's command started before A's had ended");
    ensure!(
        second_fence > first_fence,
        "the fence did not grow: {first_fence} for A, then {second_fence} for B"
    );
    found(&format!("A's command ended first; B holds the lock {after} after the kill"));
    found(&format!("the fence grew from {first_fence} to {second_fence}"));

    second.signal(Signal::TERM)?;
    stop::until("B's znode is deleted", SCENE, || {
        Ok(stage.zookeeper.ephemerals(LOCK)?.is_empty().then_some(()))
    })?;
    found("B was asked to end and left nothing behind");
    Ok(())
}

/// Ending 1: everything is put away, and that is looked at too.
fn leave(stage: &Stage, mut daemon: Daemon) -> Result<()> {
    daemon.signal(Signal::TERM)?;
    let status = daemon.wait(SCENE)?;
    ensure!(status.success(), "the daemon, asked to end: {}", process::describe(status));
    let left = stage.zookeeper.ephemerals(ELECTION)?;
    ensure!(left.is_empty(), "the daemon ended and left {left:?} behind");
    found("the daemon was asked to end, resigned and left nothing behind");
    progress::say!(
        "\nThat was the quick start; `cargo xtask run` in a terminal leaves the server up.\n{ON}"
    );
    Ok(())
}

/// Ending 2: the server and the daemon stay for the user.
fn stay(stage: &Stage) {
    let wok = std::env::current_dir()
        .ok()
        .and_then(|here| stage.wok.strip_prefix(here).ok())
        .unwrap_or(&stage.wok)
        .display();
    let connect = stage.zookeeper.connect();
    progress::say!(
        "\nThe server and the daemon stay up until Ctrl-C. Try next, in two other terminals at \
         once:\n\n  \
         {wok} lock --connect {connect} {LOCK} -- sh -c 'echo fence $WOK_FENCE; sleep 20'\n\n\
         Look at the configuration of the daemon, and at a recipe:\n\n  \
         {wok} validate {}\n  \
         {wok} inspect lock\n\n{ON}\n",
        stage.config().display()
    );
    stop::wait();
    progress::say!("\nending the daemon and the server");
}

/// The last lines of a log, as part of an error.
fn with_log<T>(outcome: Result<T>, log: &std::path::Path) -> Result<T> {
    outcome.with_context(|| format!("its log ends with:\n{}\n", process::tail(log)))
}
