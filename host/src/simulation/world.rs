//! One run: an ensemble, its hosts and their applications, from the beginning to the end, in
//! simulated time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wok_embedded::ServerVersion;
use wok_embedded::replica::Replica;

use super::chance::Chance;
use super::executor::Executor;
use super::history::{CallId, Entry, HostId, Left, Outcome, ParticipantId, What};
use super::nemesis::Nemesis;
use super::network::Network;
use super::plan::{Plan, Step, When};
use super::process::Process;
use super::recorder::Recorder;
use super::references::{Reference, references, stand_in};
use super::servers::Servers;
use super::subject::Subject;
use crate::guest::{HOST_CALLS, Mount};
use crate::tasks::Tasks;
use crate::znode_path::ZnodePath;

/// What the recipe sees as `/`.
const MOUNT: &str = "/wok/recipe";
const ABOVE_MOUNT: &str = "/wok";

/// Which timeouts the ensemble grants.
const SESSION_TIMEOUT_MS: RangeInclusive<u64> = 1_000..=40_000;

/// How many servers and hosts there may be: each takes memory, and what any number of them could show, a
/// hundred show.
const SERVERS: RangeInclusive<usize> = 1..=100;
const HOSTS: RangeInclusive<HostId> = 1..=100;

/// When faults stop coming at the latest.
const FAULTS_FOR: Duration = Duration::from_secs(40);

/// How long applications may then take to finish. Longer than any of them should.
const FINISH_WITHIN: Duration = Duration::from_secs(60);

/// Why a plan cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct PlanError {
    /// Where in the plan.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// All that happened.
    pub history: Vec<Entry>,
    /// How much time was simulated.
    pub simulated: Duration,
    /// The error of a module that has refused a config of the plan; the first one.
    pub refused_config: Option<Value>,
}

/// What all parts of a run share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) subject: Subject,
    pub(super) plan: Plan,
    pub(super) mount: Mount,
    pub(super) began: Instant,
    pub(super) recorder: Arc<Recorder>,
    pub(super) network: Network,
    pub(super) executor: Executor,
    state: Mutex<State>,
    next_participant: AtomicU32,
    next_call: AtomicU32,
    /// The guarded resource: the highest fence it has seen.
    guarded: AtomicU64,
    progressed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By application: its next step, none when it has finished.
    positions: BTreeMap<usize, usize>,
    finished: usize,
    alive: BTreeMap<ParticipantId, Alive>,
    open_calls: BTreeMap<CallId, OpenCall>,
    /// The first arguments that did not fit once a reference was resolved.
    misfit: Option<PlanError>,
    /// The first error of a module that refused its config.
    refused_config: Option<Value>,
}

/// A call that is not answered yet.
#[derive(Debug)]
struct OpenCall {
    /// Of its participant.
    host: HostId,
    withdrawn: CancellationToken,
    /// Its caller gives up then.
    deadline: Option<Instant>,
}

/// A participant that has not ended: where it is, and how it is disturbed.
#[derive(Debug, Clone)]
pub(super) struct Alive {
    pub(super) host: HostId,
    pub(super) killed: CancellationToken,
    /// Withdraws the call under way.
    pub(super) withdraw: Option<CancellationToken>,
}

