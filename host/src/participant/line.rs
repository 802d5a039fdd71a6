//! The line from a participant to those who follow it.
//!
//! Each follower has a queue of its own, so that one that does not read holds nobody up.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::notice::{Ending, Leaving, Notice};
use crate::guest::{Fault, Module, OperationScope, in_words};
use crate::session::{Held, Seat};

/// Notices that wait for a slow reader at most. States take the place of older states, and a module's
/// own events are dropped and counted. What is never dropped: a loss, the end, and that it is to end.
const MOST_WAITING: usize = 256;

/// Where a participant stands, by what it has told.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// The contender znode with which it stands in line.
    pub waiting: Option<String>,
    /// What it told that it holds, and has not told the end of.
    pub held: Option<Held>,
    /// Whether the connection is in doubt.
    pub is_suspended: bool,
    /// That it is to end, while it keeps its claim for what depends on it.
    pub leaving: Option<Leaving>,
    /// The operation that is under way.
    pub operation: Option<String>,
    /// Whether that operation waits for something to change, be it in line or not.
    pub is_blocked: bool,
    /// Whether nothing comes of it unless an operation is called.
    pub is_idle: bool,
    /// How it ended.
    pub ending: Option<Ending>,
}

impl Standing {
    fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::Waiting { path } => self.waiting = Some(path.clone()),
            // A claim of several znodes is told by the first of them, and the participant may have told that
            // it waits with another one.
            Notice::Held(held) => (self.waiting, self.held) = (None, Some(held.clone())),
            Notice::Released { path } => {
                self.held.take_if(|held| held.path == *path);
                self.waiting.take_if(|waiting| waiting == path);
            }
            Notice::Idle => (self.waiting, self.is_idle) = (None, true),
            Notice::Leaving(leaving) => self.leaving = Some(leaving.clone()),
            Notice::Suspended => self.is_suspended = true,
            Notice::Resumed => self.is_suspended = false,
            Notice::Emitted { .. } => {}
            Notice::Lost(_) => self.held = None,
            Notice::Ended(ending) => {
                *self = Standing { ending: Some(ending.clone()), ..Standing::default() };
            }
        }
    }

    /// Whether the notice says of the connection, or of being idle, what has been told already.
    fn knows(&self, notice: &Notice) -> bool {
        match notice {
            Notice::Idle => self.is_idle,
            Notice::Suspended => self.is_suspended,
            Notice::Resumed => !self.is_suspended,
            _ => false,
        }
    }

    /// What a follower is told first that comes late.
    fn notices(&self) -> impl Iterator<Item = Notice> {
        let waiting = self.waiting.clone().filter(|_| self.held.is_none());
        let waiting = waiting.map(|path| Notice::Waiting { path });
        let held = self.held.clone().map(Notice::Held);
        let idle = self.is_idle.then_some(Notice::Idle);
        let suspended = self.is_suspended.then_some(Notice::Suspended);
        let leaving = self.leaving.clone().map(Notice::Leaving);
        let ended = self.ending.clone().map(Notice::Ended);
        waiting.into_iter().chain(held).chain(idle).chain(suspended).chain(leaving).chain(ended)
    }
}

/// Hears all that a participant tells, as it tells it: it must not wait for anything.
pub(crate) trait Listener: Send {
    /// Hears a notice.
    fn hear(&mut self, notice: &Notice);
}

/// The participant's end of the line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Arc<Mutex<Shared>>);

#[derive(Default)]
struct Shared {
    standing: Standing,
    queues: Vec<Arc<Queue>>,
    listener: Option<Box<dyn Listener>>,
    /// That of the operation under way.
    scope: Option<Arc<OperationScope>>,
    /// Why it leaves, where somebody or something has it leave.
    why: Option<Cow<'static, str>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("standing", &self.standing).finish_non_exhaustive()
    }
}

impl Line {
    /// Notes that the participant has left the line, if it does not own the contender any more with which it
    /// stood there. Answers whether that is so and was not known.
    pub(super) fn settle_waiting(&self, owns: impl Fn(&str) -> bool) -> bool {
        self.shared().standing.waiting.take_if(|waiting| !owns(waiting)).is_some()
    }

