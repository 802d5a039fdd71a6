//! The task that owns a participant's instance.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::Sleep;

use super::alarm::Alarm;
use super::call::{Answer, Answered, Call, CallError, News, Reply, Request};
use super::line::Line;
use super::mailbox::Calls;
use super::notice::{Ending, Loss, Notice};
use crate::guest::{self, Fault, Instance, OperationScope};
use crate::session::{Held, Seat, SessionLoss, SessionState};

/// How long a cancelled operation may take to clean up and return before its call is dropped.
const GRACE: Duration = Duration::from_secs(1);

/// How long a `wake` may take. It is no operation, so no caller's deadline bounds it; it reads,
/// decides and perhaps writes, which takes milliseconds unless the connection is lost.
const WAKE_LIMIT: Duration = Duration::from_secs(30);

/// A participant's task, without its instance.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) line: Line,
    pub(super) scope: Arc<OperationScope>,
    pub(super) calls: Calls<Box<Request>>,
    pub(super) seat: Arc<Seat>,
    pub(super) state: watch::Receiver<SessionState>,
}

/// What happens to a participant.
enum Happening {
    /// Its session is lost.
    SessionLost(SessionLoss),
    /// A znode of its claim is.
    ClaimLost(String),
    /// It is asked to end.
    Leave,
    /// It is called.
    Called(Box<Request>),
    /// A watch of its has fired.
    Fired,
}

/// An instance that is being made and configured.
pub(super) type Starting = Pin<Box<dyn Future<Output = Result<Box<Instance>, Box<Fault>>> + Send>>;

/// How a call into the component ended for the participant.
type Ended = Result<(), Ending>;

/// Why a call into the component was dropped.
enum Dropped {
    /// The claim or the session was lost meanwhile.
    Lost(Loss),
    /// It was cancelled, and the component did not return in time.
    GraceSpent,
}

impl Task {
    /// Runs the participant to its end. What it is given is boxed, because an async function keeps room
    /// for an argument twice: where it is passed, and where it is moved to.
    pub(super) async fn run(&mut self, starting: Starting) {
        let (ending, instance) = match self.start(starting).await {
            Ok(mut instance) => (self.live(&mut instance).await, Some(instance)),
            Err(ending) => (ending, None),
        };
        // No call can come in any more, and those that came are answered by being dropped.
        self.calls.close();
        Box::pin(self.finish(ending, instance)).await;
    }

    /// Waits for the instance, which may ask ZooKeeper for something while it is configured.
    async fn start(&mut self, starting: Starting) -> Result<Box<Instance>, Ending> {
        // Cancel-safe: a loss stays lost, and the start is dropped where another branch is taken.
        tokio::select! {
            biased;
            loss = losses(&mut self.state, &self.seat, &self.line) => Err(Ending::Lost(loss)),
            () = self.calls.until_leave() => Err(Ending::Left),
            started = starting => started.map_err(|fault| failed(*fault)),
        }
    }

    async fn live(&mut self, instance: &mut Instance) -> Ending {
        let mut waiting = None;
        loop {
            // What came in while the component was being woken goes first.
            let happening = match waiting.take() {
                Some(request) => Happening::Called(request),
                None => self.next_happening(instance).await,
            };
            let outcome = match happening {
                Happening::SessionLost(loss) => return Ending::Lost(Loss::Session(loss)),
                Happening::ClaimLost(path) => return Ending::Lost(loss_of(&self.seat, path)),
                Happening::Leave => return Ending::Left,
                Happening::Fired => self.wake(instance, &mut waiting).await,
                // Its time passed while the component was being woken.
                Happening::Called(request) if request.is_withdrawn() => {
                    // Who has withdrawn may have gone.
                    request.reply.send(Err(CallError::Cancelled)).ok();
                    Ok(())
                }
                Happening::Called(request) => self.operate(instance, request).await,
            };
            if let Err(ending) = outcome {
                return ending;
            }
        }
    }

    /// Waits, with the component idle.
    async fn next_happening(&mut self, instance: &mut Instance) -> Happening {
        let fired = std::future::poll_fn(|cx| instance.poll_fired(cx));
        // Cancel-safe, all of them: a loss stays lost, a fired watch fired, a call in the mailbox.
        // In order of urgency, except that a fired watch comes before the next operation.
        tokio::select! {
            biased;
            loss = until_session_lost(&mut self.state, &self.line) => Happening::SessionLost(loss),
            path = self.seat.until_claim_lost() => Happening::ClaimLost(path),
            () = self.calls.until_leave() => Happening::Leave,
            () = fired => Happening::Fired,
            request = self.calls.next() => Happening::Called(request),
        }
    }

