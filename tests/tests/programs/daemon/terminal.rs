//! Ctrl-C at a daemon in a terminal: one is enough, whatever the daemon is at.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::net::TcpListener;
use wok_tests::admin::Admin;
use wok_tests::patience::within;
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::zookeeper;

use super::{Daemon, leads, polite};

const CTRL_C: &str = "\x03";

/// What the config says.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

impl Daemon {
    /// Starts it as the foreground job of a terminal, into which [`Running::write`] types.
    fn start_in_a_terminal(&self) -> Result<Running> {
        let wok = wok_tests::process::wok_binary()?;
        Program::new("script")
            .args(["-qefc", "exec \"$WOK\" run \"$CONFIG\"", "/dev/null"])
            .env("WOK", wok)
            .env("CONFIG", &self.config)
            .start()
    }
}

/// Its end, in order, with nothing left.
async fn has_ended_in_order(running: &Running) -> Result<()> {
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    running.tree_gone().await
}

/// Types Ctrl-C at a daemon that runs a command. Its end, in order and with nothing left, takes the
/// command's stop-timeout at the most, and besides less than the end of a session that nobody closes.
async fn ctrl_c_ends_it_in_time(running: &mut Running) -> Result<()> {
    let typed = Instant::now();
    running.write(CTRL_C)?;
    has_ended_in_time(running, typed).await
}

async fn has_ended_in_time(running: &Running, typed: Instant) -> Result<()> {
    has_ended_in_order(running).await?;
    let took = typed.elapsed();
    assert!(took < STOP_TIMEOUT + SESSION_TIMEOUT, "it ended {took:?} after Ctrl-C");
    Ok(())
}

#[tokio::test]
async fn ctrl_c_ends_a_daemon_that_connects() -> Result<()> {
    // It takes connections and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let order = OrderFile::new()?;
    let address = listener.local_addr()?.to_string();
    let daemon = Daemon::new(&address, "/silent", &polite(&order, "it"))?;
    let mut running = daemon.start_in_a_terminal()?;
    let _connection = within("a connection", listener.accept()).await??;
    running.write(CTRL_C)?;
    has_ended_in_order(&running).await
}

#[tokio::test]
async fn ctrl_c_ends_a_daemon_that_waits() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let holder = Daemon::new(server.address(), &root, &polite(&order, "holder"))?;
    let _holder = holder.start()?;
    leads(&order, "holder", 1).await?;
    let daemon = Daemon::new(server.address(), &root, &polite(&order, "it"))?;
    let mut running = daemon.start_in_a_terminal()?;
    running.wait_for_text("standing in line").await?;
    running.write(CTRL_C)?;
    has_ended_in_order(&running).await?;
    let admin = Admin::connect(server.address()).await?;
    assert_eq!(admin.children(&format!("{root}/election/scheduler")).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn ctrl_c_ends_a_daemon_that_holds_and_stops_its_command_first() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let daemon = Daemon::new(server.address(), &root, &polite(&order, "it"))?;
    let mut running = daemon.start_in_a_terminal()?;
    leads(&order, "it", 1).await?;
    ctrl_c_ends_it_in_time(&mut running).await?;
    let labels = order.labels()?;
    assert!(labels.len() == 2 && labels[1] == "it stops", "asked once, and run once: {labels:?}");
    let admin = Admin::connect(server.address()).await?;
    assert_eq!(admin.children(&format!("{root}/election/scheduler")).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn ctrl_c_while_a_daemon_stops_changes_nothing() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let asked = order.append("it is asked").replace('\'', "'\\''");
    let stubborn = format!(
        "trap '{asked}' TERM; trap '' INT; {}; while :; do sleep 0.05; done",
        order.append("it leads $WOK_FENCE")
    );
    let daemon = Daemon::new(server.address(), &root, &stubborn)?;
    let mut running = daemon.start_in_a_terminal()?;
    leads(&order, "it", 1).await?;
    let typed = Instant::now();
    running.write(CTRL_C)?;
    order.wait_for("it is asked").await?;
    running.write(CTRL_C)?;
    has_ended_in_time(&running, typed).await?;
    assert_eq!(order.labels()?.len(), 2, "{:?}", order.labels()?);
    Ok(())
}

#[tokio::test]
async fn a_daemon_ends_in_order_with_its_terminal() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let daemon = Daemon::new(server.address(), &root, &polite(&order, "it"))?;
    let running = daemon.start_in_a_terminal()?;
    leads(&order, "it", 1).await?;
    // The terminal is `script`'s.
    running.signal(Signal::KILL)?;
    running.tree_gone().await?;
    let labels = order.labels()?;
    assert!(labels.len() == 2 && labels[1] == "it stops", "{labels:?}");
    let admin = Admin::connect(server.address()).await?;
    assert_eq!(admin.children(&format!("{root}/election/scheduler")).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_daemons_command_reads_nothing_and_leaves_the_terminal_alone() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    // Fields 5 and 8 of proc(5)'s stat: the process's group, and the terminal's foreground group.
    let script = format!(
        "read _ _ _ _ group _ _ owner _ </proc/$$/stat; \
         [ \"$group\" = \"$owner\" ] && {} || {}; \
         read line || {}; exec sleep 60",
        order.append("in the foreground"),
        order.append("in the background"),
        order.append("nothing to read"),
    );
    let daemon = Daemon::new(server.address(), &root, &script)?;
    let mut running = daemon.start_in_a_terminal()?;
    order.wait_for("nothing to read").await?;
    assert_eq!(order.labels()?, ["in the background", "nothing to read"]);
    ctrl_c_ends_it_in_time(&mut running).await
}
