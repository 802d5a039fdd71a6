//! What a counter promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | A1 | `effects` | a change that was acknowledged is not in the counter's history, or is there twice; or the counter changed and nobody had asked for it |
//! | A2 | `answers` | a comparison answers that the value differs, and it did not differ during the call |
//! | A3 | `answers` | a reader is answered a value that the counter did not have, or not any more |
//! | A4 | `answers` | a call is refused though its sum fits into 64 bits, or for another reason without a fault |
//!
//! The ensemble's own log has every value that the counter ever had, in the order in which it had them.
//! A call that was acknowledged is one change of that log, so the order of the changes is the order
//! that explains the answers. What the published sum says follows: the last value is the sum of what
//! was acknowledged and of some of what was not.

mod answers;
mod calls;
mod effects;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use wok_judge::faults::Faults;
use wok_judge::history::Entry;
use wok_judge::truth::Truth;
use wok_judge::{Judge, Violation, first_of_each};

use calls::Call;
use values::Values;

/// The judge of counters.
#[derive(Debug)]
pub struct CounterJudge;

impl Judge for CounterJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("A1", "what is acknowledged is in the counter exactly once, and nothing else changes it"),
        ("A2", "a comparison differs only from a value that the counter had during the call"),
        (
            "A3",
            "a reader is shown a value that the counter had, and never an older one than before",
        ),
        ("A4", "a call is refused only where its sum does not fit, or a fault was in its way"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(CounterJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let calls = calls::of(history);
        let faults = Faults::of(history);
        let longest_timeout_us = Truth::of(history).longest_timeout_us();
        let mounts: BTreeSet<_> = calls.iter().map(|call| call.mount).collect();
        let mut found = Vec::new();
        for mount in mounts {
            let calls: Vec<&Call<'_>> = calls.iter().filter(|call| call.mount == mount).collect();
            let values = Values::of(history, mount, &mut found);
            effects::check(&calls, &values, "A1", &mut found);
            answers::check_comparisons(&calls, &values, "A2", &mut found);
            answers::check_reads(&calls, &values, history, longest_timeout_us, "A3", &mut found);
            answers::check_refusals(&calls, &values, &faults, longest_timeout_us, "A4", &mut found);
        }
        first_of_each(found)
    }
}

wok_judge::export!(CounterJudge);