    async fn wake(&mut self, instance: &mut Instance, waiting: &mut Option<Box<Request>>) -> Ended {
        self.scope.begin();
        self.seat.forget_shown();
        let woken = {
            let (call, limit) = (pin!(instance.wake()), pin!(tokio::time::sleep(WAKE_LIMIT)));
            let lost = pin!(losses(&mut self.state, &self.seat, &self.line));
            let meanwhile = Meanwhile {
                call,
                lost,
                withdrawn: limit,
                alarm: Alarm::new(),
                scope: &self.scope,
                calls: &self.calls,
                intake: Intake::HoldOne(Waiting { request: waiting, over: None }),
                grace: None,
            };
            meanwhile.await
        };
        self.settle_waiting();
        if matches!(woken, Ok(Ok(()))) {
            self.tell_if_idle(instance);
        }
        match woken {
            Ok(woken) => woken.map_err(failed),
            Err(dropped) => Err(dropped.ending(instance, "wake")),
        }
    }

    async fn operate(&mut self, instance: &mut Instance, request: Box<Request>) -> Ended {
        let Request { call, mut reply } = *request;
        let _under_way = self.line.under_way(call.arguments.operation(), &self.scope);
        let before = self.seat.held();
        self.scope.begin();
        let attended = {
            let (seat, scope) = (&self.seat, &self.scope);
            let answer = pin!(async {
                // A component answers by what it remembers, so it is not asked while that may be over. Boxed,
                // as it is rare: a future has room for every branch.
                if seat.is_in_question() && !Box::pin(is_settled(seat, scope)).await {
                    return Ok(guest::Answer::Err("cancelled".into()));
                }
                instance.call(&call.arguments).await
            });
            let withdrawn = pin!(call.until_withdrawn(&mut reply));
            let lost = pin!(losses(&mut self.state, &self.seat, &self.line));
            let meanwhile = Meanwhile {
                call: answer,
                lost,
                withdrawn,
                alarm: Alarm::new(),
                scope: &self.scope,
                calls: &self.calls,
                intake: Intake::Refuse,
                grace: None,
            };
            meanwhile.await
        };
        // Before the answer: who hears it may look at once.
        let has_left_the_line = self.settle_waiting();
        let value = match attended {
            Ok(Ok(guest::Answer::Ok(value))) => Ok(value),
            Ok(Ok(guest::Answer::Err(error))) => Err(error),
            Ok(Err(fault)) => {
                // Who called may have gone, here and below; how it ended is told to the follower.
                reply.send(Err(CallError::Ended)).ok();
                return Err(failed(fault));
            }
            Err(dropped) => {
                let cancelled = call.is_withdrawn();
                let error = if cancelled { CallError::Cancelled } else { CallError::Ended };
                reply.send(Err(error)).ok();
                return Err(dropped.ending(instance, call.arguments.operation()));
            }
        };
        if has_left_the_line {
            // Who was told that it waits, and is not the caller, would take it for a waiter for ever.
            self.tell_if_idle(instance);
        }
        self.answer(instance, &call, reply, value, before.as_ref())
    }

    /// Answers an operation that ran to its end. This is the last look before "held" is said. Before the
    /// call, the participant held what `before` says.
    fn answer(
        &self,
        instance: &mut Instance,
        call: &Call,
        reply: Reply,
        value: Result<serde_json::Value, serde_json::Value>,
        before: Option<&Held>,
    ) -> Ended {
        let claim = self.seat.held();
        if claim.is_some() && !self.seat.is_live() {
            reply.send(Err(CallError::Ended)).ok();
            return Err(Ending::Lost(Loss::Session(self.session_loss())));
        }
        let is_news = claim.is_some() && claim.as_ref() != before;
        let news = is_news.then(|| News::new(self.calls.mailbox(), Arc::downgrade(&self.seat)));
        let was_cancelled = self.scope.is_cancelled() && call.is_withdrawn() && value.is_err();
        let answer = match was_cancelled {
            // Such an answer says that nothing of the operation is held, so the news is dropped.
            true => Err(CallError::Cancelled),
            false => {
                let answer = Answer { value, claim, watches: instance.has_watches() };
                Ok(Answered { answer, news })
            }
        };
        // A caller that is gone has withdrawn, and the news goes with the answer.
        reply.send(answer).ok();
        Ok(())
    }

