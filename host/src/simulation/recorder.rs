//! Writes the history of a run, and knows which host calls are in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::history::{Entry, FaultKind, HostId, ParticipantId, What};
use super::network::{Ambush, Network, Sprung};
use crate::guest::{HOST_CALLS, KILLED, Witness};

/// How often a component may be woken in one instant of simulated time, and how many host calls it may
/// make in one. Without a bound, one that wakes itself by alarms of 0 ms, or waits for them again and
/// again, would keep the run from ever coming to the next instant.
const WAKES: u32 = 100;
const CALLS: u32 = 10_000;

/// What the faults of such components say.
const RESTLESS: &str = "it was woken 100 times while no time passed, as one is that sets itself alarms \
    of 0 ms: nobody else would ever have a turn";
const BUSY: &str =
    "it made 10000 host calls while no time passed: nobody else would ever have a turn";

/// Where everybody in a run writes down what happened.
#[derive(Debug)]
pub(super) struct Recorder {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    in_flight: BTreeMap<u64, InFlight>,
    next_call: u64,
    /// How often each host call was made on each host, and what waits for which.
    made: BTreeMap<(HostId, &'static str), u64>,
    ambushes: BTreeMap<(HostId, String, u64), Vec<Ambush>>,
}

#[derive(Debug)]
struct InFlight {
    host: HostId,
    participant: ParticipantId,
    name: &'static str,
}

/// Whom a fault strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Victims {
    /// Everybody on a host.
    Host(HostId),
    /// Everybody on those hosts.
    Hosts(BTreeSet<HostId>),
    /// One participant.
    Participant(ParticipantId),
    /// Everybody.
    All,
}

impl Recorder {
    /// Begins a history now.
    pub(super) fn new() -> Self {
        Recorder { began: Instant::now(), state: Mutex::default() }
    }

    /// Microseconds since the run began.
    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub(super) fn note(&self, what: What) {
        let at_us = self.now_us();
        self.state().entries.push(Entry { at_us, what });
    }

    /// Notes a fault, with the host calls that it strikes.
    pub(super) fn fault(&self, fault: FaultKind, host: Option<HostId>, victims: Victims) {
        self.fault_of_ways(fault, host, victims, None);
    }

    /// The same, of one that cuts ways.
    pub(super) fn fault_of_ways(
        &self,
        fault: FaultKind,
        host: Option<HostId>,
        victims: Victims,
        cut: Option<String>,
    ) {
        let state = self.state();
        let is_struck = |call: &&InFlight| match &victims {
            Victims::Host(host) => call.host == *host,
            Victims::Hosts(hosts) => hosts.contains(&call.host),
            Victims::Participant(participant) => call.participant == *participant,
            Victims::All => true,
        };
        let struck = state.in_flight.values().filter(is_struck);
        let struck = struck.map(|call| call.name.to_owned()).collect();
        drop(state);
        self.note(What::Fault { fault, host, struck, cut });
    }

    /// Has a fault wait for the n-th host call of that name on a host, counted from 1.
    pub(super) fn lay_ambush(&self, host: HostId, name: &str, nth: u64, ambush: Ambush) {
        self.state().ambushes.entry((host, name.to_owned(), nth)).or_default().push(ambush);
    }

    /// A participant of this host that has a host call in flight.
    pub(super) fn in_flight(&self, host: HostId) -> Option<ParticipantId> {
        let state = self.state();
        state.in_flight.values().find(|call| call.host == host).map(|call| call.participant)
    }

    /// A host is gone, and with it what its participants asked.
    pub(super) fn forget_host(&self, host: HostId) {
        self.state().in_flight.retain(|_, call| call.host != host);
    }

    /// A participant is gone.
    pub(super) fn forget(&self, participant: ParticipantId) {
        self.state().in_flight.retain(|_, call| call.participant != participant);
    }

    /// The history so far; what comes later is lost.
    pub(super) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.state().entries)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees the host calls of one participant.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) recorder: Arc<Recorder>,
    pub(super) host: HostId,
    pub(super) participant: ParticipantId,
    pub(super) network: Network,
    /// Cancelled to kill its component.
    pub(super) killed: CancellationToken,
    pub(super) steps: Steps,
}

/// What a component has done in the newest instant in which it did anything.
#[derive(Debug, Default)]
pub(super) struct Steps {
    newest: Mutex<Step>,
}

#[derive(Debug, Default)]
struct Step {
    at_us: u64,
    wakes: u32,
    calls: u32,
}

impl Steps {
    fn at(&self, now_us: u64) -> MutexGuard<'_, Step> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.at_us != now_us {
            *newest = Step { at_us: now_us, ..Step::default() };
        }
        newest
    }

    /// What is wrong with it, if it has just made a host call too many.
    fn call(&self, now_us: u64) -> Option<&'static str> {
        let mut newest = self.at(now_us);
        newest.calls += 1;
        match *newest {
            Step { wakes, .. } if wakes > WAKES => Some(RESTLESS),
            Step { calls, .. } if calls > CALLS => Some(BUSY),
            _ => None,
        }
    }
}

impl Witness for Observer {
    fn asked(&self, name: &'static str, paths: Vec<String>) -> u64 {
        let mut state = self.recorder.state();
        let number = state.next_call;
        state.next_call += 1;
        let Observer { host, participant, .. } = *self;
        state.in_flight.insert(number, InFlight { host, participant, name });
        let made = state.made.entry((host, name)).or_default();
        *made += 1;
        let nth = *made;
        let ambushes = match state.ambushes.is_empty() {
            true => None,
            false => state.ambushes.remove(&(host, name.to_owned(), nth)),
        };
        drop(state);
        debug_assert!(HOST_CALLS.contains(&name), "{name}");
        let call = What::HostCall { participant, number, name: name.to_owned(), paths };
        self.recorder.note(call);
        for ambush in ambushes.into_iter().flatten() {
            // What waits for a watch asks for nothing.
            let is_at_request = name != "wait" && ambush.fault.is_of_a_request();
            match is_at_request {
                true => self.network.ambush_next(host, ambush),
                false => self.network.spring(Sprung { index: ambush.index, by: Some(participant) }),
            }
        }
        number
    }

    fn answered(&self, number: u64, answer: &'static str, created: Option<&str>) {
        self.recorder.state().in_flight.remove(&number);
        self.recorder.note(What::HostCallAnswered {
            participant: self.participant,
            number,
            answer: answer.to_owned(),
            created: created.map(str::to_owned),
        });
    }

    fn woken(&self, tags: &[u64]) {
        self.steps.at(self.recorder.now_us()).wakes += 1;
        let participant = self.participant;
        self.recorder.note(What::Woken { participant, tags: tags.to_vec() });
    }

    fn doom(&self) -> Option<&'static str> {
        if self.killed.is_cancelled() {
            return Some(KILLED);
        }
        self.steps.call(self.recorder.now_us())
    }

    fn until_killed(&self) -> BoxFuture<'static, ()> {
        self.killed.clone().cancelled_owned().boxed()
    }
}
