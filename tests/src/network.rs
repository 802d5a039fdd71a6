//! Sites in network namespaces of their own, joined by a hub, and the links between them.
//!
//! A site is a machine as far as the network goes: what runs in it reaches what else runs in it, and
//! the other sites by way of the hub. A link is cut one way or both, and what is sent on it vanishes
//! without a word, as where a switch is at fault. The link of a site can be slow as well, and lose
//! packets. The namespaces have no way to anything else.
//!
//! It takes root and iproute2.

mod slow_link;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use self::slow_link::SlowLink;
pub use self::slow_link::Slowness;
use crate::process::Program;
use crate::scratch;

/// Where iproute2 keeps the namespaces that have a name.
const NAMESPACES: &str = "/run/netns";

/// Some sites and a hub. All of it is gone when the value is dropped; what a process left that was
/// killed is removed by the next.
#[derive(Debug)]
pub struct Network {
    hub: String,
    sites: Vec<Site>,
    /// By site.
    slow_links: BTreeMap<usize, SlowLink>,
}

/// A site.
#[derive(Clone, Debug)]
pub struct Site {
    namespace: String,
    address: Ipv4Addr,
}

impl Network {
    /// Makes a network of that many sites.
    ///
    /// # Errors
    /// If this machine lets nobody make network namespaces; the error names the remedy.
    pub fn new(sites: u8) -> Result<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        sweep();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}.{count}", scratch::name()?);
        let mut network =
            Network { hub: format!("{name}-hub"), sites: Vec::new(), slow_links: BTreeMap::new() };
        ip(&["netns", "add", &network.hub]).context(
            "network namespaces are made by root with `ip`, of the package iproute2: run the tests \
             as root",
        )?;
        write_in(&network.hub, "/proc/sys/net/ipv4/ip_forward", "1")?;
        for number in 1..=sites {
            network.add(format!("{name}-{number}"), number)?;
        }
        Ok(network)
    }

    fn add(&mut self, namespace: String, number: u8) -> Result<()> {
        let hub = self.hub.clone();
        let site = Site { namespace, address: Ipv4Addr::new(10, 77, number, 2) };
        let (own, gateway) = (format!("{}/24", site.address), format!("10.77.{number}.1"));
        ip(&["netns", "add", &site.namespace])?;
        // Known from here on, so that it is removed.
        self.sites.push(site.clone());
        let link = link(number.into());
        let inside = ["netns", &site.namespace];
        ip(&[
            &["-n", &hub, "link", "add", &link, "type", "veth", "peer", "name", "eth0"][..],
            &inside,
        ]
        .concat())?;
        ip(&["-n", &hub, "addr", "add", &format!("{gateway}/24"), "dev", &link])?;
        ip(&["-n", &hub, "link", "set", &link, "up"])?;
        for device in ["lo", "eth0"] {
            ip(&["-n", &site.namespace, "link", "set", device, "up"])?;
        }
        ip(&["-n", &site.namespace, "addr", "add", &own, "dev", "eth0"])?;
        ip(&["-n", &site.namespace, "route", "add", "default", "via", &gateway])
    }

    /// The sites.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Makes the link of a site slow, as slow as that until [`Network::change_slowness`].
    ///
    /// # Errors
    /// If this machine lets nobody make TUN devices.
    pub fn slow_down(&mut self, site: usize, slowness: Slowness) -> Result<()> {
        let (inside, at_hub) = ("slow".to_owned(), format!("slow{}", site + 1));
        let Site { namespace, address } = self.sites.get(site).context("a site")?;
        let ends = [(namespace.as_str(), inside.as_str()), (self.hub.as_str(), at_hub.as_str())];
        self.slow_links.insert(site, SlowLink::between(ends, slowness)?);
        for (namespace, device) in ends {
            ip(&["-n", namespace, "link", "set", device, "up"])?;
        }
        let address = address.to_string();
        ip(&["-n", &self.hub, "route", "add", &address, "dev", &at_hub])?;
        ip(&["-n", namespace, "route", "replace", "default", "dev", &inside, "src", &address])
    }

    /// Makes a slow link as slow as that, under the connections that it carries.
    ///
    /// # Errors
    /// If nobody has slowed the site down before.
    pub fn change_slowness(&self, site: usize, slowness: Slowness) -> Result<()> {
        self.slow_links.get(&site).context("a site that was slowed down")?.change(slowness);
        Ok(())
    }

    /// Lets vanish what one site sends to another, until [`Network::mend`]. The other way stays.
    ///
    /// # Errors
    /// If the hub does not take the rule.
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        self.rule("add", from, to)
    }

    /// Undoes [`Network::cut`].
    ///
    /// # Errors
    /// If it was not cut.
    pub fn mend(&self, from: usize, to: usize) -> Result<()> {
        self.rule("del", from, to)
    }

    fn rule(&self, verb: &str, from: usize, to: usize) -> Result<()> {
        let to = self.sites.get(to).context("a site")?.address.to_string();
        let from = link(from + 1);
        ip(&["-n", &self.hub, "rule", verb, "iif", &from, "to", &to, "blackhole"])
    }

    /// Cuts a site off from all others, both ways.
    ///
    /// # Errors
    /// As [`Network::cut`].
    pub fn isolate(&self, site: usize) -> Result<()> {
        self.around(site, |from, to| self.cut(from, to))
    }

    /// Undoes [`Network::isolate`].
    ///
    /// # Errors
    /// As [`Network::mend`].
    pub fn join(&self, site: usize) -> Result<()> {
        self.around(site, |from, to| self.mend(from, to))
    }

    /// Takes a site's network down, as where a cable is pulled: it has no way to anywhere, and knows.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn unplug(&self, site: usize) -> Result<()> {
        let Site { namespace, .. } = self.sites.get(site).context("a site")?;
        ip(&["-n", namespace, "link", "set", "eth0", "down"])
    }

    fn around(&self, site: usize, each: impl Fn(usize, usize) -> Result<()>) -> Result<()> {
        let mut others = (0..self.sites.len()).filter(|other| *other != site);
        others.try_for_each(|other| each(site, other).and_then(|()| each(other, site)))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let names = self.sites.iter().map(|site| &site.namespace).chain([&self.hub]);
        // What is not removed now is removed by the next process.
        names.for_each(|name| drop(ip(&["netns", "del", name])));
    }
}

