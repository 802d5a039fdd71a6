//! What a participant tells those who follow it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::clock::Boottime;
use crate::guest::{Fault, values};
use crate::session::{Held, SessionLoss};

/// Why a claim, or a participant that might have come to one, is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Loss {
    /// The session is over, or cannot be relied on any more.
    Session(SessionLoss),
    /// A znode of the claim was deleted, and by no operation of the participant that was waited for.
    Znode {
        /// Which.
        path: String,
        /// Whether an operation that nobody waited for may have deleted it, and not another client.
        may_be_own: bool,
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
            Loss::Znode { path, may_be_own: false } => {
                write!(f, "{path} was deleted by another client")
            }
            Loss::Znode { path, may_be_own: true } => write!(
                f,
                "{path} is gone: an operation of this participant that nobody waited for has deleted it, or \
                 another client"
            ),
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
    /// It gives a claim up of its own will: nothing may be done under the claim any more. The znode may still
    /// stand, for a release is told before it is sent. [`Ended`](Notice::Ended) says that it is gone, and so
    /// does the answer to the operation that gave the claim up. A claim that could not be given up is told as
    /// [`Held`](Notice::Held) again.
    Released {
        /// The claim's znode.
        path: String,
    },
    /// It holds nothing, and its module waits for nothing: nothing comes of the participant any more unless an
    /// operation is called.
    Idle,
    /// It is to end, and keeps its claim until nothing depends on the claim any more.
    Leaving(Leaving),
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
    /// What was held is lost. Told once, but a loss by the component's failure may be followed by another:
    /// what still depends on the claim hears of the claim's end.
    Lost(Loss),
    /// The last notice; nothing of the participant is left in ZooKeeper, as far as can be known.
    Ended(Ending),
}

/// That a participant is to end, and keeps its claim for a while.
#[derive(Debug, Clone)]
pub struct Leaving {
    /// Why.
    pub why: String,
    /// Until when the claim may be relied on at most: nobody is told a later time any more. None if nobody
    /// was told any.
    pub until: Option<Boottime>,
}

/// Details of events that are numbers, as they are wherever else they are told: fencing tokens, and what
/// orders two changes. As texts, the later of two may be the lower one.
const NUMBERS: [&str; 2] = ["fence", "revision"];

/// The details of an event as a JSON object. All are text but for these numbers.
pub fn detail_as_json(detail: &[(String, String)]) -> Map<String, Value> {
    let value = |(key, text): &(String, String)| {
        let number = text.parse().ok().filter(|_| NUMBERS.contains(&key.as_str()));
        (key.clone(), number.map_or_else(|| Value::from(text.as_str()), values::unsigned))
    };
    detail.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_and_a_revision_are_numbers_and_other_details_are_text() {
        let detail = [("fence", "12"), ("revision", "99"), ("count", "3"), ("owner", "7")];
        let detail = detail.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let json = Value::Object(detail_as_json(&detail));
        assert_eq!(
            json,
            serde_json::json!({ "fence": 12, "revision": 99, "count": "3", "owner": "7" })
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
}
