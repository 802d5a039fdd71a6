//! What a participant tells those who follow it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::guest::{Fault, Module, in_words, values};
use crate::session::{Held, Seat, SessionLoss};

/// Why a claim, or a participant that might have come to one, is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Loss {
    /// The session is over, or cannot be relied on any more.
    Session(SessionLoss),
    /// A znode of the claim was deleted by somebody else.
    Znode {
        /// Which.
        path: String,
    },
    /// The module failed while it held the claim, so the claim is given up.
    Fault(Arc<Fault>),
}

impl Loss {
    /// The reason in one word, for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Loss::Session(_) => "session",
            Loss::Znode { .. } => "znode-deleted",
            Loss::Fault(_) => "fault",
        }
    }

    /// What is behind the reason, in one word, for programs and for counting.
    pub fn cause(&self) -> &'static str {
        match self {
            Loss::Session(loss) => loss.kind(),
            Loss::Znode { .. } => "deleted",
            Loss::Fault(fault) => fault.kind(),
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Session(loss) => loss.fmt(f),
            Loss::Fault(fault) => fault.fmt(f),
            Loss::Znode { path } => write!(f, "{path} was deleted by another client"),
        }
    }
}

/// How a participant ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Ending {
    /// It was asked to.
    Left,
    /// It lost its claim, or its session.
    Lost(Loss),
    /// Its module failed.
    Failed(Arc<Fault>),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Left => f.write_str("it left"),
            Ending::Lost(loss) => write!(f, "lost: {loss}"),
            Ending::Failed(fault) => write!(f, "the module failed: {fault}"),
        }
    }
}

/// What a participant tells those who follow it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// Its contender znode exists: it stands in line.
    Waiting {
        /// The znode.
        path: String,
    },
    /// It holds a claim, or one more znode of its claim.
    Held(Held),
    /// It gave a claim up of its own will.
    Released {
        /// The claim's znode.
        path: String,
    },
    /// The connection is in doubt; what is held is still held.
    Suspended,
    /// The doubt is over.
    Resumed,
    /// The module speaks.
    Emitted {
        /// The event's name.
        event: String,
        /// Its details.
        detail: Vec<(String, String)>,
    },
    /// What was held is lost. Told once.
    Lost(Loss),
    /// The last notice; nothing of the participant is left in ZooKeeper, as far as can be known.
    Ended(Ending),
}

/// The details of an event as a JSON object. All are text, but for `fence`: a fencing token is a
/// number wherever it is told.
pub fn detail_as_json(detail: &[(String, String)]) -> Map<String, Value> {
    let value = |(key, text): &(String, String)| {
        let fence = text.parse().ok().filter(|_| key == "fence");
        (key.clone(), fence.map_or_else(|| Value::from(text.as_str()), values::unsigned))
    };
    detail.iter().map(value).collect()
}

/// Notices that wait for a slow reader at most. States take the place of older states, a module's
/// own events are dropped and counted, and neither a loss nor the end is ever dropped.
const MOST_WAITING: usize = 256;

#[derive(Debug, Default)]
struct Queue {
    notices: VecDeque<Notice>,
    dropped: u64,
    ended: bool,
}

/// The participant's end of a line to its follower.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

impl Line {
    pub(crate) fn tell(&self, notice: Notice) {
        let mut queue = self.queue();
        if queue.ended {
            return;
        }
        queue.ended = matches!(notice, Notice::Ended(_));
        let is_full = queue.notices.len() >= MOST_WAITING;
        match &notice {
            Notice::Emitted { .. } if is_full => {
                queue.dropped += 1;
                return;
            }
            Notice::Lost(_) | Notice::Ended(_) | Notice::Emitted { .. } => {}
            _ if is_full => {
                let is_state = |it: &Notice| {
                    !matches!(it, Notice::Lost(_) | Notice::Ended(_) | Notice::Emitted { .. })
                };
                if let Some(stale) = queue.notices.iter().position(is_state) {
                    queue.notices.remove(stale);
                } else if queue.notices.pop_front().is_some() {
                    queue.dropped += 1;
                }
            }
            _ => {}
        }
        queue.notices.push_back(notice);
        drop(queue);
        self.0.arrived.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has something told, whatever becomes of the participant's task.
    pub(crate) fn last_word(&self, participant: Arc<str>, module: Module) -> LastWord {
        LastWord { line: self.clone(), participant, module }
    }

    pub(crate) fn follower(&self, seat: Weak<Seat>) -> Follower {
        Follower { line: self.clone(), seat }
    }
}

/// Tells the follower of an end that nobody told, when it is dropped: a bug of the host must not
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

/// The follower's end.
#[derive(Debug)]
pub struct Follower {
    line: Line,
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
            {
                let mut queue = self.line.queue();
                while let Some(notice) = queue.notices.pop_front() {
                    if !matches!(notice, Notice::Held(_)) || self.is_live() {
                        return Some(notice);
                    }
                }
                // A follower that keeps up needs no room kept, and there may be thousands of them.
                queue.notices = VecDeque::new();
                if queue.ended {
                    return None;
                }
            }
            self.line.0.arrived.notified().await;
        }
    }

    fn is_live(&self) -> bool {
        self.seat.upgrade().is_some_and(|seat| seat.is_live())
    }

    /// How many notices a slow follower has missed.
    pub fn dropped(&self) -> u64 {
        self.line.queue().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_fence_is_a_number_and_other_details_are_text() {
        let detail = [("fence", "12"), ("path", "/a"), ("count", "3"), ("owner", "7")];
        let detail = detail.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let json = Value::Object(detail_as_json(&detail));
        assert_eq!(
            json,
            serde_json::json!({ "fence": 12, "path": "/a", "count": "3", "owner": "7" })
        );
        for (text, told) in [
            ("9007199254740992", serde_json::json!(9_007_199_254_740_992_u64)),
            ("9007199254740993", serde_json::json!("9007199254740993")),
            ("none", serde_json::json!("none")),
        ] {
            let json = detail_as_json(&[("fence".to_owned(), text.to_owned())]);
            assert_eq!(json.get("fence"), Some(&told));
        }
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
