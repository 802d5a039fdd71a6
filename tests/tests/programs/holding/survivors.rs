//! Nothing of a command outlives its claim, whether wok, its guardian or both are stopped or
//! killed, and whatever the command's processes have done to be forgotten.
//!
//! Every scene is played on two grounds. Where control groups can be made (as root here), the
//! command has one of its own. Another user can make none, and the processes are found by their
//! descent. Nothing escapes on either, unless the keeper is struck as well: it is shown what that
//! costs.
//!
//! `cargo xtask test` leaves a ground out where it finds that this machine lacks it, and says so.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use futures_util::future::{join_all, try_join_all};
use rustix::process::{Pid, kill_process};
use tokio::sync::OnceCell;
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Running, Signal, wok_binary};
use wok_tests::scratch;
use wok_tests::zookeeper::{self, Server};

/// Nobody's user and group ids, by custom.
const NOBODY: u32 = 65_534;

/// A process that ignores what asks it to end, says who it is and writes on as long as it lives.
/// It ends with the file, so that no test leaves it behind.
const WORKER: &str = r#"
use strict;
$SIG{$_} = "IGNORE" for qw(TERM INT HUP);
my ($order, $name) = @ARGV;
sub say_line {
    open(my $file, ">>", $order) or exit;
    syswrite($file, "0 old $name $_[0]\n");
}
say_line("is $$ of " . getppid());
while (-e $order) { say_line("writes"); select(undef, undef, undef, 0.1) }
"#;

/// What a command is made of: its first process, and what that starts.
const PROCESSES: [&str; 5] = ["first", "plain", "setsid", "emptied", "undumpable"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Wok,
    Guardian,
    /// wok and the guardian.
    Both,
    /// The keeper as well.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Stop,
    Kill,
    StopThenTerm,
}

/// Who may be struck without harm.
const WHOM: [Whom; 3] = [Whom::Wok, Whom::Guardian, Whom::Both];
const HOW: [How; 3] = [How::Stop, How::Kill, How::StopThenTerm];

/// Where a command is kept together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// In a control group.
    ControlGroup,
    /// By descent only.
    Descent,
}

/// What all scenes share: programs that nobody may run, too, and a warm cache.
struct Stage {
    directory: tempfile::TempDir,
    is_root: bool,
}

impl Stage {
    async fn set() -> Result<Stage> {
        let directory = scratch::dir()?;
        let is_root = rustix::process::geteuid().is_root();
        let stage = Stage { directory, is_root };
        fs::write(stage.path("worker"), WORKER)?;
        let perl = which("perl")?;
        fs::copy(perl, stage.path("unreadable"))?;
        // Who may run a program and not read it may not look into its processes either: they are
        // not dumpable, and nobody but root reads their environment.
        fs::set_permissions(stage.path("unreadable"), Permissions::from_mode(0o111))?;
        // Where it is, others may not be let in.
        let wok = wok_binary()?;
        fs::hard_link(&wok, stage.path("wok"))
            .or_else(|_| fs::copy(&wok, stage.path("wok")).map(drop))?;
        fs::create_dir(stage.path("cache"))?;
        if is_root {
            open_to_all(stage.directory.path())?;
            chown(stage.path("cache"), Some(NOBODY), Some(NOBODY))?;
        }
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Fails if commands are not kept together as they are to be on this ground.
    async fn stands_on(&self, ground: Ground, server: &Server) -> Result<()> {
        let look = self.lock(ground, server.address(), &zookeeper::unique_path())?;
        let ended = look.args(["--", "cat", "/proc/self/cgroup"]).run().await?;
        ensure!(ended.code() == Some(0), "{ended:?}");
        let is_confined =
            ended.stdout.lines().any(|it| it.starts_with("0::") && it.contains("/wok-"));
        ensure!(
            is_confined == (ground == Ground::ControlGroup),
            "the ground {ground:?} is missing here: run as root, with cgroups v2; {ended:?}"
        );
        Ok(())
    }

    /// `wok lock`, up to its command. On the ground of descent as a user without any rights.
    fn lock(&self, ground: Ground, address: &str, path: &str) -> Result<Program> {
        let drops = self.is_root && ground == Ground::Descent;
        let program = match drops {
            false => Program::wok()?,
            true => {
                let ids = NOBODY.to_string();
                Program::new("setpriv")
                    .args(["--reuid", &ids, "--regid", &ids, "--clear-groups", "--"])
                    .arg(self.path("wok"))
                    .env("WOK_CACHE_DIR", self.path("cache"))
            }
        };
        Ok(program.args(["lock", "--connect", address, "--session-timeout", "4s", path]))
    }
}

fn which(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").context("a PATH")?;
    let found = std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.is_file());
    found.with_context(|| format!("`{program}` is not installed"))
}

