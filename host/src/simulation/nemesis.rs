//! Does to a run what its plan says is to be done to it.

mod cuts;
mod foreign;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::history::{FaultKind, HostId, ParticipantId, Watches, What};
use super::network::{Ambush, Sprung};
use super::plan::{Fault, When};
use super::process::Process;
use super::recorder::Victims;
use super::world::{Alive, World};
use crate::tasks::Tasks;

/// How much a wall clock jumps at least: an hour, as where somebody forgot the summer time.
const JUMP_MS: i64 = 3_600_000;

/// Does what the plan says. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Nemesis {
    world: Arc<World>,
    processes: Arc<Mutex<BTreeMap<HostId, Process>>>,
    tasks: Tasks,
    /// Cancelled when the time of faults is over.
    over: CancellationToken,
    /// What lasts, to be waited for.
    lasting: Tasks,
    starts: Arc<AtomicU64>,
}

impl Nemesis {
    pub(super) fn new(
        world: Arc<World>,
        processes: BTreeMap<HostId, Process>,
        tasks: Tasks,
    ) -> Self {
        Nemesis {
            lasting: Tasks::staged(Arc::new(world.executor.clone())),
            world,
            processes: Arc::new(Mutex::new(processes)),
            tasks,
            over: CancellationToken::new(),
            starts: Arc::new(AtomicU64::new(1)),
        }
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<HostId, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self, host: HostId) -> Option<Process> {
        self.processes().get(&host).cloned()
    }

    /// Lays its ambushes and sets its alarms.
    pub(super) fn begin(&self, mut springing: mpsc::UnboundedReceiver<Sprung>) {
        for (index, fault) in self.world.plan.faults.iter().enumerate() {
            let ambush = Ambush { fault: fault.fault, index };
            match fault.when {
                When::Request { nth } => {
                    self.world.network.lay_ambush(fault.host, nth, ambush);
                }
                When::HostCall { ref name, nth } => {
                    self.world.recorder.lay_ambush(fault.host, name, nth, ambush);
                }
                When::At { ms } => {
                    let (nemesis, fault) = (self.clone(), fault.clone());
                    self.tasks.spawn("fault", async move {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        nemesis.strike(&fault, None);
                    });
                }
            }
        }
        self.leave_foreign_znodes();
        let nemesis = self.clone();
        self.tasks.spawn("ambushes", async move {
            while let Some(Sprung { index, by }) = springing.recv().await {
                if let Some(fault) = nemesis.world.plan.faults.get(index).cloned() {
                    nemesis.strike(&fault, by);
                }
            }
        });
    }

    /// What waited for a host call is about the participant that made it, where it is about one.
    fn strike(&self, fault: &Fault, by: Option<ParticipantId>) {
        if self.over.is_cancelled() {
            return;
        }
        let Fault { fault: kind, host, ms, .. } = *fault;
        let lasts = Duration::from_millis(ms);
        match kind {
            // Those on a request are struck by the network.
            FaultKind::LostBefore | FaultKind::LostAfter => {
                self.note(kind, host);
                self.world.network.break_host(host);
            }
            FaultKind::Move => self.move_client(host, ms),
            FaultKind::Delay => {
                self.note(kind, host);
                self.world.network.delay(host, lasts / 4);
                let network = self.world.network.clone();
                let heal = move || network.delay(host, Duration::ZERO);
                self.heal_after(lasts, kind, Some(host), heal);
            }
            FaultKind::HalfOpen => {
                self.note(kind, host);
                self.world.network.half_open(host);
                // Until the client gives the server up.
                let timeout = Duration::from_millis(self.world.plan.session_timeout_ms);
                self.heal_after(timeout, kind, Some(host), || {});
            }
            FaultKind::Expiry => {
                if let Some(client) = self.process(host).and_then(|process| process.client()) {
                    self.note(kind, host);
                    self.world.network.expire(crate::session::Ensemble::id(&client));
                }
            }
            FaultKind::Lag => self.lag(host, lasts),
            FaultKind::LeaderChange => {
                if self.world.network.leader().is_some() {
                    self.world.recorder.fault(kind, None, Victims::All);
                    self.world.network.change_leader(lasts);
                    self.heal_after(lasts, kind, None, || {});
                }
            }
            FaultKind::LinkCut
            | FaultKind::HostCut
            | FaultKind::ServerCut
            | FaultKind::LeaderCut => self.cut(fault),
            FaultKind::ServerPause => self.pause_server(host, lasts),
            FaultKind::Pause => self.pause(host, lasts),
            FaultKind::HostKill => self.kill_host(host, lasts),
            FaultKind::GuestKill => {
                if let Some((id, alive)) = self.victim(host, by) {
                    self.world.recorder.fault(kind, Some(host), Victims::Participant(id));
                    alive.killed.cancel();
                }
            }
            FaultKind::Cancel => {
                if let Some((id, alive)) = self.victim(host, by)
                    && let Some(withdraw) = alive.withdraw
                {
                    self.world.recorder.fault(kind, Some(host), Victims::Participant(id));
                    withdraw.cancel();
                }
            }
            FaultKind::ClockJump => {
                if let Some(process) = self.process(host) {
                    self.note(kind, host);
                    let by = i64::try_from(ms).unwrap_or(0) + JUMP_MS;
                    process.clock.jump(if ms % 2 == 0 { by } else { -by });
                }
            }
        }
    }

