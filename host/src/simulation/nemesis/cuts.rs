//! Cuts: servers and hosts that do not hear each other for a while, of which nobody is told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Nemesis;
use crate::simulation::history::{FaultKind, HostId, What};
use crate::simulation::network::Cut;
use crate::simulation::plan::{Fault, Way};
use crate::simulation::recorder::Victims;
use crate::simulation::servers::SILENCE_MS;

/// How long before those who hear nothing of a server give it up it hears nothing of them either.
const SHORTLY: Duration = Duration::from_millis(300);

/// How often is looked whether the servers have found together again.
const LOOK: Duration = Duration::from_millis(50);

impl Nemesis {
    pub(super) fn cut(&self, fault: &Fault) {
        let network = &self.world.network;
        let Fault { fault: kind, host, ms, way, .. } = *fault;
        let number = usize::try_from(host).unwrap_or(0);
        let Some(leads) = network.leader() else { return };
        let its_server = network.server_of(host).or_else(|| network.follower(number));
        let others = |server: usize| (0..network.server_count()).filter(move |it| *it != server);
        let is_about = match kind {
            FaultKind::LeaderCut => Some(leads),
            _ => its_server,
        };
        let Some(server) = is_about else { return };
        let (from, victims) = match kind {
            FaultKind::HostCut => (Vec::new(), Victims::Host(host)),
            FaultKind::LinkCut if server == leads => {
                let Some(other) = network.follower(number) else { return };
                (vec![other], Victims::Hosts(network.hosts_at(other)))
            }
            FaultKind::LinkCut => (vec![leads], Victims::Hosts(network.hosts_at(server))),
            // Without its leader, the ensemble serves nobody for a while.
            _ if server == leads => (others(server).collect(), Victims::All),
            _ => (others(server).collect(), Victims::Hosts(network.hosts_at(server))),
        };
        // Those that are at a server go with it.
        let along = match kind {
            FaultKind::ServerCut | FaultKind::LeaderCut => network.hosts_at(server),
            _ => BTreeSet::new(),
        };
        let ways = along.iter().flat_map(|host| others(server).map(move |other| (*host, other)));
        let hosts = match kind {
            FaultKind::HostCut => vec![(host, server)],
            _ => ways.collect(),
        };
        let out: Vec<_> = from.iter().map(|other| (server, *other)).collect();
        let inwards: Vec<_> = from.iter().map(|other| (*other, server)).collect();
        let (now, later) = match way {
            Way::Both => ([out, inwards].concat(), Vec::new()),
            Way::Out => (out, Vec::new()),
            Way::In => (inwards, Vec::new()),
            Way::OutFirst => (out, inwards),
        };
        let said = match kind {
            FaultKind::HostCut => format!("from server {server}"),
            _ => told(server, &from, &along, way),
        };
        let of_host = (kind == FaultKind::HostCut).then_some(host);
        self.world.recorder.fault_of_ways(kind, of_host, victims, Some(said));
        let cuts = (Cut { servers: now, hosts }, Cut { servers: later, hosts: Vec::new() });
        self.cut_for(Duration::from_millis(ms), kind, of_host, cuts);
    }

    /// Cuts, and heals when it is time. It is over when the servers have found together again.
    fn cut_for(
        &self,
        lasts: Duration,
        fault: FaultKind,
        host: Option<HostId>,
        (now, later): (Cut, Cut),
    ) {
        let (world, over) = (Arc::clone(&self.world), self.over.clone());
        world.network.cut(&now);
        let before = Duration::from_millis(SILENCE_MS).saturating_sub(SHORTLY);
        self.lasting.spawn("cut", async move {
            // Ends early when the time of faults is over.
            let wait = async |time: Duration| {
                tokio::select! {
                    biased;
                    () = over.cancelled() => {}
                    () = tokio::time::sleep(time) => {}
                }
            };
            wait(lasts.min(before)).await;
            if lasts > before && !over.is_cancelled() {
                world.network.cut(&later);
                wait(lasts.saturating_sub(before)).await;
                world.network.heal(&later);
            }
            world.network.heal(&now);
            while fault.is_between_servers() && !world.network.is_whole() {
                tokio::time::sleep(LOOK).await;
            }
            world.recorder.note(What::Healed { fault, host });
        });
    }
}

/// Who does not hear whom, for people.
fn told(server: usize, others: &[usize], hosts: &BTreeSet<HostId>, way: Way) -> String {
    let list = |numbers: Vec<String>| numbers.join(" and ");
    let those = list(others.iter().map(|other| format!("server {other}")).collect());
    let with = match hosts.is_empty() {
        true => String::new(),
        false => {
            let hosts = list(hosts.iter().map(|host| format!("host {host}")).collect());
            format!(", with {hosts}")
        }
    };
    match way {
        Way::Both => format!("server {server}{with}, from {those}"),
        Way::Out => format!("server {server}{with}: {those} hear nothing of it"),
        Way::In => format!("server {server}{with}: it hears nothing of {those}"),
        Way::OutFirst => {
            format!("server {server}{with}: {those} hear nothing of it, and later it of them")
        }
    }
}