    pub(crate) fn tell(&self, notice: Notice) {
        let mut shared = self.shared();
        if shared.standing.ending.is_some() || shared.standing.knows(&notice) {
            return;
        }
        shared.standing.note(&notice);
        if let Some(listener) = &mut shared.listener {
            listener.hear(&notice);
        }
        if let Some((last, others)) = shared.queues.split_last() {
            others.iter().for_each(|queue| queue.put(notice.clone()));
            last.put(notice);
        }
    }

    /// Where the participant stands.
    pub(crate) fn standing(&self) -> Standing {
        let shared = self.shared();
        let is_blocked = shared.scope.as_ref().is_some_and(|scope| scope.is_waiting());
        Standing { is_blocked, ..shared.standing.clone() }
    }

    /// Notes why the participant leaves. Of several reasons the first one stays.
    pub(crate) fn leaves_because(&self, why: Cow<'static, str>) {
        self.shared().why.get_or_insert(why);
    }

    /// Why the participant leaves, where that has been noted.
    pub(crate) fn why(&self) -> Option<Cow<'static, str>> {
        self.shared().why.clone()
    }

    /// Notes that an operation is under way, until what this answers is dropped.
    pub(crate) fn under_way(&self, operation: &str, scope: &Arc<OperationScope>) -> UnderWay {
        let mut shared = self.shared();
        shared.standing.operation = Some(operation.to_owned());
        shared.standing.is_idle = false;
        shared.scope = Some(Arc::clone(scope));
        drop(shared);
        UnderWay(self.clone())
    }

    /// Has all that is told heard, from where the participant stands on. There is one listener.
    pub(crate) fn attach(&self, mut listener: Box<dyn Listener>) {
        let mut shared = self.shared();
        shared.standing.notices().for_each(|notice| listener.hear(&notice));
        shared.listener = Some(listener);
    }

    /// Somebody who follows the participant from where it stands on.
    pub(crate) fn follower(&self, seat: Weak<Seat>) -> Follower {
        let mut shared = self.shared();
        let queue = Arc::new(Queue::default());
        shared.standing.notices().for_each(|notice| queue.put(notice));
        shared.queues.push(Arc::clone(&queue));
        drop(shared);
        Follower { queue, line: Arc::downgrade(&self.0), seat }
    }

    /// Has something told, whatever becomes of the participant's task.
    pub(crate) fn last_word(&self, participant: Arc<str>, module: Module) -> LastWord {
        LastWord { line: self.clone(), participant, module }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Line);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut shared = self.0.shared();
        shared.standing.operation = None;
        shared.scope = None;
    }
}

/// What one follower has not read yet.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    notices: VecDeque<Notice>,
    dropped: u64,
    ended: bool,
}

impl Queue {
    fn put(&self, notice: Notice) {
        self.waiting().put(notice);
        self.arrived.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn put(&mut self, notice: Notice) {
        self.ended |= matches!(notice, Notice::Ended(_));
        let is_full = self.notices.len() >= MOST_WAITING;
        match &notice {
            Notice::Emitted { .. } if is_full => {
                self.dropped += 1;
                return;
            }
            Notice::Leaving(_) | Notice::Lost(_) | Notice::Ended(_) | Notice::Emitted { .. } => {}
            _ if is_full => self.make_room(),
            _ => {}
        }
        self.notices.push_back(notice);
    }

    /// Takes out the oldest notice that a follower can best do without: of a state that a newer one
    /// replaces, or else an event, or else what became of a claim. Never of a loss or the end, or
    /// that it is to end.
    fn make_room(&mut self) {
        let is_passing = |it: &Notice| {
            matches!(it, Notice::Waiting { .. } | Notice::Suspended | Notice::Resumed)
        };
        if let Some(stale) = self.notices.iter().position(is_passing) {
            self.notices.remove(stale);
            return;
        }
        let is_emitted = |it: &Notice| matches!(it, Notice::Emitted { .. });
        let is_of_a_claim =
            |it: &Notice| matches!(it, Notice::Held(_) | Notice::Released { .. } | Notice::Idle);
        let event = self.notices.iter().position(is_emitted);
        if let Some(missed) = event.or_else(|| self.notices.iter().position(is_of_a_claim)) {
            self.notices.remove(missed);
            self.dropped += 1;
        }
    }
}

/// Tells the followers of an end that nobody told, when it is dropped: a bug of the host must not
/// leave a command running under a claim that nobody keeps.
#[derive(Debug)]
pub(crate) struct LastWord {
    line: Line,
    participant: Arc<str>,
    module: Module,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        let fault = Fault::Abandoned { guest: in_words(&self.participant, &self.module) };
        self.line.tell(Notice::Ended(Ending::Failed(Arc::new(fault))));
    }
}