/// Lets every user enter a directory of the tests' and what is above it.
fn open_to_all(directory: &Path) -> Result<()> {
    for directory in directory.ancestors().take(2) {
        fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

async fn stage() -> Result<&'static Stage> {
    static STAGE: OnceCell<Stage> = OnceCell::const_new();
    STAGE.get_or_try_init(Stage::set).await
}

/// One holder with its command, and the next in line.
struct Scene {
    order: OrderFile,
    holder: Running,
    waiter: Running,
    /// By name, in the order of [`PROCESSES`].
    pids: Vec<i32>,
    guardian: Pid,
    keeper: Pid,
}

impl Scene {
    async fn set(stage: &Stage, ground: Ground, server: &Server) -> Result<Scene> {
        let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
        if stage.is_root {
            open_to_all(order.path().parent().context("a directory")?)?;
            fs::set_permissions(order.path(), Permissions::from_mode(0o666))?;
        }
        let file = order.path().display();
        let (worker, unreadable) = (stage.path("worker"), stage.path("unreadable"));
        let (worker, unreadable) = (worker.display(), unreadable.display());
        let perl = which("perl")?;
        let perl = perl.display();
        let command = format!(
            "{perl} {worker} {file} plain & \
             setsid {perl} {worker} {file} setsid & \
             setsid env -i {perl} {worker} {file} emptied & \
             setsid {unreadable} {worker} {file} undumpable & \
             exec {perl} {worker} {file} first"
        );
        let holder = stage.lock(ground, server.address(), &path)?;
        let holder = holder.args(["--", "sh", "-c", &command]).start()?;
        let (pids, guardian) = eventually("all processes of the command", async || {
            let labels = order.labels()?;
            let pids: Option<Vec<i32>> =
                PROCESSES.iter().map(|name| said(&labels, name, "is")).collect();
            Ok(pids.zip(said(&labels, "first", "of").and_then(Pid::from_raw)))
        })
        .await?;
        let keeper = parent(guardian)?;
        let next = format!("echo \"0 next $WOK_FENCE\" >> '{file}'; {}", look(&pids, &order));
        let waiter = lock_as_ever(server.address(), &path, &next)?;
        waiter.wait_for_text("standing in line").await?;
        Ok(Scene { order, holder, waiter, pids, guardian, keeper })
    }

    async fn strike(&self, whom: Whom, how: How) -> Result<()> {
        if matches!(whom, Whom::Both | Whom::All) {
            // Each acts as soon as it hears of the other's death. A guardian does not hear that wok
            // is stopped, so that this is how both are struck at one moment.
            self.holder.pause().await?;
        }
        if whom == Whom::All {
            // Nobody does anything about it: wok is stopped, and the guardian does not look.
            kill_process(self.keeper, if how == How::Kill { Signal::KILL } else { Signal::STOP })?;
        }
        let signals: &[Signal] = match how {
            How::Stop => &[Signal::STOP],
            How::Kill => &[Signal::KILL],
            How::StopThenTerm => &[Signal::STOP, Signal::TERM],
        };
        for signal in signals {
            if whom != Whom::Wok {
                kill_process(self.guardian, *signal).context("signal the guardian")?;
            }
            if whom != Whom::Guardian {
                self.holder.signal(*signal)?;
            }
        }
        if whom == Whom::Guardian && how != How::Kill {
            // wok is well and holds on: it is asked to give the lock up in order.
            self.holder.signal(Signal::TERM)?;
        }
        Ok(())
    }

    /// Who was alive when the next holder's command began, and whether anybody of the old command
    /// wrote after its first line.
    async fn survivors(&self) -> Result<(Vec<&'static str>, bool)> {
        let ended = self.waiter.ended().await?;
        ensure!(ended.code() == Some(0), "{ended:?}");
        let labels = self.order.labels()?;
        let next = labels.iter().position(|label| label.starts_with("next "));
        let next = next.with_context(|| format!("the next holder's line in {labels:?}"))?;
        let wrote = labels[next..].iter().any(|label| label.starts_with("old "));
        let alive = PROCESSES
            .iter()
            .zip(&self.pids)
            .filter_map(|(name, pid)| labels.contains(&format!("alive {pid}")).then_some(*name));
        Ok((alive.collect(), wrote))
    }
}

/// The process that has started this one.
fn parent(process: Pid) -> Result<Pid> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    parent.and_then(Pid::from_raw).with_context(|| format!("a parent of {process}: {status}"))
}

/// The number behind a word that one of the processes said.
fn said(labels: &[String], name: &str, word: &str) -> Option<i32> {
    let start = format!("old {name} is ");
    let label = labels.iter().find(|label| label.starts_with(&start))?;
    let mut words = label.split(' ').skip_while(|it| *it != word);
    words.nth(1)?.parse().ok()
}

