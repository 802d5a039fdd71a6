//! What a queue promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | Q1 | `puts`, `takes` | an acknowledged put is not in the queue as it was put in, or somebody takes what nobody has put in |
//! | Q2 | `takes` | an item that was removed at its taking is told to somebody else than the one who took it, or to nobody though that one was answered |
//! | Q3 | `takes`, `ends` | an item is told without a claim of its own, with a wrong number of attempts, is removed by somebody else than the one who has it, or stays though it was acknowledged |
//! | Q4 | `order`, `takes` | an item is taken while an older one is there that nobody has ever taken |
//! | Q5 | `puts` | a put that is not acknowledged puts in more than once, or a part; or somebody is answered that nobody knows |
//! | Q6 | `ends` | an item is a dead letter before its time, or without being kept, or is taken after its time |
//! | Q7 | `looks` | `peek` answers an item that nobody could take at any moment of the call, answers none though one was there all the while, or passes over an older one that was; or what is told of the item is not so |
//! | Q8 | `looks` | `length` answers fewer or more items, taken items or dead letters than there were at any moment of the call |
//! | Q9 | `takes` | a call takes more items than it asks for at most |
//! | M5 | `beliefs` | somebody goes on believing to hold what is long gone, or acts on it |
//! | M7 | `leftovers` | a place or a claim outlives the call that it was made for, or what ends it |
//! | W1 | `waits` | somebody waits while there is an item that nobody has, or is turned away where it would have to wait |
//! | H1 | `waits`, `herd` | anybody but the first in line watches the items, or one that waits asks again and again |
//!
//! `order` is here. The other passes are those of `wok_judge::queue`, which both stock queues share: the
//! `KIND` says what this one has of its own.

mod order;

#[cfg(test)]
mod tests;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::queue::log::Log;
use wok_judge::queue::{self, Kind, Peek};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each};

/// Items.
const QUEUE: Promise = Promise {
    noun: "its items",
    asks: &["take", "take-many"],
    waits: &["take", "take-many"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The oldest item comes first.
const KIND: Kind = Kind {
    id: "Q4",
    earlier: "is older",
    later: "a younger",
    priority: None,
    peek: Peek::Unconfirmed,
};

/// The judge of queues.
#[derive(Debug)]
pub struct QueueJudge {
    /// How often an item is taken before it is a dead letter.
    max_attempts: Option<u64>,
}

impl Judge for QueueJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("Q1", "what is put in is in the queue as it was, until somebody has taken it"),
        ("Q2", "an item that is removed when it is taken is told to the one who took it"),
        (
            "Q3",
            "an item that is claimed is its consumer's, and goes by its consumer's word alone, for good",
        ),
        ("Q4", "nothing is taken while something older is there that nobody has ever taken"),
        ("Q5", "a put that is not acknowledged is in the queue once or not at all"),
        ("Q6", "an item that was taken as often as it may be is kept as a dead letter"),
        ("Q7", "`peek` answers the oldest item that could be taken, or none if there was none"),
        ("Q8", "`length` answers how much was in the queue at a moment of the call"),
        ("Q9", "a call takes as many items as it asks for at most"),
        ("M5", "nobody goes on believing to hold what is long gone"),
        ("M7", "a place in line goes with its wait, and a claim with what ends it"),
        (
            "W1",
            "nobody waits while there is an item that nobody has, or is turned away without a fault",
        ),
        ("H1", "an item that comes wakes the first in line, and nobody else"),
    ];

    fn begin(config: &str) -> Result<Self, String> {
        let config: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
        Ok(QueueJudge { max_attempts: config.get("max-attempts").and_then(Value::as_u64) })
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &QUEUE);
        let log = Log::of(&case, &KIND);
        let mut found = Vec::new();
        queue::check(&case, &log, self.max_attempts, &mut found);
        order::check(&case, &log, &mut found);
        first_of_each(found)
    }
}

wok_judge::export!(QueueJudge);
