//! Who stands in a line: wok itself, or a peer of another making.

use anyhow::{Context, Result, ensure};
use wok_tests::peers::Peer;
use wok_tests::process::{Program, Running};
use wok_tests::zookeeper;

/// What is contended for, as each client calls it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    /// wok's module, and its operation that waits.
    pub(crate) wok: [&'static str; 2],
    /// The module's `format`.
    pub(crate) format: &'static str,
    /// What stands before the counter in a contender's name.
    pub(crate) infix: &'static str,
    /// A peer's command that waits, with `{path}` where the directory is to be named.
    pub(crate) ask: &'static str,
    /// A peer's command that gives it back.
    pub(crate) give_back: &'static str,
}

/// One client of a line.
#[derive(Debug)]
pub(crate) enum Party {
    /// A `wok hold` for each time that it stands in a line.
    Wok(Option<Running>),
    Peer(Peer),
}

impl Party {
    pub(crate) fn wok() -> Party {
        Party::Wok(None)
    }

    pub(crate) async fn curator() -> Result<Party> {
        Ok(Party::Peer(Peer::curator(zookeeper::shared().await.address()).await?))
    }

    pub(crate) async fn kazoo() -> Result<Party> {
        Ok(Party::Peer(Peer::kazoo(zookeeper::shared().await.address()).await?))
    }

    /// Goes to the end of the line.
    pub(crate) async fn ask(&mut self, contest: Contest, path: &str) -> Result<()> {
        match self {
            Party::Wok(running) => {
                let [module, operation] = contest.wok;
                let hold = Program::wok()?
                    .args(["hold", module, "--mount", path, "--session-timeout", "4s"])
                    .args(["--connect", zookeeper::shared().await.address()])
                    .args(["--config", &format!("format={}", contest.format)])
                    .args([operation, "--", "sh", "-c", "read line"]);
                *running = Some(hold.start()?);
                Ok(())
            }
            Party::Peer(peer) => peer.send(&contest.ask.replace("{path}", path)),
        }
    }

    /// Waits until it has what it asked for.
    pub(crate) async fn has_it(&mut self) -> Result<()> {
        match self {
            Party::Wok(running) => {
                let running = running.as_ref().context("it has not asked")?;
                running.wait_for_text("holding").await.map(drop)
            }
            Party::Peer(peer) => peer.answer().await.map(drop),
        }
    }

    /// Whether it says that it has what it asked for, or that it failed.
    pub(crate) fn has_answered(&self) -> bool {
        match self {
            Party::Wok(running) => running.as_ref().is_some_and(|running| {
                let lines = running.lines();
                lines.iter().any(|line| line.text.contains("holding")) || running.status().is_some()
            }),
            Party::Peer(peer) => peer.has_answered(),
        }
    }

    /// Gives back what it has.
    pub(crate) async fn give_back(&mut self, contest: Contest) -> Result<()> {
        match self {
            Party::Wok(running) => {
                let mut running = running.take().context("it has not asked")?;
                running.write("\n")?;
                let ended = running.ended().await?;
                ensure!(ended.code() == Some(0), "{ended:?}");
                Ok(())
            }
            Party::Peer(peer) => peer.call(contest.give_back).await.map(drop),
        }
    }

    /// Kills it where it stands, as a power cut would.
    pub(crate) fn kill(self) {
        match self {
            // Its value is dropped, which kills it and its command.
            Party::Wok(running) => drop(running),
            Party::Peer(peer) => peer.kill(),
        }
    }
}
