//! The participants of apps: what keeps each of them, and what ends it.
//!
//! A participant lives as long as its app shows that the app lives: by an open stream, by renewing a
//! lease, or both. It ends as well when the app asks for it, or the host stops. What it holds then is kept
//! until its app has given it back, or may rely on nothing any more that it was told.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, sleep};
use tokio_util::sync::CancellationToken;

use super::dependence::Dependence;
use super::lease::{Lease, OpenCall};
use super::lines::{Happening, Line, ticks};
use super::problem::{Operation, Problem};
use crate::clock::Boottime;
use crate::config::spell_duration;
use crate::guest::Arguments;
use crate::guest::values::error_in_words;
use crate::participant::{
    Answer, Call, CallError, Follower, Leaving, Notice, Participant, Presence,
};
use crate::registry::App;

/// How often a daemon that stops looks whether an app still holds anything: nothing announces it to the
/// one who waits for the deadline.
const LOOK: Duration = Duration::from_millis(100);

/// Why a participant ends whose stream breaks off.
const CLOSED: &str = "its app has closed the connection, or has ended";

/// Why all participants of a daemon end that is told to.
const STOPS: &str = "the daemon stops";

/// A participant of an app.
#[derive(Debug)]
pub(super) struct Attendance {
    pub(super) participant: Participant,
    pub(super) recipe: String,
    pub(super) app: String,
    /// Of the app.
    pub(super) uid: Option<u32>,
    pub(super) lease: Option<Lease>,
    /// Of an app that runs something under the claim.
    pub(super) dependence: Option<Dependence>,
    /// Cancelled to have it leave.
    pub(super) leaving: CancellationToken,
    /// Cancelled when nothing of it is left.
    pub(super) ended: CancellationToken,
    /// Cancelled to withdraw what is under way; the next operation has another.
    withdrawn: Mutex<CancellationToken>,
    /// The latest deadline that the app was told.
    told: Mutex<Told>,
}

/// Until when an app may rely on what it holds.
#[derive(Debug, Default)]
struct Told {
    /// The latest deadline that it was told, if it was told any.
    until: Option<Boottime>,
    /// It is told no later one.
    is_final: bool,
}

impl Attendance {
    pub(super) fn new(participant: Participant, recipe: String, app: &App) -> Self {
        Attendance {
            participant,
            recipe,
            app: app.name.clone(),
            uid: app.uid,
            lease: None,
            dependence: None,
            leaving: CancellationToken::new(),
            ended: CancellationToken::new(),
            withdrawn: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// The same, of an app that has to be heard of again.
    pub(super) fn with_lease(self, lease: Option<Lease>) -> Self {
        Attendance { lease, ..self }
    }

    /// The same, of an app that runs something under the claim.
    pub(super) fn with_dependence(mut self) -> Self {
        let margin = self.participant.session().timing().margin();
        self.dependence = Some(Dependence::new(margin));
        self
    }

    /// Calls an operation.
    ///
    /// # Cancellation
    /// Withdraws the call.
    pub(super) async fn call(&self, opening: Opening) -> Result<Answer, CallError> {
        let withdrawn = Some(self.withdrawn().child_token());
        let Opening { arguments, deadline } = opening;
        self.participant.call(Call { arguments, deadline, withdrawn }).await
    }

    /// Withdraws the operation that is under way, if any.
    pub(super) fn withdraw(&self) {
        std::mem::take(&mut *self.withdrawn()).cancel();
    }

    /// Shows that its app lives. False if that is too late, as its participant ends.
    pub(super) fn renew(&self) -> bool {
        !self.is_ending() && self.lease.as_ref().is_none_or(Lease::renew)
    }

    /// Shows that its app lives. Where the participant holds nothing, its lease, if it has one, does not run
    /// until what is answered here is dropped: an app that is stopped while it waits is in nobody's way, but
    /// one that holds something is.
    pub(super) fn open_call(&self) -> Result<Option<OpenCall<'_>>, Problem> {
        if !self.renew() {
            return Err(self.end_as_problem(Operation::NotBegun));
        }
        let Some(lease) = &self.lease else { return Ok(None) };
        match self.participant.presence().held() {
            Some(_) => Ok(None),
            None => {
                lease.open_call().map(Some).ok_or_else(|| self.end_as_problem(Operation::NotBegun))
            }
        }
    }

    /// Has it leave. Of several reasons the first one is told.
    pub(super) fn end(&self, why: impl Into<Cow<'static, str>>) {
        self.participant.presence().leaves_because(why);
        self.leaving.cancel();
    }

    /// Why it leaves, once it does.
    fn why(&self) -> Option<Cow<'static, str>> {
        self.participant.presence().why()
    }

