//! Several servers that replicate one tree.

use anyhow::{Context, Result};

use super::options::Options;
use super::server::Server;
use super::site::{Membership, Peer};
use crate::patience::eventually;

/// How often an ensemble is started anew because another process took a port of it.
const STARTS: usize = 3;

/// An ensemble. Every server has its own directory and ports on this machine.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Server>,
}

impl Ensemble {
    /// Starts an ensemble of that many servers and waits until all of them serve.
    ///
    /// # Errors
    /// As [`Server::start`].
    ///
    /// # Cancellation
    /// Kills the servers.
    pub async fn start(size: usize) -> Result<Ensemble> {
        Ensemble::start_with(size, Options::default()).await
    }

    /// As [`Ensemble::start`], with options.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_with(size: usize, options: Options) -> Result<Ensemble> {
        for _ in 1..STARTS {
            let ensemble = Ensemble::spawn(size, &options)?;
            match ensemble.ready().await {
                Err(_) if ensemble.servers.iter().any(Server::lost_its_port) => continue,
                outcome => return outcome.map(|()| ensemble),
            }
        }
        let ensemble = Ensemble::spawn(size, &options)?;
        ensemble.ready().await.map(|()| ensemble)
    }

    fn spawn(size: usize, options: &Options) -> Result<Ensemble> {
        let peers = (0..size).map(|_| Peer::new()).collect::<Result<Vec<_>>>()?;
        let servers = (1..=size)
            .map(|id| {
                let membership = Membership { id, peers: peers.clone() };
                Server::spawn(options.clone(), Some(membership))
            })
            .collect::<Result<_>>()?;
        Ok(Ensemble { servers })
    }

    async fn ready(&self) -> Result<()> {
        for server in &self.servers {
            server.ready().await?;
        }
        Ok(())
    }

    /// The addresses of all the servers, as clients want them.
    pub fn connect_string(&self) -> String {
        self.servers.iter().map(Server::address).collect::<Vec<_>>().join(",")
    }

    /// The servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The servers, to stop and restart.
    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// The index of the server that leads. Waits for an election to end.
    ///
    /// # Errors
    /// If none leads.
    pub async fn leader(&self) -> Result<usize> {
        eventually("a leader", async || {
            for (index, server) in self.servers.iter().enumerate() {
                let said = server.four_letter("srvr").await.unwrap_or_default();
                if said.contains("Mode: leader") {
                    return Ok(Some(index));
                }
            }
            Ok(None)
        })
        .await
    }

    /// The index of a server that does not lead.
    ///
    /// # Errors
    /// If there is none.
    pub async fn follower(&self) -> Result<usize> {
        let leader = self.leader().await?;
        (0..self.servers.len()).find(|index| *index != leader).context("an ensemble of one")
    }
}