impl Site {
    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A program that runs here.
    pub fn program(&self, program: Program) -> Program {
        program.by_way_of("ip", ["netns", "exec", &self.namespace])
    }

    /// What stands before a command that runs here.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.namespace]
    }

    /// Has a thread live here. What it opens stays here when the thread ends.
    ///
    /// # Errors
    /// If the site is gone.
    pub fn enter(&self) -> Result<()> {
        enter(&self.namespace)
    }

    /// A connection from here.
    ///
    /// # Errors
    /// As where it is tried from a program that runs here.
    pub async fn connect(&self, address: SocketAddr) -> Result<tokio::net::TcpStream> {
        let site = self.clone();
        // The thread is of this connection alone, for it does not come back.
        let connected = tokio::task::spawn_blocking(move || {
            let inside = thread::spawn(move || -> Result<TcpStream> {
                site.enter()?;
                Ok(TcpStream::connect(address)?)
            });
            inside.join().unwrap_or_else(|_| bail!("the thread of a site failed"))
        });
        let stream = connected.await??;
        stream.set_nonblocking(true)?;
        Ok(tokio::net::TcpStream::from_std(stream)?)
    }
}

/// Has a thread live in a namespace.
fn enter(namespace: &str) -> Result<()> {
    let path = format!("{NAMESPACES}/{namespace}");
    let namespace = File::open(&path).context(path)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// The hub's end of a site's link; sites are counted from 1 there.
fn link(number: usize) -> String {
    format!("site{number}")
}

fn ip(arguments: &[&str]) -> Result<()> {
    judge(Command::new("ip").args(arguments).output(), &format!("ip {}", arguments.join(" ")))
}

fn write_in(namespace: &str, path: &str, value: &str) -> Result<()> {
    let script = format!("echo {value} > {path}");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "sh", "-c", &script]);
    judge(command.output(), &script)
}

fn judge(outcome: io::Result<Output>, what: &str) -> Result<()> {
    let output = outcome.with_context(|| what.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what}: {}", said.trim());
    Ok(())
}

/// Removes the namespaces of test processes that are gone.
fn sweep() {
    for entry in fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.split_once('.').map(|(owner, _)| owner).filter(|owner| is_ours(owner));
        if owner.is_some_and(|owner| !scratch::exists(owner)) {
            // Another process may sweep as well.
            ip(&["netns", "del", &name]).ok();
        }
    }
}

fn is_ours(owner: &str) -> bool {
    owner.starts_with(scratch::PREFIX)
}
