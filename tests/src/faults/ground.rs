//! Three servers, one of which is where those are that something happens to.

use anyhow::{Context, Result};

use crate::proxy::{Direction, Proxy};
use crate::zookeeper::{Ensemble, Options};

/// What is done to those who are struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The leader, which is their server, is killed.
    LeaderKilled,
    /// Their host is cut off from all servers until these have expired its sessions.
    SessionExpired,
    /// Their server, which does not lead, is killed.
    ServerKilled,
    /// Their host is cut off, together with a server that does not lead.
    CutOff,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] =
        [Fault::LeaderKilled, Fault::SessionExpired, Fault::ServerKilled, Fault::CutOff];

    /// Whether those who are struck are certain to lose their sessions.
    pub(super) fn ends_sessions(self) -> bool {
        matches!(self, Fault::SessionExpired | Fault::CutOff)
    }
}

/// Three servers that notice within seconds when they do not hear each other.
#[derive(Debug)]
pub struct Ground {
    ensemble: Ensemble,
}

/// Where those are who are struck, and where the others are.
pub(super) struct Places {
    victim: usize,
    here: Proxy,
    elsewhere: Vec<Proxy>,
    /// The addresses of the servers that nothing happens to.
    safe: Vec<String>,
}

impl Places {
    /// The servers of those who are struck, as they are told: all three, by proxies.
    pub(super) fn of_the_struck(&self) -> String {
        let ways = std::iter::once(&self.here).chain(&self.elsewhere);
        ways.map(Proxy::address).collect::<Vec<_>>().join(",")
    }

    /// The servers of the others.
    pub(super) fn of_the_others(&self) -> String {
        self.safe.join(",")
    }
}

impl Ground {
    /// Starts the servers.
    ///
    /// # Errors
    /// If they do not start.
    pub async fn start() -> Result<Ground> {
        let ensemble = Ensemble::start_with(3, Options::as_simulated(8, 8)).await?;
        Ok(Ground { ensemble })
    }

    /// Where all are while that fault is played. Those who are struck find only one server for now.
    pub(super) async fn places(&self, fault: Fault) -> Result<Places> {
        let leader = self.ensemble.leader().await?;
        let victim = match fault {
            Fault::LeaderKilled => leader,
            _ => (leader + 1) % self.ensemble.servers().len(),
        };
        let (mut here, mut elsewhere, mut safe) = (None, Vec::new(), Vec::new());
        for (index, server) in self.ensemble.servers().iter().enumerate() {
            let proxy = Proxy::start(server.address())?;
            if index == victim {
                here = Some(proxy);
            } else {
                proxy.refuse();
                elsewhere.push(proxy);
                safe.push(server.address().to_owned());
            }
        }
        Ok(Places { victim, here: here.context("a victim")?, elsewhere, safe })
    }

    /// Strikes.
    pub(super) fn strike(&mut self, fault: Fault, places: &Places) -> Result<()> {
        match fault {
            Fault::LeaderKilled | Fault::ServerKilled => {
                places.elsewhere.iter().for_each(Proxy::welcome);
                let servers = self.ensemble.servers_mut();
                servers.get_mut(places.victim).context("the victim")?.kill();
            }
            Fault::SessionExpired => places.here.stall(Direction::Both),
            Fault::CutOff => {
                for other in (0..self.ensemble.servers().len()).filter(|it| *it != places.victim) {
                    self.ensemble.cut(places.victim, other);
                }
            }
        }
        Ok(())
    }

    /// Undoes it, and waits until all servers serve.
    pub(super) async fn mend(&mut self, places: &Places) -> Result<()> {
        places.here.heal();
        places.elsewhere.iter().for_each(Proxy::welcome);
        self.ensemble.mend().await
    }
}