/// Checks a plan against the module that it is for.
///
/// # Errors
/// An operation or its arguments, a config or a host number do not fit.
pub fn check(subject: &Subject, plan: &Plan) -> Result<(), PlanError> {
    check_times(plan)?;
    let wrong = |place: String, problem: String| Err(PlanError { place, problem });
    if !SERVERS.contains(&plan.servers) {
        let problem = format!("{}: from {} to {}", plan.servers, SERVERS.start(), SERVERS.end());
        return wrong("servers".to_owned(), problem);
    }
    if !HOSTS.contains(&plan.hosts) {
        let problem = format!("{}: from {} to {}", plan.hosts, HOSTS.start(), HOSTS.end());
        return wrong("hosts".to_owned(), problem);
    }
    if !SESSION_TIMEOUT_MS.contains(&plan.session_timeout_ms) {
        let (least, most) = (SESSION_TIMEOUT_MS.start(), SESSION_TIMEOUT_MS.end());
        let problem = format!("{}: from {least} to {most}", plan.session_timeout_ms);
        return wrong("session-timeout-ms".to_owned(), problem);
    }
    for (number, application) in plan.applications.iter().enumerate() {
        let place = format!("applications[{number}]");
        if application.host >= plan.hosts {
            let hosts = plan.hosts;
            return wrong(place, format!("host {}: there are {hosts}, from 0", application.host));
        }
        if let Err(error) = subject.configuration(application.config.as_ref()) {
            return wrong(format!("{place}.config"), error.to_string());
        }
        check_steps(subject, &place, &application.steps)?;
    }
    for (number, fault) in plan.faults.iter().enumerate() {
        if fault.host >= plan.hosts {
            let problem = format!("host {}: there are {}, from 0", fault.host, plan.hosts);
            return wrong(format!("faults[{number}]"), problem);
        }
        if fault.ms == 0 && fault.fault.needs_time() {
            let problem = format!("0: a {} lasts; say how long", fault.fault.name());
            return wrong(format!("faults[{number}].ms"), problem);
        }
        if fault.fault.is_between_servers() && plan.servers == 1 {
            let problem = format!("a {} is between servers, and there is one", fault.fault.name());
            return wrong(format!("faults[{number}].fault"), problem);
        }
        if fault.fault.is_of_a_follower() && plan.servers == 1 {
            let name = fault.fault.name();
            let problem = format!("a {name} is of a server that follows, and there is one server");
            return wrong(format!("faults[{number}].fault"), problem);
        }
        if let When::Request { nth: 0 } | When::HostCall { nth: 0, .. } = fault.when {
            let problem = "0: the first one is 1".to_owned();
            return wrong(format!("faults[{number}].when.nth"), problem);
        }
        if let When::HostCall { name, .. } = &fault.when
            && !HOST_CALLS.contains(&name.as_str())
        {
            let problem = format!("{name:?} is no host call; there are {}", HOST_CALLS.join(", "));
            return wrong(format!("faults[{number}].when.name"), problem);
        }
    }
    for (number, foreign) in plan.foreign.iter().enumerate() {
        if let Err(problem) = check_foreign(&foreign.path) {
            return wrong(format!("foreign[{number}].path"), problem);
        }
    }
    Ok(())
}

/// Checks the path of a znode that another program creates, as the recipe sees it.
pub(super) fn check_foreign(path: &str) -> Result<(), String> {
    ZnodePath::parse(path).map_err(|error| format!("{path:?}: {error}"))?;
    let mount = Mount::new(MOUNT).map_err(|error| error.to_string())?;
    mount.resolve(path).map(drop).map_err(|error| error.to_string())
}

/// The longest that something lasts, and the latest that it comes.
const LONGEST_MS: u64 = 3_600_000;

/// Checks that nothing lasts longer, or comes later, than a run can be simulated in little time.
fn check_times(plan: &Plan) -> Result<(), PlanError> {
    let within = |place: String, ms: u64| match ms <= LONGEST_MS {
        true => Ok(()),
        false => Err(PlanError { place, problem: format!("{ms}: at most {LONGEST_MS}") }),
    };
    for (number, application) in plan.applications.iter().enumerate() {
        for (index, step) in application.steps.iter().enumerate() {
            let place = format!("applications[{number}].steps[{index}]");
            match step {
                Step::Call { deadline_ms, .. } => within(place, deadline_ms.unwrap_or(0))?,
                Step::Work { ms } | Step::AwaitClaim { ms } | Step::Rest { ms } => {
                    within(place, *ms)?
                }
                Step::Leave => {}
            }
        }
    }
    for (number, fault) in plan.faults.iter().enumerate() {
        within(format!("faults[{number}].ms"), fault.ms)?;
        if let When::At { ms } = fault.when {
            within(format!("faults[{number}].when.ms"), ms)?;
        }
    }
    for (number, foreign) in plan.foreign.iter().enumerate() {
        within(format!("foreign[{number}].at-ms"), foreign.at_ms)?;
    }
    Ok(())
}

/// Checks what an application calls. What stands in a reference's place shows in the run only.
fn check_steps(subject: &Subject, place: &str, steps: &[Step]) -> Result<(), PlanError> {
    let mut bound: Vec<&str> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let Step::Call { operation, arguments, bind, .. } = step else { continue };
        let wrong =
            |problem: String| Err(PlanError { place: format!("{place}.steps[{index}]"), problem });
        let none = Value::Object(serde_json::Map::new());
        let body = match subject.module.interface().operation(operation) {
            _ if arguments.is_null() => none,
            Some(operation) => stand_in(operation, arguments),
            None => arguments.clone(),
        };
        if let Err(error) = subject.module.arguments(operation, &body) {
            return wrong(error.to_string());
        }
        for Reference { name, .. } in references(arguments) {
            if !bound.contains(&name) {
                return wrong(format!("${name}: no call before has bind = {name:?}"));
            }
        }
        bound.extend(bind.as_deref());
    }
    Ok(())
}