/// What a follower finds in its queue.
enum Oldest {
    Notice(Notice),
    NothingYet,
    NothingMore,
}

/// A follower's end of the line.
#[derive(Debug)]
pub struct Follower {
    queue: Arc<Queue>,
    line: Weak<Mutex<Shared>>,
    /// Of the participant, while that lives.
    seat: Weak<Seat>,
}

impl Follower {
    /// The next notice; none after [`Notice::Ended`].
    ///
    /// A [`Notice::Held`] that has waited here for so long that the claim may be gone, as where this
    /// process was stopped, is not told any more: the loss follows.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.oldest() {
                Oldest::Notice(Notice::Held(_)) if !self.is_live() => {}
                Oldest::Notice(notice) => return Some(notice),
                Oldest::NothingMore => return None,
                Oldest::NothingYet => self.queue.arrived.notified().await,
            }
        }
    }

    /// Takes the oldest notice out, and leaves the queue to others: whether a claim is live is asked without
    /// it.
    fn oldest(&self) -> Oldest {
        let mut waiting = self.queue.waiting();
        if let Some(notice) = waiting.notices.pop_front() {
            return Oldest::Notice(notice);
        }
        // A follower that keeps up needs no room kept, and there may be thousands of them.
        waiting.notices = VecDeque::new();
        if waiting.ended { Oldest::NothingMore } else { Oldest::NothingYet }
    }

    fn is_live(&self) -> bool {
        self.seat.upgrade().is_some_and(|seat| seat.is_live())
    }

    /// How many notices this follower has missed by being slow.
    pub fn dropped(&self) -> u64 {
        self.queue.waiting().dropped
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(shared) = self.line.upgrade() {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.queues.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::notice::Loss;
    use super::*;
    use crate::session::SessionLoss;

    fn emitted(number: usize) -> Notice {
        Notice::Emitted { event: number.to_string(), detail: Vec::new() }
    }

    #[tokio::test]
    async fn a_slow_follower_misses_events_and_old_states_but_never_the_loss() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        (0..MOST_WAITING + 10).for_each(|number| line.tell(emitted(number)));
        line.tell(Notice::Suspended);
        line.tell(Notice::Resumed);
        let loss = Loss::Session(SessionLoss::Expired);
        line.tell(Notice::Lost(loss.clone()));
        line.tell(Notice::Ended(Ending::Lost(loss)));
        line.tell(Notice::Suspended);
        let mut seen = Vec::new();
        while let Some(notice) = follower.next().await {
            seen.push(notice);
        }
        let tail = seen.split_off(seen.len() - 3);
        let [Notice::Resumed, Notice::Lost(loss), Notice::Ended(Ending::Lost(end))] = &*tail else {
            panic!("{tail:?}");
        };
        assert_eq!((loss.cause(), end.cause()), ("expired", "expired"));
        assert!(!seen.iter().any(|notice| matches!(notice, Notice::Suspended)), "{seen:?}");
        assert_eq!(follower.dropped(), 11);
    }

    #[tokio::test]
    async fn a_slow_follower_does_not_miss_what_became_of_a_claim_for_a_doubt() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        line.tell(Notice::Released { path: "/a".into() });
        (0..MOST_WAITING).for_each(|number| line.tell(emitted(number)));
        for _ in 0..3 {
            line.tell(Notice::Suspended);
            line.tell(Notice::Resumed);
        }
        assert!(matches!(follower.next().await, Some(Notice::Released { .. })));
        assert_eq!(follower.dropped(), 2, "one event had no room, and one made room for a doubt");
    }

    #[tokio::test]
    async fn each_follower_has_what_it_missed_to_itself() {
        let line = Line::default();
        let (mut quick, slow) = (line.follower(Weak::new()), line.follower(Weak::new()));
        for number in 0..MOST_WAITING + 10 {
            line.tell(emitted(number));
            assert!(matches!(quick.next().await, Some(Notice::Emitted { .. })));
        }
        assert_eq!((quick.dropped(), slow.dropped()), (0, 10));
        drop(slow);
        assert_eq!(line.shared().queues.len(), 1);
    }

    #[tokio::test]
    async fn who_comes_late_is_told_where_the_participant_stands() {
        let line = Line::default();
        line.tell(Notice::Waiting { path: "/a".into() });
        line.tell(Notice::Suspended);
        let mut late = line.follower(Weak::new());
        assert!(matches!(late.next().await, Some(Notice::Waiting { path }) if path == "/a"));
        assert!(matches!(late.next().await, Some(Notice::Suspended)));
        line.tell(Notice::Resumed);
        line.tell(Notice::Held(Held { path: "/a".into(), fence: 1 }));
        assert_eq!(line.standing().held.map(|held| held.fence), Some(1));
        line.tell(Notice::Leaving(Leaving { why: "asked to".into(), until: None }));
        let mut late = line.follower(Weak::new());
        // What it holds is not told here, where there is no session that could be relied on.
        assert!(matches!(late.next().await, Some(Notice::Leaving(it)) if it.why == "asked to"));
        line.tell(Notice::Released { path: "/a".into() });
        let standing = line.standing();
        assert!(standing.held.is_none() && standing.waiting.is_none() && !standing.is_suspended);
        line.tell(Notice::Ended(Ending::Left));
        let mut later = line.follower(Weak::new());
        assert!(matches!(later.next().await, Some(Notice::Ended(Ending::Left))));
        assert!(later.next().await.is_none());
    }

    #[test]
    fn who_has_held_a_claim_of_several_znodes_stands_in_line_with_none_of_them() {
        let line = Line::default();
        line.tell(Notice::Waiting { path: "/b".into() });
        line.tell(Notice::Held(Held { path: "/a".into(), fence: 1 }));
        line.tell(Notice::Released { path: "/a".into() });
        assert_eq!(line.standing().waiting, None);
    }

    #[test]
    fn a_place_in_line_is_left_when_its_contender_is_owned_no_more_and_once() {
        let line = Line::default();
        assert!(!line.settle_waiting(|_| false), "it stood in no line");
        line.tell(Notice::Waiting { path: "/a".into() });
        assert!(!line.settle_waiting(|path| path == "/a"));
        assert!(line.settle_waiting(|path| path != "/a"));
        assert!(!line.settle_waiting(|_| false));
    }

    #[tokio::test]
    async fn a_doubt_and_its_end_are_told_once() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        for notice in [Notice::Resumed, Notice::Suspended, Notice::Suspended, Notice::Resumed] {
            line.tell(notice);
        }
        line.tell(Notice::Ended(Ending::Left));
        let mut told = Vec::new();
        while let Some(notice) = follower.next().await {
            told.push(notice);
        }
        assert!(
            matches!(&*told, [Notice::Suspended, Notice::Resumed, Notice::Ended(_)]),
            "{told:?}"
        );
    }

    #[test]
    fn an_operation_is_under_way_until_it_is_over() {
        let line = Line::default();
        let under_way = line.under_way("acquire", &Arc::default());
        assert_eq!(line.standing().operation.as_deref(), Some("acquire"));
        drop(under_way);
        assert_eq!(line.standing().operation, None);
    }

    #[tokio::test]
    async fn what_is_held_is_not_told_when_the_session_may_be_gone() {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        line.tell(Notice::Waiting { path: "/a".into() });
        line.tell(Notice::Held(Held { path: "/a".into(), fence: 1 }));
        line.tell(Notice::Ended(Ending::Left));
        assert!(matches!(follower.next().await, Some(Notice::Waiting { path }) if path == "/a"));
        assert!(matches!(follower.next().await, Some(Notice::Ended(Ending::Left))));
        assert!(follower.next().await.is_none());
    }
}
