//! A link that is slow and loses packets: nothing is lost but time.

use std::time::Duration;

use anyhow::{Result, ensure};
use wok_tests::process::{OrderFile, Program, Signal};
use wok_tests::slow_link::{SlowLink, Slowness};
use wok_tests::zookeeper::{self, Options, Server};

use crate::rounds::asked_for;

const SLOW: Slowness = Slowness {
    delay: Duration::from_millis(300),
    jitter: Duration::from_millis(200),
    lost_percent: 5,
};

/// How long a holder is on it: six session timeouts.
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_holder_on_a_slow_link_that_loses_packets_keeps_its_claim() -> Result<()> {
    let Some(rounds) = asked_for() else { return Ok(()) };
    let server = Server::start(Options::default()).await?;
    for _ in 0..rounds {
        let link = SlowLink::to(server.address(), SLOW).await?;
        let (path, order) = (zookeeper::unique_path(), OrderFile::new()?);
        let holder = Program::wok()?
            .args(["lock", "--connect", link.address(), "--session-timeout", "10s", &path])
            .args(["--", "sh", "-c", &format!("{}; sleep 1000", order.append("holding"))])
            .start()?;
        order.wait_for("holding").await?;
        // tidy: for how long it holds is what is promised
        let ended = tokio::time::timeout(MINUTE, holder.exit()).await;
        let printed: Vec<String> = holder.lines().into_iter().map(|line| line.text).collect();
        ensure!(ended.is_err(), "it ended: {ended:?}; {printed:?}");
        ensure!(printed.iter().all(|line| !line.contains("lost")), "{printed:?}");
        holder.signal(Signal::TERM)?;
        holder.tree_gone().await?;
    }
    eprintln!("figure: slow link: {rounds} rounds of {MINUTE:?} without a loss");
    Ok(())
}