    fn is_ending(&self) -> bool {
        self.leaving.is_cancelled() || self.ended.is_cancelled()
    }

    /// How the participant has ended, or why it is ending: for who asks too late, and for the caller of the
    /// operation that was under way.
    pub(super) fn end_as_problem(&self, operation: Operation) -> Problem {
        let standing = self.participant.presence().standing();
        Problem::ended(standing.ending.as_ref(), self.why().as_deref(), operation)
    }

    /// Whether a module's error says no more than that its participant leaves, and so withdraws what was
    /// under way: the reason for that is told in its place.
    pub(super) fn is_withdrawn(&self, error: &Value) -> bool {
        error.as_str() == Some("cancelled") && self.leaving.is_cancelled()
    }

    /// Until when it may be told that what is held can be relied on: not for longer than its lease runs, and
    /// nothing more where the host stops. `presence` is its participant's.
    pub(super) fn deadline(&self, presence: &Presence) -> Option<Boottime> {
        let left = self.lease.as_ref().map(|lease| Boottime::now() + lease.left());
        let deadline = presence.tenure().map(|it| left.map_or(it, |left| it.min(left)));
        let deadline = match &self.dependence {
            Some(dependence) => dependence.tell(deadline),
            None => deadline,
        }?;
        let mut told = self.told();
        if told.is_final {
            return None;
        }
        told.until = told.until.max(Some(deadline));
        Some(deadline)
    }

    /// The host stops, or the session is over. Of a host that stops all who follow the participant are told,
    /// and until when its app may rely on what it holds; nobody is told a later time from then on.
    fn stop(&self) {
        // Who has said that something depends on the claim is told when the participant leaves.
        if self.dependence.is_none() && !self.participant.session().is_lost() {
            // Also where no deadline has been told yet: the answer to a call may have said what it took.
            let is_held = self.deadline(&self.participant.presence()).is_some();
            let until = {
                let mut told = self.told();
                told.is_final = true;
                told.until
            };
            self.participant.presence().leaves_because(STOPS);
            if is_held {
                self.participant.tell_leaving(Leaving { why: STOPS.to_owned(), until });
            }
        }
        self.lease.iter().for_each(Lease::spend);
    }

    /// Completes when the app may rely on nothing any more that it was told, if it holds anything. What
    /// depends on a claim has a wait of its own.
    async fn until_told_deadline(&self) {
        let presence = self.participant.presence();
        while self.dependence.is_none()
            && presence.held().is_some()
            && !self.participant.session().is_lost()
        {
            let left = self.told().until.map_or(Duration::ZERO, Boottime::remaining);
            if left.is_zero() {
                return;
            }
            sleep(left.min(LOOK)).await;
        }
    }

