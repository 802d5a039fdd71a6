//! What a semaphore promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | P2 | `permits` | leases are granted so that there are more of them than permits at that zxid, or other than as many as were asked for, also where they are answered once more, or by a txn that changes the number of permits |
//! | P3 | `permits` | somebody is granted permits whose settings say another number of them than was ever stored while it lived |
//! | P4 | `answers` | `available` tells what never was so, `resize` is answered and nothing is stored, or the number changes without a `resize` |
//! | M1 | `grants` | a grant's fence is not the `czxid` of the participant's own leases, or its answer is none that it was told |
//! | M5 | `beliefs` | somebody goes on believing to hold what is long gone, or acts on it |
//! | M6 | `permits` | leases are created by somebody who is not the first in the queue |
//! | M7 | `leftovers` | a place or a lease outlives the call that it was made for, or its release |
//! | W1 | `turns` | the first in the queue stays blocked though enough permits are free, or one is turned away without a reason |
//! | C1 | `contenders` | `contenders` answers leases or a queue that were so at no moment, the queue as of before the leases, or another owner |
//! | H1 | `herd`, `crowd` | the deletion of a place wakes more than one that waits, somebody who is not the first in the queue looks at the leases, or one that waits asks the ensemble again and again |

mod answers;
mod contenders;
mod crowd;
mod grants;
mod leftovers;
mod log;
mod permits;
mod turns;

#[cfg(test)]
mod tests;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::people::Call;
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, beliefs, first_of_each, herd};

use log::Semaphores;

/// Some of the permits.
const SEMAPHORE: Promise = Promise {
    noun: "its permits",
    asks: &["acquire"],
    waits: &["acquire"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// Leases are held beside each other.
const LEASES: &[&str] = &["-lease-"];

/// The judge of semaphores.
#[derive(Debug)]
pub struct SemaphoreJudge {
    /// How many permits the settings say that there are.
    stated: Option<u64>,
}

impl Judge for SemaphoreJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        (
            "P2",
            "leases are granted as many as were asked for, and never more than there are permits",
        ),
        ("P3", "nobody is granted permits whose settings say another number of them"),
        (
            "P4",
            "what `available` tells was so at one moment, and what `resize` asks for is stored and stays",
        ),
        ("M1", "a grant is the participant's own leases, by their czxid"),
        ("M5", "nobody goes on believing to hold what is long gone"),
        ("M6", "first come, first served: only the first in the queue is granted permits"),
        (
            "M7",
            "a place goes with the wait that it was made for, and leases when they are given back",
        ),
        (
            "W1",
            "the first in the queue gets its permits once they are free, or there are more of them",
        ),
        ("C1", "`contenders` answers the leases as they were, and behind them the queue"),
        (
            "H1",
            "one that goes wakes one waiter, and only the first in the queue looks at the leases",
        ),
    ];

    fn begin(config: &str) -> Result<Self, String> {
        let config: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
        Ok(SemaphoreJudge { stated: config.get("permits").and_then(Value::as_u64) })
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of_kinds(history, LEASES);
        let case = Case::of(history, &truth, &SEMAPHORE);
        let semaphores = Semaphores::of(&case);
        let mut found = Vec::new();
        permits::check_numbers(&case, &semaphores, "P2", &mut found);
        permits::check_answers(&case, &semaphores, "P2", &mut found);
        permits::check_settings(&case, &semaphores, self.stated, "P3", &mut found);
        answers::check(&case, &semaphores, "P4", &mut found);
        answers::check_writes(&case, &semaphores, "P4", &mut found);
        permits::check_order(&case, &semaphores, "M6", &mut found);
        grants::check(&case, &semaphores, "M1", &mut found);
        beliefs::check(&case, "M5", "M5", &mut found);
        turns::check_waits(&case, &semaphores, "W1", &mut found);
        turns::check_refusals(&case, &semaphores, self.stated, "W1", &mut found);
        leftovers::check(&case, &semaphores, "M7", &mut found);
        wok_judge::leftovers::check(&case, "M7", &mut found);
        contenders::check(&case, "C1", &mut found);
        herd::check(&case, "H1", &mut found);
        crowd::check(&case, "H1", &mut found);
        first_of_each(found)
    }
}

/// How many permits a call of `acquire` asks for.
fn wanted(case: &Case<'_>, call: &Call<'_>) -> u64 {
    case.arguments(call).and_then(|given| given.get("permits")?.as_u64()).unwrap_or(1)
}

wok_judge::export!(SemaphoreJudge);
