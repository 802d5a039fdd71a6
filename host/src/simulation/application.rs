//! A simulated application: it goes through its steps, and writes down what it asked and was told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::history::{Outcome, ParticipantId, Told, What};
use super::plan::{Application, Step};
use super::recorder::{Observer, Steps};
use super::references::{Bound, resolved};
use super::world::World;
use crate::guest::Fault;
use crate::participant::{
    Answer, Call, CallError, Ending, Follower, Join, Loss, Notice, Participant,
};
use crate::session::{Held, SeatLimits, Session};
use crate::tasks::Tasks;

/// How long an application waits before it joins again, and between its writes.
const REJOIN: Duration = Duration::from_millis(50);
const BETWEEN_WRITES: Duration = Duration::from_millis(20);

/// An application in its process. If the process is killed, another one goes on with its script.
pub(super) struct Running {
    pub(super) world: Arc<World>,
    /// Which of the plan's.
    pub(super) number: usize,
    pub(super) script: Application,
    pub(super) tasks: Tasks,
    pub(super) session: watch::Receiver<Option<Arc<Session>>>,
}

/// Its participant, until that has ended.
struct Joined {
    id: ParticipantId,
    participant: Participant,
    beliefs: Arc<Beliefs>,
    /// Has the follower take down what it was told so far.
    catch_up: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

/// What its participant has told.
#[derive(Debug, Default)]
struct Beliefs {
    state: Mutex<Belief>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Belief {
    fences: BTreeMap<String, u64>,
    has_ended: bool,
}

impl Running {
    /// Goes on where the script stands.
    pub(super) async fn run(mut self) {
        let mut joined: Option<Joined> = None;
        // Whether its participant's last call was answered, and not by an error.
        let mut was_answered = false;
        let mut bound = Bound::new();
        while let Some(step) = self.script.steps.get(self.world.position(self.number)).cloned() {
            if joined.as_ref().is_none_or(|joined| joined.beliefs.has_ended()) {
                drop(joined.take());
                joined = self.join().await;
                was_answered = false;
                // What it was answered was the participant's.
                bound.clear();
            }
            let Some(current) = joined.as_ref() else { return };
            match step {
                Step::Call { operation, arguments, deadline_ms, bind } => {
                    let answer = match resolved(&arguments, &bound) {
                        Some(arguments) => {
                            self.call(current, operation, arguments, deadline_ms).await
                        }
                        // There is nothing to call it with.
                        None => None,
                    };
                    was_answered = answer.is_some();
                    // An answer of before is not this call's.
                    match (bind, answer) {
                        (Some(name), Some(answer)) => drop(bound.insert(name, answer)),
                        (Some(name), None) => drop(bound.remove(&name)),
                        (None, _) => {}
                    }
                }
                Step::Work { ms } => self.work(current, Duration::from_millis(ms)).await,
                // Otherwise there is nothing to come.
                Step::AwaitClaim { ms } if was_answered => {
                    current.beliefs.until_held(Duration::from_millis(ms)).await;
                }
                Step::AwaitClaim { .. } => {}
                Step::Rest { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
                Step::Leave => {
                    if let Some(leaving) = joined.take() {
                        self.leave(leaving).await;
                    }
                }
            }
            self.world.advance(self.number);
        }
        if let Some(leaving) = joined.take() {
            self.leave(leaving).await;
        }
        self.world.finished(self.number);
    }

    /// None if the run is over.
    async fn join(&mut self) -> Option<Joined> {
        loop {
            let session = {
                let known = self.session.wait_for(Option::is_some).await.ok()?;
                known.clone()?
            };
            let host = self.script.host;
            let id = self.world.next_participant();
            let killed = CancellationToken::new();
            let observer = Observer {
                recorder: Arc::clone(&self.world.recorder),
                host,
                participant: id,
                network: self.world.network.clone(),
                killed: killed.clone(),
                steps: Steps::default(),
            };
            // The plan was checked against the module.
            let config = self.world.subject.configuration(self.script.config.as_ref()).ok()?;
            let join = Join {
                recipe: self.world.subject.module.name().to_owned(),
                module: self.world.subject.module.clone(),
                mount: self.world.mount.clone(),
                config,
                limits: self.world.subject.limits.clone(),
                seat: SeatLimits::default(),
                owner: format!("application {} on host {host}", self.number),
                witness: Some(Arc::new(observer)),
            };
            // Before anything that the participant does.
            let (mount, session_id) = (self.world.mount.path().to_owned(), session.id());
            let own = self.script.config.as_ref().or(self.world.subject.config());
            let config = own.cloned().unwrap_or_default();
            let joined = What::Joined { participant: id, host, session: session_id, mount, config };
            self.world.recorder.note(joined);
            match Participant::join(&self.tasks, &session, join) {
                Ok((participant, follower)) => {
                    let beliefs = Arc::<Beliefs>::default();
                    self.world.began(id, host, killed);
                    let (catch_up, asked) = mpsc::unbounded_channel();
                    let world = Arc::clone(&self.world);
                    let following = follow(world, id, follower, Arc::clone(&beliefs), asked);
                    self.tasks.spawn("simulated follower", following);
                    return Some(Joined { id, participant, beliefs, catch_up });
                }
                Err(failure) => {
                    let fault = Some(failure.to_string());
                    let notice = Told::Ended { how: "refused".to_owned(), fault };
                    self.world.recorder.note(What::Told { participant: id, notice });
                    tokio::time::sleep(REJOIN).await;
                }
            }
        }
    }

    /// What it was answered, if that was no error.
    async fn call(
        &self,
        joined: &Joined,
        operation: String,
        body: Value,
        deadline_ms: Option<u64>,
    ) -> Option<Value> {
        let body = if body.is_null() { serde_json::json!({}) } else { body };
        let arguments = match self.world.subject.module.arguments(&operation, &body) {
            Ok(arguments) => arguments,
            // The plan was checked against the module, but for what stands in a reference's place.
            Err(error) => {
                self.world.misfit(self.number, &error);
                return None;
            }
        };
        let withdrawn = CancellationToken::new();
        let participant = joined.id;
        let caller = (self.script.host, participant);
        let deadline = deadline_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let until = (withdrawn.clone(), deadline);
        let call = self.world.invoked(caller, operation, body, until);
        let given_up = async {
            tokio::select! {
                biased;
                () = withdrawn.cancelled() => {}
                () = async {
                    match deadline {
                        Some(deadline) => tokio::time::sleep_until(deadline).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
            self.world.recorder.note(What::Withdrawn { participant, call });
            std::future::pending::<()>().await;
        };
        let answering = joined.participant.call(Call {
            arguments,
            deadline,
            withdrawn: Some(withdrawn.clone()),
        });
        let answer = tokio::select! {
            biased;
            answer = answering => answer,
            () = given_up => return None,
        };
        // What it was told before the answer stands before it in the history.
        let (done, caught_up) = oneshot::channel();
        if joined.catch_up.send(done).is_ok() {
            // A follower that has ended has nothing more to take down.
            caught_up.await.ok();
        }
        // The process may have been stopped meanwhile: what it answered then is not true any more.
        let answer = match answer {
            Ok(Answer { claim: Some(_), .. }) if !joined.participant.holds() => {
                Err(CallError::Ended)
            }
            answer => answer,
        };
        let outcome = outcome(answer);
        let answered = match &outcome {
            Outcome::Ok { value, .. } => Some(value.clone()),
            _ => None,
        };
        self.world.returned(participant, call, outcome);
        answered
    }

    async fn work(&self, joined: &Joined, time: Duration) {
        let until = Instant::now() + time;
        loop {
            // Asked in this very moment, as an application that relies on a claim must.
            let fence = joined.beliefs.fence();
            let is_relied_on = joined.participant.presence().tenure().is_some();
            let Some(fence) = fence.filter(|_| is_relied_on) else { return };
            self.world.write(joined.id, fence);
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep(BETWEEN_WRITES.max(time / 4)).await;
        }
    }

    async fn leave(&self, joined: Joined) {
        self.world.recorder.note(What::Leaving { participant: joined.id });
        joined.participant.leave();
        joined.beliefs.until_ended().await;
    }
}

/// Writes down what a participant tells, until it has ended.
async fn follow(
    world: Arc<World>,
    participant: ParticipantId,
    mut follower: Follower,
    beliefs: Arc<Beliefs>,
    mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) {
    loop {
        // Cancel-safe, both; and the application that asks is answered when there is nothing left
        // to tell.
        let notice = tokio::select! {
            biased;
            notice = follower.next() => notice,
            Some(done) = asked.recv() => {
                // Who asked may have been killed with its host.
                done.send(()).ok();
                continue;
            }
        };
        let Some(notice) = notice else { return };
        beliefs.note(&notice);
        let has_ended = matches!(notice, Notice::Ended(_));
        if let Notice::Ended(Ending::Failed(fault)) = &notice
            && let Fault::ConfigRefused { error, .. } = &**fault
        {
            world.config_refused(error);
        }
        if let Some(notice) = told(notice) {
            world.recorder.note(What::Told { participant, notice });
        }
        if has_ended {
            world.ended(participant);
        }
        beliefs.changed.notify_waiters();
    }
}

impl Beliefs {
    fn note(&self, notice: &Notice) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            Notice::Held(Held { path, fence }) => {
                state.fences.insert(path.clone(), *fence);
            }
            Notice::Released { path } => {
                state.fences.remove(path);
            }
            Notice::Lost(_) => state.fences.clear(),
            Notice::Ended(_) => {
                state.fences.clear();
                state.has_ended = true;
            }
            _ => {}
        }
    }

    fn fence(&self) -> Option<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fences.values().max().copied()
    }

    fn has_ended(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).has_ended
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    async fn until_ended(&self) {
        self.until(Beliefs::has_ended).await;
    }

    async fn until_held(&self, at_most: Duration) {
        let held = self.until(|beliefs| beliefs.fence().is_some() || beliefs.has_ended());
        // The script goes on either way.
        tokio::time::timeout(at_most, held).await.ok();
    }
}

fn outcome(answer: Result<Answer, CallError>) -> Outcome {
    match answer {
        Ok(Answer { value: Ok(value), claim, .. }) => Outcome::Ok { value, holds: claim.is_some() },
        Ok(Answer { value: Err(value), claim, .. }) => {
            Outcome::Err { value, holds: claim.is_some() }
        }
        Err(CallError::Cancelled) => Outcome::Cancelled,
        Err(CallError::Busy) => Outcome::Busy,
        Err(CallError::Ended) => Outcome::Ended,
    }
}

fn told(notice: Notice) -> Option<Told> {
    Some(match notice {
        Notice::Waiting { path } => Told::Waiting { path },
        Notice::Held(Held { path, fence }) => Told::Held { path, fence },
        Notice::Released { path } => Told::Released { path },
        // Nothing depends on a claim in a simulation, and no judge asks who waits for nothing.
        Notice::Leaving(_) | Notice::Idle => return None,
        Notice::Suspended => Told::Suspended,
        Notice::Resumed => Told::Resumed,
        Notice::Emitted { event, detail } => {
            Told::Emitted { event, detail: detail.into_iter().collect() }
        }
        Notice::Lost(loss) => Told::Lost { reason: loss.reason().to_owned() },
        Notice::Ended(ending) => {
            let (how, fault) = match ending {
                Ending::Left => ("left", None),
                Ending::Lost(Loss::Fault(fault)) => ("lost", Some(fault.to_string())),
                Ending::Lost(_) => ("lost", None),
                Ending::Failed(fault) => ("failed", Some(fault.to_string())),
            };
            Told::Ended { how: how.to_owned(), fault }
        }
    })
}