    /// Nothing of the app depends on the claim any more.
    pub(super) fn end_dependence(&self) {
        if let Some(dependence) = &self.dependence {
            dependence.end();
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn withdrawn(&self) -> MutexGuard<'_, CancellationToken> {
        self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation, and when its caller gives up.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) arguments: Arguments,
    pub(super) deadline: Option<Instant>,
}

/// The participants of apps, by id.
#[derive(Debug, Default)]
pub(super) struct Attendances(Mutex<BTreeMap<Arc<str>, Arc<Attendance>>>);

impl Attendances {
    pub(super) fn enter(self: &Arc<Self>, attendance: Arc<Attendance>) -> Entered {
        let id = Arc::<str>::from(attendance.participant.id());
        self.all().insert(Arc::clone(&id), attendance);
        Entered { id, attendances: Arc::clone(self) }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Attendance>> {
        self.all().get(id).cloned()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Attendance>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Strikes a participant out when it is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    id: Arc<str>,
    attendances: Arc<Attendances>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let attendance = self.attendances.all().remove(&self.id);
        if let Some(attendance) = attendance {
            attendance.ended.cancel();
        }
    }
}

/// The stream that an app follows its participant on, and that keeps it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) lines: mpsc::Sender<Line>,
    /// How often the stream says that it is alive.
    pub(super) alive: Duration,
    /// How long the app may leave it unread.
    pub(super) patience: Duration,
    /// Ends the connection.
    pub(super) hang_up: CancellationToken,
}

/// What attending to a participant takes.
pub(super) struct Attending {
    pub(super) attendance: Arc<Attendance>,
    pub(super) entered: Entered,
    pub(super) follower: Follower,
    /// What is called first, and told of on the stream.
    pub(super) opening: Option<Opening>,
    pub(super) stream: Option<Stream>,
    /// Cancelled when its session is over or the host stops.
    pub(super) over: CancellationToken,
}

/// Attends to a participant until nothing of it is left. What it is given is boxed, because an async function
/// keeps room for an argument twice.
pub(super) async fn attend(attending: Box<Attending>) {
    let Attending { attendance, entered, mut follower, opening, stream, over } = *attending;
    // A second sender, so that the stream's end can be awaited while the first one sends.
    let listening = stream.as_ref().map(|stream| stream.lines.clone());
    let mut teller = Teller::new(&attendance, stream);
    let operation = opening.as_ref().map(|it| it.arguments.operation().to_owned());
    let mut call = opening.map(|opening| Box::pin(attendance.call(opening)));
    let (mut is_stopping, mut is_leaving, mut is_idle) = (false, false, false);
    loop {
        // All are cancel-safe: notices and lines stay queued, the call is kept across turns, and the
        // rest are states.
        tokio::select! {
            biased;
            why = until_unkept(&attendance, listening.as_ref(), is_stopping), if !is_leaving => {
                is_leaving = true;
                // Nobody renews it from now on.
                attendance.end(why);
                teller.tell_leaving();
                attendance.participant.leave();
            }
            () = over.cancelled(), if !is_stopping && !is_leaving => {
                is_stopping = true;
                attendance.stop();
            }
            () = until_spent(&attendance) => attendance.end_dependence(),
            // Ahead of what is told one by one: `alive` has the deadline and the count of what was dropped.
            () = teller.go_on() => {
                if teller.is_flushed() && teller.take_alive() {
                    teller.tell_alive(follower.dropped());
                }
            }
            notice = follower.next(), if teller.is_flushed() => match notice {
                // The call has been answered by then, and its answer is told first.
                Some(Notice::Idle) if call.is_some() => is_idle = true,
                Some(notice) => teller.tell_notice(&notice),
                None => break,
            },
            answer = answer(&mut call), if call.is_some() && teller.is_flushed() => {
                call = None;
                let operation = operation.as_deref().unwrap_or_default();
                match teller.tell_answer(operation, answer) {
                    Answered::Leave(why) => attendance.end(why),
                    Answered::Well if is_idle => teller.tell_notice(&Notice::Idle),
                    Answered::Well | Answered::Withdrawn => {}
                }
            }
        }
    }
    drop((entered, listening));
    teller.finish().await;
}

/// Completes when nothing that depends on the claim can be left, and the claim is kept for it alone.
async fn until_spent(attendance: &Attendance) {
    match &attendance.dependence {
        // Boxed, as it is rare: a future has room for every branch.
        Some(dependence) => Box::pin(dependence.until_spent()).await,
        None => pending().await,
    }
}

/// Completes when nothing keeps the participant any more; answers why. One that is stopping is kept for as
/// long as its app may rely on what it was told, unless the app has given back what it held.
async fn until_unkept(
    attendance: &Attendance,
    listening: Option<&mpsc::Sender<Line>>,
    is_stopping: bool,
) -> &'static str {
    // What is rare is boxed: a future has room for every branch.
    let spent = async {
        match &attendance.lease {
            Some(lease) => {
                let holds = || attendance.participant.presence().held().is_some();
                Box::pin(lease.until_spent(holds)).await
            }
            None => pending().await,
        }
    };
    let closed = async {
        match listening {
            Some(listening) => listening.closed().await,
            None => pending().await,
        }
    };
    let stopped = async {
        match is_stopping {
            true => Box::pin(attendance.until_told_deadline()).await,
            false => pending().await,
        }
    };
    tokio::select! {
        biased;
        // Where that was for a reason, it is told already.
        () = attendance.leaving.cancelled() => "the request that it was for is over",
        () = closed => CLOSED,
        () = spent => "its lease has passed without a renewal",
        () = stopped => match attendance.participant.session().is_lost() {
            true => "its session is over",
            false => STOPS,
        },
    }
}

