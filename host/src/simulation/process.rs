//! A simulated host process: its tasks, its session, and how it is stopped and killed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::application::Running;
use super::chance::Chance;
use super::client::Client;
use super::clock::HostClock;
use super::history::{HostId, What};
use super::world::World;
use crate::clock::Clock;
use crate::session::{Acl, Session};
use crate::tasks::{Gate, Tasks};

/// A host's process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) gate: Gate,
    pub(super) clock: Arc<HostClock>,
    tasks: Tasks,
    /// The session's own tasks and its client.
    session: Arc<Mutex<Option<(Tasks, Client)>>>,
}

/// How long a host waits before it opens a session in place of a lost one.
const REOPEN: Duration = Duration::from_millis(100);

impl Process {
    /// Starts a host, with all its applications.
    pub(super) fn start(world: &Arc<World>, host: HostId, start: u64) -> Self {
        let purpose = format!("host {host}, start {start}");
        let gate = Gate::default();
        let process = Process {
            tasks: Tasks::staged(Arc::new(world.executor.clone())).behind(gate.clone()),
            clock: Arc::new(HostClock::new(world.began, Chance::new(world.plan.seed, &purpose))),
            gate,
            session: Arc::default(),
        };
        let (known, session) = watch::channel(None);
        let keeping = process.clone().keep_session(Arc::clone(world), host, purpose, known);
        process.tasks.spawn("simulated host", keeping);
        for (number, script) in world.plan.applications.iter().enumerate() {
            if script.host == host && !world.is_finished(number) {
                let running = Running {
                    world: Arc::clone(world),
                    number,
                    script: script.clone(),
                    tasks: process.tasks.clone(),
                    session: session.clone(),
                };
                process.tasks.spawn("simulated application", running.run());
            }
        }
        process
    }

    /// Keeps a session open, as the daemon does.
    async fn keep_session(
        self,
        world: Arc<World>,
        host: HostId,
        purpose: String,
        known: watch::Sender<Option<Arc<Session>>>,
    ) {
        for number in 0_u64.. {
            let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as Arc<dyn Clock>;
            let chance = Chance::new(world.plan.seed, &format!("{purpose}, session {number}"));
            let executor = Arc::new(world.executor.clone());
            let tasks = Tasks::staged(executor).behind(self.gate.clone());
            let timeout = Duration::from_millis(world.plan.session_timeout_ms);
            let (network, recorder) = (&world.network, &world.recorder);
            let contact = clock.now();
            let of_client = Arc::clone(&clock);
            let opening = Client::open(network, recorder, host, timeout, of_client, &tasks, chance);
            let client = opening.await;
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((tasks.clone(), client.clone()));
            let (omission, ensemble) = (world.subject.omission, Box::new(client));
            let session = Session::omitting(omission, ensemble, Acl::Open, clock, contact, tasks);
            let (id, timeout) = (session.id(), session.timing().timeout());
            let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            world.recorder.note(What::SessionOpened { host, session: id, timeout_ms });
            let session = Arc::new(session);
            known.send_replace(Some(Arc::clone(&session)));
            let loss = session.until_lost().await;
            let why = loss.to_string();
            world.recorder.note(What::SessionLost { host, session: id, why });
            known.send_replace(None);
            session.close().await;
            tokio::time::sleep(REOPEN).await;
        }
    }

    /// Its client, while there is one.
    pub(super) fn client(&self) -> Option<Client> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().map(|(_, client)| client.clone())
    }

    /// As `SIGCONT`, unless it was killed meanwhile.
    pub(super) fn resume(&self) {
        if !self.tasks.is_cancelled() {
            self.gate.open();
        }
    }

    /// As `SIGKILL`: nothing of it runs or speaks any more.
    pub(super) fn kill(&self) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        // For good: what is dropped one after the other must not run in between.
        self.gate.close();
        self.tasks.cancel();
        if let Some((tasks, client)) = session {
            client.kill();
            tasks.cancel();
        }
    }
}
