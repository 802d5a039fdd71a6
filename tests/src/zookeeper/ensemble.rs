//! Several servers that replicate one tree.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::options::Options;
use super::server::Server;
use super::site::{Membership, Peer};
use crate::network::Site;
use crate::patience::eventually;
use crate::proxy::{Direction, Proxy};

/// How often an ensemble is started anew because another process took a port of it.
const STARTS: usize = 3;

/// An ensemble. Every server has its own directory and ports on this machine, and follows the
/// others by a proxy, so that it can be held back.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Server>,
    /// By server: what is between it and those that it may follow.
    ways: Vec<Vec<Proxy>>,
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

    /// Starts a server in each of these sites, all of one ensemble, and waits until all of them
    /// serve. They follow each other by the network alone.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_apart(sites: &[Site], options: Options) -> Result<Ensemble> {
        let peers: Vec<Peer> = sites.iter().map(Peer::at).collect();
        let servers = (1..).zip(sites).map(|(id, site)| {
            let membership = Membership { id, peers: peers.clone() };
            Server::spawn(options.clone().at(site), Some(membership))
        });
        let servers = servers.collect::<Result<Vec<_>>>()?;
        let ensemble = Ensemble { servers, ways: Vec::new() };
        ensemble.ready().await.map(|()| ensemble)
    }

    fn spawn(size: usize, options: &Options) -> Result<Ensemble> {
        let peers = (0..size).map(|_| Peer::new()).collect::<Result<Vec<_>>>()?;
        let (mut servers, mut ways) = (Vec::new(), Vec::new());
        for id in 1..=size {
            let (mut seen, mut proxies) = (Vec::new(), Vec::new());
            for (other, peer) in (1..).zip(&peers) {
                if other == id {
                    seen.push(peer.clone());
                    continue;
                }
                let proxy = Proxy::start_unread(&peer.quorum_address())?;
                let port: SocketAddr = proxy.address().parse()?;
                seen.push(peer.by_way_of(port.port()));
                proxies.push(proxy);
            }
            servers.push(Server::spawn(options.clone(), Some(Membership { id, peers: seen }))?);
            ways.push(proxies);
        }
        Ok(Ensemble { servers, ways })
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

    /// Holds back all that a follower hears of its leader, until [`Ensemble::let_go`]: it serves
    /// its clients from what it has, and hands on what they write. The leader and it give each
    /// other up when that lasts longer than `syncLimit` ticks.
    pub fn hold(&self, server: usize) {
        for way in self.ways.get(server).into_iter().flatten() {
            way.stall(Direction::Replies);
        }
    }

    /// Lets a follower hear what was held back.
    pub fn let_go(&self, server: usize) {
        for way in self.ways.get(server).into_iter().flatten() {
            way.release();
        }
    }

    /// Holds back all that two servers say to each other as leader and follower, until
    /// [`Ensemble::mend`]. Of elections they still hear.
    pub fn cut(&self, one: usize, other: usize) {
        self.cut_way(one, other);
        self.cut_way(other, one);
    }

    /// As [`Ensemble::cut`], but only what one server says to the other is held back. What the other
    /// says goes on to arrive, since the proxy acknowledges it. On a link that loses packets one way,
    /// TCP soon sends nothing the other way either: nothing of that is acknowledged.
    pub fn cut_way(&self, from: usize, to: usize) {
        // A follower connects to the leader, so what the leader says are the replies.
        for (follower, leader, says) in
            [(from, to, Direction::Requests), (to, from, Direction::Replies)]
        {
            // Each server has a way to every other, in their order.
            let number = if leader < follower { leader } else { leader.saturating_sub(1) };
            if let Some(way) = self.ways.get(follower).and_then(|ways| ways.get(number)) {
                way.silence(says);
            }
        }
    }

    /// Waits until a server that has closed its clients' connections serves again.
    ///
    /// # Errors
    /// If it does not.
    pub async fn until_serving(&self, server: usize) -> Result<()> {
        self.servers.get(server).context("a server of the ensemble")?.ready().await
    }

    /// Kills the leader, waits for another, and has the killed one come back.
    ///
    /// # Errors
    /// If no other is elected, or the killed one does not come back.
    pub async fn change_leader(&mut self) -> Result<()> {
        let leader = self.leader().await?;
        self.servers.get_mut(leader).context("the leader")?.kill();
        self.leader().await?;
        self.mend().await
    }

    /// Undoes what was done to the servers, and waits until all of them serve.
    ///
    /// # Errors
    /// If one does not.
    pub async fn mend(&mut self) -> Result<()> {
        for server in 0..self.servers.len() {
            self.let_go(server);
        }
        for server in &mut self.servers {
            if server.pid().is_err() {
                server.respawn()?;
            } else {
                server.resume()?;
            }
        }
        self.settled().await?;
        self.ready().await
    }

    /// Waits until no more than one believes to lead: one that was cut off may not know yet that it
    /// does not.
    async fn settled(&self) -> Result<()> {
        eventually("one leader", async || {
            let mut leaders = 0;
            for server in &self.servers {
                let said = server.four_letter("srvr").await.unwrap_or_default();
                leaders += usize::from(said.contains("Mode: leader"));
            }
            Ok((leaders == 1).then_some(()))
        })
        .await
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