type Calling<F> = Option<Pin<Box<F>>>;

async fn answer<F: Future<Output = Result<Answer, CallError>>>(
    call: &mut Calling<F>,
) -> Result<Answer, CallError> {
    match call {
        Some(call) => call.await,
        None => pending().await,
    }
}

/// What came of the first call.
#[derive(Debug)]
enum Answered {
    Well,
    /// In vain: the participant has to leave, for this reason.
    Leave(String),
    /// In vain, as the participant leaves already.
    Withdrawn,
}

/// Tells the stream, if there is one, in the order in which things happened.
struct Teller<'a> {
    attendance: &'a Attendance,
    stream: Option<(Stream, Interval)>,
    /// What has not been taken yet, and since when.
    waiting: VecDeque<Happening>,
    since: Instant,
    is_alive_due: bool,
}

impl<'a> Teller<'a> {
    fn new(attendance: &'a Attendance, stream: Option<Stream>) -> Self {
        let stream = stream.map(|stream| {
            let alive = ticks(stream.alive);
            (stream, alive)
        });
        let (waiting, since) = (VecDeque::new(), Instant::now());
        let mut teller = Teller { attendance, stream, waiting, since, is_alive_due: false };
        let session = attendance.participant.session();
        let joined = Happening::new("joined").with("session", format!("{:#x}", session.id()));
        let timeout = spell_duration(session.timing().timeout());
        let joined = joined.with("session-timeout", timeout);
        let joined = joined.with("app", attendance.app.as_str());
        teller.tell(match attendance.dependence {
            Some(_) => joined.with("dependent", true),
            None => joined,
        });
        teller
    }

    fn tell(&mut self, happening: Happening) {
        if self.stream.is_some() {
            if self.waiting.is_empty() {
                self.since = Instant::now();
            }
            self.waiting.push_back(happening);
        }
    }

    fn tell_notice(&mut self, notice: &Notice) {
        if let Some(dependence) = &self.attendance.dependence {
            match notice {
                Notice::Held(held) if !dependence.begin(&self.attendance.participant, held) => {
                    return;
                }
                Notice::Released { .. } | Notice::Lost(_) => dependence.give_up(),
                _ => {}
            }
        }
        self.tell(Happening::of(notice, self.attendance.why()));
    }

