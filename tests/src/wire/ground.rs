//! Two ensembles of three: Apache ZooKeeper's, and the simulation's. What a script can do to one, it
//! can do to the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, OwnedMutexGuard};
use wok::simulation::ensemble::{Ensemble as Model, Fate, Heard, Link};
use wok_embedded::ServerVersion;

use super::connection::{Line, Lost};
use super::run::Ground;
use super::socket::Socket;
use crate::network::Network;
use crate::proxy::Proxy;
use crate::zookeeper::Ensemble;

/// A server, by its part at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The one that leads.
    Leader,
    /// One that follows.
    Follower,
    /// The other one that follows.
    OtherFollower,
}

impl At {
    /// Its number among three, when the one of that number leads.
    pub fn among_three(self, leader: usize) -> usize {
        match self {
            At::Leader => leader,
            At::Follower => (leader + 1) % 3,
            At::OtherFollower => (leader + 2) % 3,
        }
    }
}

/// Three servers that a script is played on.
pub(super) trait Three: Ground {
    fn dial_at(&self, at: At) -> Result<Box<dyn Line>>;

    /// A follower applies nothing new, and goes on serving its clients.
    fn hold(&self, at: At) -> Result<()>;

    /// A follower catches up.
    fn let_go(&self, at: At) -> Result<()>;

    /// The leader is lost and another elected; the lost one comes back as a follower.
    fn change_leader(&self) -> Result<()>;

    /// From now on a server is called by the part that it has at this moment.
    fn keep_parts(&self) -> Result<()>;

    /// One server hears nothing of another.
    fn cut_way(&self, from: At, to: At) -> Result<()>;

    /// All servers hear each other again, and serve.
    fn heal(&self) -> Result<()>;

    /// A server that looks for a leader finds one.
    fn until_serving(&self, at: At) -> Result<()>;

    /// Time passes.
    fn rest(&self, time: Duration);
}

/// Three servers of Apache ZooKeeper, as long as nobody else has them.
#[derive(Debug)]
pub struct Real {
    ensemble: OwnedMutexGuard<Ensemble>,
    links: Option<Links>,
}

impl Real {
    /// An ensemble that several tests share. What is cut there is what two servers say to each other
    /// as leader and follower.
    pub fn shared(ensemble: OwnedMutexGuard<Ensemble>) -> Real {
        Real { ensemble, links: None }
    }

    /// An ensemble whose servers are at the sites of that network, in their order. What is cut there
    /// is the links of the network, so that of elections nothing is heard either.
    ///
    /// # Errors
    /// None: nobody else has the lock that is made here.
    pub fn apart(network: Network, ensemble: Ensemble) -> Result<Real> {
        let ensemble = Arc::new(Mutex::new(ensemble)).try_lock_owned()?;
        Ok(Real { ensemble, links: Some(Links { network, cuts: RefCell::default() }) })
    }
}

/// The links between servers that have a site each.
#[derive(Debug)]
struct Links {
    network: Network,
    /// Which are cut, from which site to which.
    cuts: RefCell<Vec<(usize, usize)>>,
}

impl Links {
    fn cut(&self, from: usize, to: usize) -> Result<()> {
        self.network.cut(from, to)?;
        self.cuts.borrow_mut().push((from, to));
        Ok(())
    }

    fn mend(&self) -> Result<()> {
        let cuts = self.cuts.take();
        cuts.into_iter().try_for_each(|(from, to)| self.network.mend(from, to))
    }
}

/// Apache ZooKeeper's ensemble.
#[derive(Debug)]
pub(super) struct Apache {
    /// For what of the harness is asynchronous.
    runtime: Runtime,
    ensemble: RefCell<OwnedMutexGuard<Ensemble>>,
    links: Option<Links>,
    /// Before each server, for its clients.
    proxies: Vec<Arc<Proxy>>,
    /// By whom the parts are told, if they are kept.
    leader: Cell<Option<usize>>,
}

impl Apache {
    pub(super) fn new(Real { ensemble, links }: Real) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let proxies = ensemble.servers().iter().map(|server| {
            let proxy = match server.home() {
                None => Proxy::start(server.address()),
                Some(site) => Proxy::start_into(site, server.address()),
            };
            proxy.map(Arc::new)
        });
        let proxies = proxies.collect::<Result<_>>()?;
        let (ensemble, leader) = (RefCell::new(ensemble), Cell::new(None));
        let apache = Apache { runtime, ensemble, links, proxies, leader };
        apache.runtime.block_on(apache.ensemble.borrow_mut().mend())?;
        Ok(apache)
    }

    fn server(&self, at: At) -> Result<usize> {
        if let Some(leader) = self.leader.get() {
            return Ok(at.among_three(leader));
        }
        let leader = self.runtime.block_on(self.ensemble.borrow().leader())?;
        Ok(at.among_three(leader))
    }
}

impl Ground for Apache {
    fn dial(&self) -> Result<Box<dyn Line>> {
        self.dial_at(At::Leader)
    }

    fn address(&self) -> Result<&str> {
        bail!("three servers have no address in common")
    }
}