    /// A component that gave its place in line up without having held anything has told nobody. Answers
    /// whether it did so just now.
    fn settle_waiting(&self) -> bool {
        self.line.settle_waiting(|path| self.seat.owns(path))
    }

    /// Tells that nothing comes of the participant any more, unless it holds something or may be woken.
    fn tell_if_idle(&self, instance: &mut Instance) {
        if !instance.has_watches() && !self.seat.has_claim() {
            self.line.tell(Notice::Idle);
        }
    }

    /// Why the session is no more. Where it has not said so yet, its local deadline has passed.
    fn session_loss(&self) -> SessionLoss {
        match *self.state.borrow() {
            SessionState::Lost(loss) => loss,
            SessionState::Connected | SessionState::Suspended => SessionLoss::Deadline,
        }
    }

    /// Tells the follower, waits for what depends on the claim, and cleans up.
    async fn finish(&mut self, ending: Ending, instance: Option<Box<Instance>>) {
        let has_claim = self.seat.has_claim();
        let mut ending = match ending {
            Ending::Failed(fault) if has_claim => Ending::Lost(Loss::Fault(fault)),
            ending => ending,
        };
        if let Ending::Lost(loss) = &ending {
            self.tell_lost(loss);
        }
        // Where the participant gives up what still depends on the claim goes on under it, and must hear
        // if the claim is lost meanwhile.
        let is_kept = match &ending {
            Ending::Left | Ending::Lost(Loss::Fault(_)) => has_claim,
            Ending::Lost(_) | Ending::Failed(_) => false,
        };
        let seat = Arc::clone(&self.seat);
        let let_go = async {
            seat.until_independent().await;
            // Before the clean-up, so that nothing is created after it.
            if let Some(instance) = instance {
                instance.end().await;
            }
        };
        let mut let_go = pin!(let_go);
        let lost = tokio::select! {
            biased;
            () = &mut let_go => None,
            loss = losses(&mut self.state, &seat, &self.line), if is_kept => Some(loss),
            () = seat.follow_claims(), if !is_kept => None,
        };
        if let Some(loss) = lost {
            self.tell_lost(&loss);
            ending = Ending::Lost(loss);
            tokio::select! {
                biased;
                () = let_go => {}
                () = seat.follow_claims() => {}
            }
        }
        let lost = self.seat.retire().await;
        let ending = match (ending, lost) {
            // It was to give back what it held, and the session was lost before that was certain.
            (Ending::Left, Some(loss)) if has_claim => {
                let loss = Loss::Session(loss);
                self.line.tell(Notice::Lost(loss.clone()));
                Ending::Lost(loss)
            }
            (ending, _) => ending,
        };
        self.line.tell(Notice::Ended(ending));
    }

    fn tell_lost(&self, loss: &Loss) {
        // What depends on the claim may keep its other znodes for a while.
        if let Loss::Znode { .. } = loss {
            self.seat.forfeit();
        }
        self.line.tell(Notice::Lost(loss.clone()));
    }
}

fn failed(fault: Fault) -> Ending {
    tracing::warn!(%fault, kind = fault.kind(), "a module failed");
    Ending::Failed(Arc::new(fault))
}

impl Dropped {
    /// How the participant ends by it.
    fn ending(self, instance: &Instance, operation: &str) -> Ending {
        match self {
            Dropped::Lost(loss) => Ending::Lost(loss),
            Dropped::GraceSpent => {
                let (guest, operation) = (instance.guest().to_owned(), operation.to_owned());
                failed(Fault::GraceSpent { guest, operation, grace: GRACE })
            }
        }
    }
}

/// What to do with calls that arrive meanwhile.
enum Intake<'a> {
    /// An operation is under way: a second one is refused, never queued.
    Refuse,
    /// The component is being woken, which its caller cannot know: one call waits its turn.
    HoldOne(Waiting<'a>),
}

/// A call that waits until the component has been woken, or until its caller withdraws.
struct Waiting<'a> {
    request: &'a mut Option<Box<Request>>,
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Waiting<'_> {
    /// Has a call wait; answers it if there is one already.
    fn put(&mut self, request: Box<Request>) -> Result<(), Box<Request>> {
        if self.request.is_some() {
            return Err(request);
        }
        self.over = Some(Box::pin(request.call.until_over()));
        *self.request = Some(request);
        Ok(())
    }

    /// Answers the call if its caller has withdrawn.
    fn poll_withdrawn(&mut self, context: &mut Context<'_>) {
        let (Some(request), Some(over)) = (self.request.as_mut(), &mut self.over) else { return };
        // Both are polled, so that either wakes.
        let is_gone = request.reply.poll_closed(context).is_ready();
        if over.as_mut().poll(context).is_ready() || is_gone {
            self.over = None;
            if let Some(request) = self.request.take() {
                // Who called may have gone.
                request.reply.send(Err(CallError::Cancelled)).ok();
            }
        }
    }
}