    /// Tells an app that runs something under the claim that it is to end. Of a lost session the loss
    /// is told instead: there is nothing left to be ended in order.
    fn tell_leaving(&self) {
        let Attendance { participant, recipe, .. } = self.attendance;
        let (participant, why) = (participant.id(), self.attendance.why().unwrap_or_default());
        tracing::debug!(recipe, participant, why = &*why, "an app's participant leaves");
        let is_kept = self.attendance.dependence.as_ref().is_some_and(Dependence::leave);
        if is_kept && !self.attendance.participant.session().is_lost() {
            // To all that follow it, of whom this is one.
            let (why, until) = (why.into_owned(), self.attendance.told().until);
            self.attendance.participant.tell_leaving(Leaving { why, until });
        }
    }

    fn tell_answer(&mut self, operation: &str, answer: Result<Answer, CallError>) -> Answered {
        let (happening, answered) = match answer {
            Ok(Answer { value: Ok(value), watches, .. }) => {
                (Happening::answered(value, watches), Answered::Well)
            }
            // Its end is told next, and why it leaves.
            Ok(Answer { value: Err(error), .. }) if self.attendance.is_withdrawn(&error) => {
                return Answered::Withdrawn;
            }
            Ok(Answer { value: Err(error), .. }) => {
                let why = format!(
                    "the call that it joined with, {operation}, was refused: {}",
                    error_in_words(&error)
                );
                (Happening::new("refused").with("error", error), Answered::Leave(why))
            }
            Err(CallError::Cancelled) => {
                let why = format!(
                    "the call that it joined with, {operation}, was not answered in time or was \
                     cancelled"
                );
                (Happening::new("timed-out"), Answered::Leave(why))
            }
            // Its end is told next. Nothing else was called, so it is not busy.
            Err(CallError::Ended | CallError::Busy) => {
                return Answered::Leave("it has ended by itself".to_owned());
            }
        };
        self.tell(happening.with("operation", operation));
        answered
    }

    fn tell_alive(&mut self, dropped: u64) {
        self.tell(Happening::alive(dropped));
    }

    fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Completes when the next that waits is taken. An app that does not read for too long is given
    /// up, and its connection with it.
    async fn flush(&mut self) {
        let Some((stream, _)) = &self.stream else {
            self.waiting.clear();
            return;
        };
        let (lines, limit) = (stream.lines.clone(), self.since + stream.patience);
        let Attendance { participant, recipe, .. } = self.attendance;
        match tokio::time::timeout_at(limit, lines.reserve()).await {
            Ok(Ok(place)) => {
                let Some(happening) = self.waiting.pop_front() else { return };
                self.since = Instant::now();
                let deadline = || self.attendance.deadline(&participant.presence());
                if let Some(happening) = happening.told_now(deadline) {
                    place.send(Box::new(happening.line(recipe, participant.id())));
                }
            }
            Ok(Err(_closed)) => self.give_up(CLOSED),
            Err(_elapsed) => {
                let participant = participant.id();
                tracing::warn!(recipe, participant, "the app does not read its stream: it ends");
                self.hang_up();
            }
        }
    }

    fn hang_up(&mut self) {
        if let Some((stream, _)) = &self.stream {
            stream.hang_up.cancel();
        }
        self.give_up("its app has not read its stream for a session timeout");
    }

    fn give_up(&mut self, why: &'static str) {
        self.stream = None;
        self.waiting.clear();
        self.attendance.end(why);
    }

    /// Completes when something that waits is taken or, where nothing waits, when it is time to say
    /// that the stream is alive.
    async fn go_on(&mut self) {
        if !self.is_flushed() {
            return self.flush().await;
        }
        match &mut self.stream {
            Some((_, alive)) => {
                alive.tick().await;
                self.is_alive_due = true;
            }
            None => pending().await,
        }
    }

    /// Whether it is time to say that the stream is alive. It is asked for once.
    fn take_alive(&mut self) -> bool {
        std::mem::take(&mut self.is_alive_due)
    }

    /// Tells what is left, as far as it is read.
    async fn finish(mut self) {
        while !self.is_flushed() {
            self.flush().await;
        }
    }
}