/// Runs a plan. The same module and plan give the same history, every time.
///
/// # Errors
/// The plan does not fit the module, or there is no runtime to be had.
pub fn run(subject: &Subject, plan: &Plan) -> Result<Run, PlanError> {
    check(subject, plan)?;
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime
        .map_err(|error| PlanError { place: "runtime".to_owned(), problem: error.to_string() })?;
    let mount = Mount::new(MOUNT)
        .map_err(|error| PlanError { place: "mount".to_owned(), problem: error.to_string() })?;
    let executor = Executor::default();
    let living = live(subject.clone(), plan.clone(), mount, executor.clone());
    let run = runtime.block_on(executor.run(living));
    // Within the runtime, where the timers of what is dropped are.
    runtime.block_on(async { executor.clear() });
    run
}

async fn live(
    subject: Subject,
    plan: Plan,
    mount: Mount,
    executor: Executor,
) -> Result<Run, PlanError> {
    let began = Instant::now();
    let recorder = Arc::new(Recorder::new());
    let mut parents = vec![ABOVE_MOUNT.to_owned()];
    if plan.counter != 0 {
        parents.push(MOUNT.to_owned());
    }
    let (sprung, springing) = mpsc::unbounded_channel();
    let mut chance = Chance::new(plan.seed, "network");
    let version = if chance.happens(50) { ServerVersion::V3_8 } else { ServerVersion::V3_9 };
    let servers = Servers::new(version, plan.servers.max(1), &parents, plan.counter);
    let chances = (chance, Chance::new(plan.seed, "servers' threads"));
    let network = Network::new(servers, Arc::clone(&recorder), chances, sprung);
    let world = Arc::new(World {
        subject,
        plan,
        mount,
        began,
        recorder,
        network,
        executor,
        state: Mutex::default(),
        next_participant: AtomicU32::new(0),
        next_call: AtomicU32::new(0),
        guarded: AtomicU64::new(0),
        progressed: Notify::new(),
    });
    let tasks = Tasks::staged(Arc::new(world.executor.clone()));
    tasks.spawn("simulated network", world.network.clone().run());
    let hosts = 0..world.plan.hosts;
    let processes = hosts.map(|host| (host, Process::start(&world, host, 0))).collect();
    let nemesis = Nemesis::new(Arc::clone(&world), processes, tasks.clone());
    nemesis.begin(springing);

    // Both outcomes are told by what the history says.
    tokio::time::timeout(FAULTS_FOR, world.until_finished()).await.ok();
    nemesis.heal().await;
    world.recorder.note(What::Calm);
    tokio::time::timeout(FINISH_WITHIN, world.until_finished()).await.ok();
    world.end(&nemesis).await;

    let simulated = began.elapsed();
    nemesis.kill_all();
    tasks.cancel();
    let mut state = world.state();
    match state.misfit.take() {
        Some(misfit) => Err(misfit),
        None => {
            let refused_config = state.refused_config.take();
            Ok(Run { history: world.recorder.take(), simulated, refused_config })
        }
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next_participant(&self) -> ParticipantId {
        self.next_participant.fetch_add(1, Ordering::Relaxed)
    }

    /// The next step of an application.
    pub(super) fn position(&self, application: usize) -> usize {
        self.state().positions.get(&application).copied().unwrap_or(0)
    }

    pub(super) fn advance(&self, application: usize) {
        *self.state().positions.entry(application).or_insert(0) += 1;
    }

    /// An answer does not fit where a reference has it passed on.
    pub(super) fn misfit(&self, application: usize, problem: &impl std::fmt::Display) {
        let step = self.position(application);
        let place = format!("applications[{application}].steps[{step}]");
        let misfit = PlanError { place, problem: problem.to_string() };
        self.state().misfit.get_or_insert(misfit);
    }

    /// A module has refused its config.
    pub(super) fn config_refused(&self, error: &Value) {
        self.state().refused_config.get_or_insert_with(|| error.clone());
    }

    pub(super) fn is_finished(&self, application: usize) -> bool {
        let steps = self.plan.applications.get(application).map_or(0, |it| it.steps.len());
        self.position(application) > steps
    }

    pub(super) fn finished(&self, application: usize) {
        // One past the end: it has left, too.
        self.advance(application);
        self.state().finished += 1;
        self.progressed.notify_waiters();
    }

    async fn until_finished(&self) {
        loop {
            let progressed = self.progressed.notified();
            tokio::pin!(progressed);
            progressed.as_mut().enable();
            if self.state().finished >= self.plan.applications.len() {
                return;
            }
            progressed.await;
        }
    }

    pub(super) fn began(&self, id: ParticipantId, host: HostId, killed: CancellationToken) {
        self.state().alive.insert(id, Alive { host, killed, withdraw: None });
    }

    pub(super) fn ended(&self, id: ParticipantId) {
        self.state().alive.remove(&id);
        self.recorder.forget(id);
    }

    /// Participants of a host, in the order in which they joined.
    pub(super) fn alive(&self, host: HostId) -> Vec<(ParticipantId, Alive)> {
        let state = self.state();
        let of_host = state.alive.iter().filter(|(_, alive)| alive.host == host);
        of_host.map(|(id, alive)| (*id, alive.clone())).collect()
    }

    /// A host was killed: nobody waits for its answers any more.
    pub(super) fn forget_host(&self, host: HostId) {
        let mut state = self.state();
        let State { alive, open_calls, .. } = &mut *state;
        // Those of participants that have just ended, too.
        open_calls.retain(|_, call| call.host != host);
        alive.retain(|_, alive| alive.host != host);
        drop(state);
        self.recorder.forget_host(host);
    }

    pub(super) fn invoked(
        &self,
        (host, participant): (HostId, ParticipantId),
        operation: String,
        arguments: Value,
        (withdraw, deadline): (CancellationToken, Option<Instant>),
    ) -> CallId {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        let withdrawn = withdraw.clone();
        state.open_calls.insert(call, OpenCall { host, withdrawn, deadline });
        if let Some(alive) = state.alive.get_mut(&participant) {
            alive.withdraw = Some(withdraw);
        }
        drop(state);
        self.recorder.note(What::Invoked { participant, call, operation, arguments });
        call
    }

    pub(super) fn returned(&self, participant: ParticipantId, call: CallId, outcome: Outcome) {
        let mut state = self.state();
        state.open_calls.remove(&call);
        if let Some(alive) = state.alive.get_mut(&participant) {
            alive.withdraw = None;
        }
        drop(state);
        self.recorder.note(What::Returned { participant, call, outcome });
    }

    /// A write to what the claim guards, which refuses fences that are lower than one it has seen.
    pub(super) fn write(&self, participant: ParticipantId, fence: u64) {
        let accepted = self.guarded.fetch_max(fence, Ordering::Relaxed) <= fence;
        self.recorder.note(What::Wrote { participant, fence, accepted });
    }

    /// The open calls, but for those whose callers will give up. In a run of many long calls, the last one may
    /// wait for what comes after the run, as for the time of a transaction to be over.
    fn overdue(&self) -> Vec<CallId> {
        let now = Instant::now();
        let state = self.state();
        let overdue = state.open_calls.iter().filter(|(_, call)| {
            call.withdrawn.is_cancelled() || call.deadline.is_none_or(|deadline| deadline <= now)
        });
        overdue.map(|(id, _)| *id).collect()
    }

    /// Those of these calls that are open still.
    fn unanswered(&self, calls: &[CallId]) -> Vec<CallId> {
        let state = self.state();
        calls.iter().copied().filter(|call| state.open_calls.contains_key(call)).collect()
    }

    /// Everybody has finished, or never will: lets time pass, and looks at what is left.
    async fn end(&self, nemesis: &Nemesis) {
        let timeout = Duration::from_millis(self.plan.session_timeout_ms);
        let mut open = self.overdue();
        let blocked = loop {
            // For everything that takes a session's end, and for empty containers.
            tokio::time::sleep(timeout * 2 + Duration::from_secs(3)).await;
            // In a long run an application may have a call open when its time is over. The call is not blocked
            // if it is answered in the time since, or if others are: it may stand in line behind them.
            let unanswered = self.unanswered(&open);
            if unanswered.is_empty() || unanswered.len() == open.len() {
                break unanswered;
            }
            open = unanswered;
        };
        let znodes = self.network.truth(left);
        let watches = nemesis.watches();
        self.recorder.note(What::Final { znodes, blocked, watches });
    }
}

fn left(truth: &Replica) -> BTreeMap<String, Left> {
    let mut left = BTreeMap::new();
    let mut unseen = vec![ABOVE_MOUNT.to_owned()];
    while let Some(path) = unseen.pop() {
        let Some(node) = truth.tree().get(&path) else { continue };
        unseen.extend(node.children().map(|name| format!("{path}/{name}")));
        let stat = node.stat();
        let ephemeral_owner = stat.ephemeral_owner.max(0);
        if path != ABOVE_MOUNT {
            left.insert(path, Left { czxid: stat.czxid, ephemeral_owner });
        }
    }
    left
}