impl Three for Apache {
    fn dial_at(&self, at: At) -> Result<Box<dyn Line>> {
        let proxy = self.proxies.get(self.server(at)?).context("a server of three")?;
        Ok(Box::new(Socket::through(proxy)?))
    }

    fn hold(&self, at: At) -> Result<()> {
        self.ensemble.borrow().hold(self.server(at)?);
        Ok(())
    }

    fn let_go(&self, at: At) -> Result<()> {
        self.ensemble.borrow().let_go(self.server(at)?);
        Ok(())
    }

    fn change_leader(&self) -> Result<()> {
        let mut ensemble = self.ensemble.borrow_mut();
        self.runtime.block_on(ensemble.change_leader())
    }

    fn keep_parts(&self) -> Result<()> {
        self.leader.set(Some(self.server(At::Leader)?));
        Ok(())
    }

    fn cut_way(&self, from: At, to: At) -> Result<()> {
        let (from, to) = (self.server(from)?, self.server(to)?);
        match &self.links {
            Some(links) => links.cut(from, to)?,
            None => self.ensemble.borrow().cut_way(from, to),
        }
        Ok(())
    }

    fn heal(&self) -> Result<()> {
        self.links.as_ref().map_or(Ok(()), Links::mend)?;
        self.runtime.block_on(self.ensemble.borrow_mut().mend())
    }

    fn until_serving(&self, at: At) -> Result<()> {
        let server = self.server(at)?;
        self.runtime.block_on(self.ensemble.borrow().until_serving(server))
    }

    fn rest(&self, time: Duration) {
        // tidy: the silence is what the script asked for
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

/// The simulation's ensemble.
#[derive(Debug)]
pub(super) struct Simulated {
    model: Rc<RefCell<Model>>,
    /// By whom the parts are told, if they are kept.
    leader: Cell<Option<usize>>,
}

impl Simulated {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let model = Model::new(ServerVersion::V3_8, 3, seed)?;
        Ok(Simulated { model: Rc::new(RefCell::new(model)), leader: Cell::new(None) })
    }

    fn server(&self, at: At) -> Result<usize> {
        let leader = self.leader.get().or_else(|| self.model.borrow().leader());
        Ok(at.among_three(leader.context("no server leads")?))
    }
}

impl Ground for Simulated {
    fn dial(&self) -> Result<Box<dyn Line>> {
        self.dial_at(At::Leader)
    }

    fn address(&self) -> Result<&str> {
        bail!("a simulated ensemble has no address")
    }

    fn now_ms(&self) -> i64 {
        self.model.borrow().wall_ms()
    }
}

impl Three for Simulated {
    fn dial_at(&self, at: At) -> Result<Box<dyn Line>> {
        let server = self.server(at)?;
        let link = self.model.borrow_mut().connect(server).context("it does not serve")?;
        let model = Rc::clone(&self.model);
        Ok(Box::new(SimulatedLine { model, link, next: Fate::Answered }))
    }

    fn hold(&self, at: At) -> Result<()> {
        let server = self.server(at)?;
        self.model.borrow_mut().hold(server);
        Ok(())
    }

    fn let_go(&self, at: At) -> Result<()> {
        let server = self.server(at)?;
        self.model.borrow_mut().let_go(server);
        Ok(())
    }

    fn change_leader(&self) -> Result<()> {
        self.model.borrow_mut().change_leader();
        Ok(())
    }

    fn keep_parts(&self) -> Result<()> {
        self.leader.set(Some(self.server(At::Leader)?));
        Ok(())
    }

    fn cut_way(&self, from: At, to: At) -> Result<()> {
        self.model.borrow_mut().cut_way(self.server(from)?, self.server(to)?);
        Ok(())
    }

    fn heal(&self) -> Result<()> {
        self.model.borrow_mut().heal();
        Ok(())
    }

    fn until_serving(&self, at: At) -> Result<()> {
        let server = self.server(at)?;
        let is_serving = self.model.borrow_mut().until_serving(server);
        is_serving.then_some(()).context("it finds no leader")
    }

    fn rest(&self, time: Duration) {
        self.model.borrow_mut().rest(time);
    }
}

#[derive(Debug)]
struct SimulatedLine {
    model: Rc<RefCell<Model>>,
    link: Link,
    next: Fate,
}

impl Line for SimulatedLine {
    fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<4>().context("a frame's length")?;
            let length = usize::try_from(u32::from_be_bytes(*length))?;
            let (frame, rest) = rest.split_at_checked(length).context("a whole frame")?;
            let fate = std::mem::replace(&mut self.next, Fate::Answered);
            self.model.borrow_mut().send(self.link, frame, fate);
            bytes = rest;
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<Option<Vec<u8>>> {
        match self.model.borrow_mut().receive(self.link) {
            Heard::Frame(frame) => Ok(Some(frame)),
            Heard::End => Ok(None),
            Heard::Nothing => bail!("the simulated server falls silent"),
        }
    }

    fn lose_next(&mut self, lost: Lost) -> Result<()> {
        self.next = match lost {
            Lost::Request => Fate::Lost,
            Lost::Reply => Fate::ReplyLost,
        };
        Ok(())
    }
}

impl Drop for SimulatedLine {
    fn drop(&mut self) {
        self.model.borrow_mut().close(self.link);
    }
}
