//! The simulated ensemble by itself, for clients that speak in frames: so that one script can be
//! played on it and on Apache ZooKeeper, and what the two say be compared.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use wok_embedded::ServerVersion;

use super::chance::Chance;
use super::history::{FaultKind, HostId};
use super::network::{Ambush, Counted, Cut, Inbox, Network};
use super::recorder::Recorder;
use super::servers::Servers;

/// How long an election takes.
const ELECTION: Duration = Duration::from_millis(500);

/// How often is looked whether something has come about.
const LOOK: Duration = Duration::from_millis(50);

/// How long an ensemble may be silent before nothing more is expected of it: longer than any
/// session lasts, in simulated time.
const SILENCE: Duration = Duration::from_secs(120);

/// The servers and the network of a simulation, with simulated time, which passes only while
/// [`receive`](Ensemble::receive) or [`change_leader`](Ensemble::change_leader) waits.
#[derive(Debug)]
pub struct Ensemble {
    runtime: Runtime,
    network: Network,
    inboxes: BTreeMap<Link, Inbox>,
    last_host: HostId,
    cuts: Vec<Cut>,
}

/// A client's connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    id: u64,
    /// The faults of the network are about hosts: each connection is one.
    host: HostId,
}

/// What becomes of a request, as the faults of a simulation have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, and so does its reply.
    Answered,
    /// The connection breaks before it arrives.
    Lost,
    /// It is carried out, and the connection breaks before its reply arrives.
    ReplyLost,
}

/// What a client hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A frame, without its length.
    Frame(Vec<u8>),
    /// The end of the connection.
    End,
    /// Nothing, for two minutes of simulated time.
    Nothing,
}

impl Ensemble {
    /// An ensemble of that many servers with empty trees, as a seed has it.
    ///
    /// # Errors
    /// There is no runtime to be had.
    pub fn new(version: ServerVersion, servers: usize, seed: u64) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let entered = runtime.enter();
        let servers = Servers::new(version, servers, &[], 0);
        // Nobody listens: here no fault waits for a call of a host.
        let (sprung, _) = mpsc::unbounded_channel();
        let chances = (Chance::new(seed, "network"), Chance::new(seed, "servers' threads"));
        let network = Network::new(servers, Arc::new(Recorder::new()), chances, sprung);
        drop(entered);
        Ok(Ensemble { runtime, network, inboxes: BTreeMap::new(), last_host: 0, cuts: Vec::new() })
    }

    /// The servers' wall clock, in milliseconds since 1970.
    pub fn wall_ms(&self) -> i64 {
        let _entered = self.runtime.enter();
        self.network.wall_ms()
    }

    /// The number of the server that leads, from 0; of several that believe so, of the one that was
    /// elected last.
    pub fn leader(&self) -> Option<usize> {
        self.network.leader()
    }

    /// Connects to a server; none if it does not serve.
    pub fn connect(&mut self, server: usize) -> Option<Link> {
        let _entered = self.runtime.enter();
        self.last_host += 1;
        let host = self.last_host;
        let (id, inbox) = self.network.connect(host, server)?;
        let link = Link { id, host };
        self.inboxes.insert(link, inbox);
        Some(link)
    }

    /// Sends a frame without its length. The first of a connection is the handshake, which can only
    /// be [`Fate::Answered`].
    pub fn send(&mut self, link: Link, frame: &[u8], fate: Fate) {
        let _entered = self.runtime.enter();
        let frame = Bytes::copy_from_slice(frame);
        let fault = match fate {
            Fate::Answered => return self.network.send(link.id, frame),
            Fate::Lost => FaultKind::LostBefore,
            Fate::ReplyLost => FaultKind::LostAfter,
        };
        let xid = frame.get(..4).and_then(|xid| xid.try_into().ok());
        let xid = xid.map_or(0, i32::from_be_bytes);
        self.network.ambush_next(link.host, Ambush { fault, index: 0 });
        self.network.send_request(link.id, xid, frame, Counted::Yes);
    }

    /// Waits for what comes next.
    pub fn receive(&mut self, link: Link) -> Heard {
        let Some(inbox) = self.inboxes.get_mut(&link) else { return Heard::End };
        let network = self.network.clone();
        self.runtime.block_on(async {
            // Cancel-safe: what is not received stays in the inbox, and the network goes on where
            // it was when it is run again.
            tokio::select! {
                biased;
                frame = inbox.recv() => frame.map_or(Heard::End, |it| Heard::Frame(it.to_vec())),
                () = network.run() => Heard::End,
                () = tokio::time::sleep(SILENCE) => Heard::Nothing,
            }
        })
    }

    /// Closes the client's end.
    pub fn close(&mut self, link: Link) {
        let _entered = self.runtime.enter();
        self.inboxes.remove(&link);
        self.network.close(link.id);
    }

    /// From now on a server applies nothing of what is committed, and goes on serving.
    pub fn hold(&mut self, server: usize) {
        let _entered = self.runtime.enter();
        self.network.hold(server);
    }

    /// A server catches up.
    pub fn let_go(&mut self, server: usize) {
        let _entered = self.runtime.enter();
        self.network.let_go(server);
    }

    /// One server hears nothing of another, until all is healed. Nobody is told.
    pub fn cut_way(&mut self, from: usize, to: usize) {
        let _entered = self.runtime.enter();
        let cut = Cut { servers: vec![(from, to)], hosts: Vec::new() };
        self.network.cut(&cut);
        self.cuts.push(cut);
    }

    /// All servers hear each other again. Waits until one leads and all others follow it.
    pub fn heal(&mut self) {
        let network = self.network.clone();
        let cuts = std::mem::take(&mut self.cuts);
        self.runtime.block_on(async { cuts.iter().for_each(|cut| network.heal(cut)) });
        self.run_until(SILENCE, |network| network.is_whole());
    }

    /// Waits until clients can connect to a server. False if they never can.
    pub fn until_serving(&mut self, server: usize) -> bool {
        self.run_until(SILENCE, |network| network.serves(server));
        let _entered = self.runtime.enter();
        self.network.serves(server)
    }

    /// Time passes.
    pub fn rest(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until it is so, but no more than that.
    fn run_until(&mut self, at_most: Duration, is_so: impl Fn(&Network) -> bool) {
        let network = self.network.clone();
        self.runtime.block_on(async {
            let waiting = async {
                while !is_so(&network) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::select! {
                biased;
                () = waiting => {}
                () = tokio::time::sleep(at_most) => {}
                () = network.clone().run() => {}
            }
        });
    }

    /// The leader is lost, and another one elected.
    pub fn change_leader(&mut self) {
        let network = self.network.clone();
        self.runtime.block_on(async { network.change_leader(ELECTION) });
        self.run_until(SILENCE, |network| network.is_whole());
    }
}
