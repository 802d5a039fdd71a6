//! A command that cannot be killed when its session is lost holds up its own recipe and no other.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, kill_process};
use wok_tests::admin;
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Signal, wok_binary};
use wok_tests::proxy::Proxy;
use wok_tests::{scratch, zookeeper};

use super::{leads, polite};

/// Nobody's user and group ids, by custom.
const NOBODY: u32 = 65_534;

/// The session timeout of the config.
const TIMEOUT: Duration = Duration::from_secs(4);

fn config(address: &str, exempt: &Path, order: &OrderFile, root: &str) -> Result<String> {
    let stubborn = format!(
        "{}; {}; while [ -e '{}' ]; do sleep 0.1; done",
        order.append("a is $$"),
        order.append("a leads $WOK_FENCE"),
        order.path().display()
    );
    let (stubborn, polite) =
        (serde_json::to_string(&stubborn)?, serde_json::to_string(&polite(order, "b"))?);
    let exempt = exempt.display();
    Ok(format!(
        r#"
[zookeeper]
connect = "{address}"
session-timeout = "4s"
root = "{root}"

[recipes.a]
module = "leader-election"
mount = "/a"
run = {{ call = "volunteer" }}
while-held = {{ exec = ["{exempt}", "--reuid=0", "--regid=0", "--clear-groups", "sh", "-c", {stubborn}], stop-timeout = "500ms" }}

[recipes.b]
module = "leader-election"
mount = "/b"
run = {{ call = "volunteer" }}
while-held = {{ exec = ["sh", "-c", {polite}], stop-timeout = "500ms" }}
"#
    ))
}

/// Only root can make a command that its wok may not kill.
mod as_root {
    #[tokio::test]
    async fn a_command_that_cannot_be_killed_holds_up_its_own_recipe_only() -> anyhow::Result<()> {
        super::a_command_that_cannot_be_killed().await
    }
}

/// The command becomes root's by a set-user-ID program, as with `sudo`; wok is nobody, who may not
/// kill it.
async fn a_command_that_cannot_be_killed() -> Result<()> {
    assert!(rustix::process::geteuid().is_root(), "run it as root");
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let (order, directory) = (OrderFile::new()?, scratch::dir()?);
    let file = |name: &str| directory.path().join(name);
    for inner in [order.path().parent().context("a directory")?, directory.path()] {
        for directory in inner.ancestors().take(2) {
            fs::set_permissions(directory, Permissions::from_mode(0o755))?;
        }
    }
    fs::set_permissions(order.path(), Permissions::from_mode(0o666))?;
    let wok = wok_binary()?;
    fs::hard_link(&wok, file("wok")).or_else(|_| fs::copy(&wok, file("wok")).map(drop))?;
    fs::copy("/usr/bin/setpriv", file("exempt"))?;
    // For the user `nobody` alone: a user who runs it can become root.
    chown(file("exempt"), Some(0), Some(NOBODY))?;
    fs::set_permissions(file("exempt"), Permissions::from_mode(0o4710))?;
    fs::create_dir(file("cache"))?;
    chown(file("cache"), Some(NOBODY), Some(NOBODY))?;
    let config = config(proxy.address(), &file("exempt"), &order, &zookeeper::unique_path())?;
    fs::write(file("wok.toml"), config)?;

    let id = NOBODY.to_string();
    let running = Program::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .args([file("wok").as_path(), Path::new("run"), &file("wok.toml")])
        .env("XDG_CACHE_HOME", file("cache"))
        .start()?;
    leads(&order, "a", 1).await?;
    leads(&order, "b", 1).await?;
    let sessions = proxy.sessions();
    let [session] = sessions.as_slice() else { panic!("one session in {sessions:?}") };
    admin::expire(server.address(), session).await?;
    let expired = Instant::now();
    leads(&order, "b", 2).await?;
    assert!(expired.elapsed() < 2 * TIMEOUT, "b ran again after {:?}", expired.elapsed());

    running.wait_for_text("the command cannot be killed").await?;
    let old = pids(&order)?;
    let [old] = old.as_slice() else { panic!("one command of a's: {old:?}") };
    let old = Pid::from_raw(*old).context("a process id")?;
    rustix::process::test_kill_process(old).context("it lives")?;
    kill_process(old, Signal::KILL)?;
    leads(&order, "a", 2).await?;

    // Its second command cannot be killed either, and the daemon waits for it.
    running.signal(Signal::TERM)?;
    order.wait_for("b stops").await?;
    let second = eventually("a's second command", async || Ok(pids(&order)?.get(1).copied()));
    let second = Pid::from_raw(second.await?).context("a process id")?;
    kill_process(second, Signal::KILL)?;
    assert_eq!(running.ended().await?.code(), Some(0));
    Ok(())
}

/// The process ids of a's commands.
fn pids(order: &OrderFile) -> Result<Vec<i32>> {
    let labels = order.labels()?;
    Ok(labels.iter().filter_map(|label| label.strip_prefix("a is ")?.parse().ok()).collect())
}
