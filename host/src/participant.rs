//! One participant: a component instance with its task, its mailbox and those who follow it.
//!
//! The task owns the instance. It lets one operation run at a time, wakes the component when a
//! watch of its fires in between, tells the follower what the claim does, and cleans up, whatever
//! the end. A lost claim or session ends the participant: it is never re-joined behind its user's
//! back.

mod alarm;
mod call;
mod line;
mod mailbox;
mod notice;
mod presence;
mod task;
mod voice;

use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub use call::{Answer, Call, CallError};
pub use line::{Follower, Standing};
pub(crate) use line::{Line, Listener};
pub use notice::{Ending, Leaving, Loss, Notice, detail_as_json};
pub use presence::Presence;

use crate::clock::Boottime;
use crate::guest::{
    Configuration, HostTimeAndChance, Instance, Limits, Module, Mount, OperationScope,
    Surroundings, Witness,
};
use crate::session::{Failure, Held, Seat, SeatLimits, Session};
use crate::tasks::Tasks;
use call::Request;
use mailbox::{Mailbox, mailbox};
use task::Task;
use voice::ParticipantVoice;

/// What it takes to join a recipe.
#[derive(Clone)]
pub struct Join {
    /// The recipe's name in the config, or its module's.
    pub recipe: String,
    /// The module.
    pub module: Module,
    /// What the component sees as `/`.
    pub mount: Mount,
    /// The module's config.
    pub config: Configuration,
    /// What the component may use.
    pub limits: Limits,
    /// What it may have in ZooKeeper.
    pub seat: SeatLimits,
    /// Who asks, in words for other contenders.
    pub owner: String,
    /// Who sees what its component asks; nobody but in a simulation.
    pub witness: Option<Arc<dyn Witness>>,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Join { recipe, mount, owner, .. } = self;
        let mut shown = formatter.debug_struct("Join");
        shown.field("recipe", recipe).field("mount", mount).field("owner", owner);
        shown.finish_non_exhaustive()
    }
}

/// A participant, as the caller that joined it sees it. Dropping it ends the participant.
#[derive(Debug)]
pub struct Participant {
    id: Arc<str>,
    mailbox: Mailbox<Box<Request>>,
    /// The task owns the seat and gives it up when the participant ends, although a caller may keep
    /// this handle.
    seat: Weak<Seat>,
    session: Arc<Session>,
    line: Line,
}

impl Participant {
    /// Starts a participant on a session.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room for another one.
    pub fn join(
        tasks: &Tasks,
        session: &Arc<Session>,
        join: Join,
    ) -> Result<(Participant, Follower), Failure> {
        let seat = session.join(join.mount.path(), join.seat)?;
        Ok(Participant::start(tasks, session, seat, join))
    }

    /// Starts a participant that has its seat on the session already.
    pub fn start(
        tasks: &Tasks,
        session: &Arc<Session>,
        seat: Seat,
        join: Join,
    ) -> (Participant, Follower) {
        let seat = Arc::new(seat.of_kin(join.module.kin()));
        let line = Line::default();
        let follower = line.follower(Arc::downgrade(&seat));
        let id = Arc::<str>::from(session.clock().uuid().simple().to_string());
        let scope = Arc::new(OperationScope::new());
        let surroundings = Surroundings {
            seat: Arc::clone(&seat),
            mount: join.mount,
            scope: Arc::clone(&scope),
            voice: Arc::new(ParticipantVoice::new(line.clone(), &join.recipe, Arc::clone(&id))),
            id: Arc::clone(&id),
            owner: join.owner,
            time: Arc::new(HostTimeAndChance::new(Arc::clone(session.clock()))),
            limits: join.limits,
            witness: join.witness,
        };
        let (mailbox, calls) = mailbox();
        let mut task = Task {
            line: line.clone(),
            scope,
            calls,
            seat: Arc::clone(&seat),
            state: session.state(),
        };
        let last_word = line.last_word(Arc::clone(&id), join.module.clone());
        let (module, config) = (join.module, join.config);
        // Boxed with all it takes, because the room would be kept for as long as the participant
        // lives; and once more, because many may wait for their turn to start.
        let starting = Box::pin(async move {
            let started = Box::pin(Instance::start(&module, surroundings, &config)).await;
            started.map(Box::new).map_err(Box::new)
        });
        tasks.spawn("participant", async move {
            let _last_word = last_word;
            task.run(starting).await;
        });
        let (seat, session) = (Arc::downgrade(&seat), Arc::clone(session));
        (Participant { id, mailbox, seat, session, line }, follower)
    }

    /// The participant's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Calls an operation.
    ///
    /// # Errors
    /// `Busy` while another one is under way; `Cancelled` when the deadline passed or the caller
    /// withdrew; `Ended`.
    ///
    /// # Cancellation
    /// Dropping the future withdraws the call. If the operation has come to hold something, the participant
    /// leaves.
    pub async fn call(&self, call: Call) -> Result<Answer, CallError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.put(Box::new(Request { call, reply }))?;
        let answered = answer.await.unwrap_or(Err(CallError::Ended))?;
        // It may have waited here for long, as where this process was stopped.
        if answered.answer.claim.is_some() && !self.is_live() {
            return Err(CallError::Ended);
        }
        // From here nothing is waited for.
        Ok(answered.heard())
    }

    /// Tells its followers that it is to end, and keeps its claim for what depends on it.
    pub fn tell_leaving(&self, leaving: Leaving) {
        self.line.tell(Notice::Leaving(leaving));
    }

    /// Asks the participant to end. Its follower is told when it has.
    pub fn leave(&self) {
        self.mailbox.leave();
    }

    /// Whether the participant holds a claim at this very moment, as far as anyone can know.
    pub fn holds(&self) -> bool {
        holds(&self.seat)
    }

    fn is_live(&self) -> bool {
        self.seat.upgrade().is_some_and(|seat| seat.is_live())
    }

    /// Something that runs only while `held` is held: as long as the token lives, the claim's
    /// znodes are not deleted by this host. None if the claim is lost, given up, or about to be.
    pub fn depend(&self, held: &Held) -> Option<TaskTrackerToken> {
        self.seat.upgrade()?.depend(held)
    }

    /// Until when what is held may be relied on without hearing more.
    pub fn deadline(&self) -> Boottime {
        self.session.deadline()
    }

    /// Says, whenever it is asked, what [`Presence::tenure`] does. It keeps nothing of the participant alive.
    pub fn tenure(&self) -> impl Fn() -> Option<Boottime> + Send + 'static {
        let presence = self.presence();
        move || presence.tenure()
    }

    /// The participant as others of this host see it.
    pub fn presence(&self) -> Presence {
        let (id, seat) = (Arc::clone(&self.id), Weak::clone(&self.seat));
        Presence::new(id, self.line.clone(), seat, self.session.id())
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.mailbox.leave();
    }
}

/// Whether the one whose seat this is holds a claim, as far as anyone can know.
fn holds(seat: &Weak<Seat>) -> bool {
    seat.upgrade().is_some_and(|seat| seat.has_claim() && seat.is_live())
}