    fn note(&self, kind: FaultKind, host: HostId) {
        self.world.recorder.fault(kind, Some(host), Victims::Host(host));
    }

    fn move_client(&self, host: HostId, ms: u64) {
        let Some(client) = self.process(host).and_then(|process| process.client()) else { return };
        self.note(FaultKind::Move, host);
        let servers = u64::try_from(self.world.network.server_count()).unwrap_or(1);
        client.go_to(usize::try_from(ms % servers.max(1)).unwrap_or(0));
        self.world.network.break_host(host);
    }

    fn lag(&self, host: HostId, lasts: Duration) {
        let number = usize::try_from(host).unwrap_or(0);
        let Some(server) = self.world.network.follower(number) else { return };
        let hosts = self.world.network.hosts_at(server);
        self.world.recorder.fault(FaultKind::Lag, None, Victims::Hosts(hosts));
        self.world.network.lag(server, lasts / 2);
        let network = self.world.network.clone();
        let heal = move || network.lag(server, Duration::ZERO);
        self.heal_after(lasts, FaultKind::Lag, None, heal);
    }

    /// The host's client goes to a server that follows, which is stopped when it has asked its leader about
    /// the session. The client gives that connection up, and tries the server once more before it goes to
    /// another one.
    fn pause_server(&self, host: HostId, lasts: Duration) {
        let Some(client) = self.process(host).and_then(|process| process.client()) else { return };
        let network = self.world.network.clone();
        let number = usize::try_from(host).unwrap_or(0);
        let Some(server) = network.follower(number).filter(|it| network.stop_once_it_asks(*it))
        else {
            return;
        };
        let mut hosts = network.hosts_at(server);
        hosts.insert(host);
        self.world.recorder.fault(FaultKind::ServerPause, None, Victims::Hosts(hosts));
        client.keep_to(server);
        network.break_host(host);
        self.heal_after(lasts, FaultKind::ServerPause, None, move || network.go_on(server));
    }

    /// The participant that the fault is about, or one that has a host call in flight, or the one
    /// that has been on the host the longest.
    fn victim(&self, host: HostId, by: Option<ParticipantId>) -> Option<(ParticipantId, Alive)> {
        let in_flight = by.or_else(|| self.world.recorder.in_flight(host));
        let alive = self.world.alive(host);
        let is_meant =
            |(id, _): &&(ParticipantId, _)| in_flight.is_none_or(|in_flight| in_flight == *id);
        alive.iter().find(is_meant).or(alive.first()).cloned()
    }

    fn pause(&self, host: HostId, lasts: Duration) {
        let Some(process) = self.process(host).filter(|process| !process.gate.is_closed()) else {
            return;
        };
        self.world.recorder.fault(FaultKind::Pause, Some(host), Victims::Host(host));
        process.gate.close();
        self.heal_after(lasts, FaultKind::Pause, Some(host), move || process.resume());
    }

    fn kill_host(&self, host: HostId, lasts: Duration) {
        let Some(process) = self.processes().remove(&host) else { return };
        self.world.recorder.fault(FaultKind::HostKill, Some(host), Victims::Host(host));
        process.kill();
        self.world.network.break_host(host);
        self.world.forget_host(host);
        let nemesis = self.clone();
        self.heal_after(lasts, FaultKind::HostKill, Some(host), move || {
            let start = nemesis.starts.fetch_add(1, Ordering::Relaxed);
            let process = Process::start(&nemesis.world, host, start);
            nemesis.processes().insert(host, process);
        });
    }

    /// Notes the end first, so that what it sets off comes after.
    fn heal_after(
        &self,
        lasts: Duration,
        fault: FaultKind,
        host: Option<HostId>,
        heal: impl FnOnce() + Send + 'static,
    ) {
        let world = Arc::clone(&self.world);
        // An election takes its time, even when the time of faults is over.
        let over = match fault {
            FaultKind::LeaderChange => CancellationToken::new(),
            _ => self.over.clone(),
        };
        self.lasting.spawn("lasting fault", async move {
            // Ends early when the time of faults is over.
            tokio::select! {
                biased;
                () = over.cancelled() => {}
                () = tokio::time::sleep(lasts) => {}
            }
            world.recorder.note(What::Healed { fault, host });
            heal();
        });
    }

    /// Ends all faults, and waits until they are over.
    pub(super) async fn heal(&self) {
        self.over.cancel();
        self.lasting.join().await;
        // It may be a moment behind. Simulated time passes at once.
        while !self.world.network.is_whole() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// How many watches are left, by host.
    pub(super) fn watches(&self) -> Vec<Watches> {
        let processes = self.processes();
        let clients = processes.iter().filter_map(|(host, it)| Some((*host, it.client()?)));
        clients.map(|(host, client)| Watches { host, count: client.watches() }).collect()
    }

    pub(super) fn kill_all(&self) {
        self.processes().values().for_each(Process::kill);
    }
}