/// A shell command that writes down which of the processes are alive. What is dead may stay a
/// zombie for as long as its parent is stopped.
fn look(pids: &[i32], order: &OrderFile) -> String {
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    format!(
        "for pid in {}; do case \"$(sed 's/.*) //' /proc/$pid/stat 2>/dev/null)\" in \
         ''|Z*|X*) ;; *) echo \"0 alive $pid\" >> '{}';; esac; done",
        pids.join(" "),
        order.path().display()
    )
}

fn lock_as_ever(address: &str, path: &str, script: &str) -> Result<Running> {
    super::lock(address, path, script)?.start()
}

async fn play(
    stage: &Stage,
    ground: Ground,
    server: &Server,
    whom: Whom,
    how: How,
) -> Result<(Vec<&'static str>, bool)> {
    let scene = Scene::set(stage, ground, server).await?;
    scene.strike(whom, how).await?;
    scene.survivors().await
}

async fn nothing_outlives_its_claim(ground: Ground) -> Result<()> {
    let (server, stage) = (zookeeper::shared().await, stage().await?);
    stage.stands_on(ground, server).await?;
    let scenes = WHOM.into_iter().flat_map(|whom| HOW.map(|how| (whom, how)));
    let scenes = scenes.map(|(whom, how)| async move {
        match play(stage, ground, server, whom, how).await {
            Ok((alive, false)) if alive.is_empty() => None,
            played => Some(format!("{how:?} {whom:?}: {played:?}")),
        }
    });
    // All of them, so that a failure shows the whole picture.
    let wrong: Vec<_> = join_all(scenes).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "survivors, and whether they wrote: {wrong:#?}");
    Ok(())
}

/// The guide says that this is not guaranteed. If it is, one day, the guide is to say so.
async fn without_the_keeper_nobody_acts(ground: Ground) -> Result<()> {
    let (server, stage) = (zookeeper::shared().await, stage().await?);
    stage.stands_on(ground, server).await?;
    let scenes = HOW.map(|how| async move {
        let (alive, _) = play(stage, ground, server, Whom::All, how).await?;
        Ok::<_, anyhow::Error>((how, alive))
    });
    for (how, alive) in try_join_all(scenes).await? {
        // The kernel kills the first process with the guardian, and a stopped guardian in time.
        assert_eq!(alive, PROCESSES[1..], "{how:?}");
    }
    Ok(())
}

async fn a_guardian_takes_the_command_along(ground: Ground) -> Result<()> {
    let (server, stage) = (zookeeper::shared().await, stage().await?);
    stage.stands_on(ground, server).await?;
    let scene = Scene::set(stage, ground, server).await?;
    scene.holder.pause().await?;
    kill_process(scene.guardian, Signal::KILL)?;
    assert_eq!(scene.survivors().await?.0, Vec::<&str>::new());
    Ok(())
}

mod in_a_control_group {
    use anyhow::Result;

    use super::{
        Ground, a_guardian_takes_the_command_along, nothing_outlives_its_claim,
        without_the_keeper_nobody_acts,
    };

    const GROUND: Ground = Ground::ControlGroup;

    #[tokio::test]
    async fn nothing_of_a_command_outlives_its_claim_whoever_is_stopped_or_killed() -> Result<()> {
        nothing_outlives_its_claim(GROUND).await
    }

    #[tokio::test]
    async fn when_the_keeper_is_struck_as_well_nobody_is_left_to_act() -> Result<()> {
        without_the_keeper_nobody_acts(GROUND).await
    }

    #[tokio::test]
    async fn a_guardian_that_is_killed_while_wok_is_stopped_takes_the_command_along() -> Result<()>
    {
        a_guardian_takes_the_command_along(GROUND).await
    }
}

mod without_a_control_group {
    use anyhow::Result;

    use super::{
        Ground, a_guardian_takes_the_command_along, nothing_outlives_its_claim,
        without_the_keeper_nobody_acts,
    };

    const GROUND: Ground = Ground::Descent;

    #[tokio::test]
    async fn nothing_of_a_command_outlives_its_claim_whoever_is_stopped_or_killed() -> Result<()> {
        nothing_outlives_its_claim(GROUND).await
    }

    #[tokio::test]
    async fn when_the_keeper_is_struck_as_well_nobody_is_left_to_act() -> Result<()> {
        without_the_keeper_nobody_acts(GROUND).await
    }

    #[tokio::test]
    async fn a_guardian_that_is_killed_while_wok_is_stopped_takes_the_command_along() -> Result<()>
    {
        a_guardian_takes_the_command_along(GROUND).await
    }
}