/// A call into the component, and whatever else may happen meanwhile. Once `withdrawn` completes, or
/// the participant is to end, the operation is cancelled and has a grace to return in.
///
/// A future by hand, and the caller that starts it pins what it polls: one of `select` keeps room
/// for all that it is given twice.
struct Meanwhile<'a, C, L, W> {
    call: Pin<&'a mut C>,
    lost: Pin<&'a mut L>,
    withdrawn: Pin<&'a mut W>,
    /// For the two of them.
    alarm: Alarm,
    scope: &'a OperationScope,
    calls: &'a Calls<Box<Request>>,
    intake: Intake<'a>,
    /// Boxed: hardly any call needs one.
    grace: Option<Pin<Box<Sleep>>>,
}

impl<C, L, W, T> Future for Meanwhile<'_, C, L, W>
where
    C: Future<Output = Result<T, Fault>>,
    L: Future<Output = Loss>,
    W: Future<Output = ()>,
{
    type Output = Result<Result<T, Fault>, Dropped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let mut is_withdrawn = false;
            if this.alarm.rang(context) {
                let mut beside = Context::from_waker(this.alarm.waker());
                if let Poll::Ready(loss) = this.lost.poll_unpin(&mut beside) {
                    return Poll::Ready(Err(Dropped::Lost(loss)));
                }
                // It completes once.
                is_withdrawn =
                    this.grace.is_none() && this.withdrawn.poll_unpin(&mut beside).is_ready();
            }
            if let Poll::Ready(outcome) = this.call.as_mut().poll(context) {
                return Poll::Ready(Ok(outcome));
            }
            if let Some(grace) = &mut this.grace {
                if grace.poll_unpin(context).is_ready() {
                    return Poll::Ready(Err(Dropped::GraceSpent));
                }
            } else if is_withdrawn || this.calls.poll_leave(context).is_ready() {
                this.scope.cancel();
                this.grace = Some(Box::pin(tokio::time::sleep(GRACE)));
                continue;
            }
            if let Intake::HoldOne(waiting) = &mut this.intake {
                waiting.poll_withdrawn(context);
            }
            let request = ready!(this.calls.poll_next(context));
            let refused = match &mut this.intake {
                Intake::HoldOne(waiting) => waiting.put(request).err(),
                Intake::Refuse => Some(request),
            };
            if let Some(refused) = refused {
                // Who called may have gone.
                refused.reply.send(Err(CallError::Busy)).ok();
            }
        }
    }
}

/// Waits until it is known that what is held is held. False if the operation is cancelled before.
async fn is_settled(seat: &Seat, scope: &OperationScope) -> bool {
    // Cancel-safe, both: they are states.
    tokio::select! {
        biased;
        () = scope.cancelled() => false,
        () = seat.until_unquestioned() => true,
    }
}

async fn losses(state: &mut watch::Receiver<SessionState>, seat: &Seat, line: &Line) -> Loss {
    tokio::select! {
        biased;
        loss = until_session_lost(state, line) => Loss::Session(loss),
        path = seat.until_claim_lost() => loss_of(seat, path),
    }
}

fn loss_of(seat: &Seat, path: String) -> Loss {
    Loss::Znode { path, may_be_own: seat.may_have_given_up() }
}

/// Tells the follower of doubt and its end, and completes when the session is lost.
async fn until_session_lost(state: &mut watch::Receiver<SessionState>, line: &Line) -> SessionLoss {
    loop {
        // Nothing is told while the state is borrowed: a follower that holds its queue may wait for the state.
        let now = *state.borrow_and_update();
        // A participant may join in doubt, and what is over before anybody looks is not told.
        match now {
            SessionState::Suspended => line.tell(Notice::Suspended),
            SessionState::Connected => line.tell(Notice::Resumed),
            SessionState::Lost(loss) => return loss,
        }
        // Its owner has dropped it, which closes it.
        if state.changed().await.is_err() {
            return SessionLoss::Closed;
        }
    }
}
