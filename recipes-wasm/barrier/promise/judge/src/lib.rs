//! What a barrier promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | B1 | `passing` | a wait is answered though the barrier was up from its beginning to its end |
//! | B2 | `passing` | somebody who waits when the barrier is lowered goes on waiting |
//! | B3 | `answers` | what `raise` or `lower` answers was not so at any moment of the call |
//! | B4 | `effects` | the barrier changes and nobody has asked for it, or one `lower` lowers it twice |
//! | B5 | `turns` | a call is refused and no fault was in its way |
//! | H1 | `polling` | a participant asks the ensemble again and again |
//!
//! The ensemble's own log says when the barrier was up: while its znode was there.

mod answers;
mod effects;
mod passing;
mod polling;
mod states;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use wok_judge::history::Entry;
use wok_judge::people::{Call, Person};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each, turns};

use states::States;

/// Nobody holds a barrier, and nobody is turned away from it.
const BARRIER: Promise = Promise {
    noun: "the barrier",
    asks: &[],
    waits: &["raise", "wait", "lower"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of barriers.
#[derive(Debug)]
pub struct BarrierJudge;

impl Judge for BarrierJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("B1", "nobody passes a barrier that is up from the beginning of the wait to its end"),
        ("B2", "who waits when it is lowered passes, also if it is raised again at once"),
        ("B3", "what a raise or a lower is answered was so at some moment of the call"),
        ("B4", "it changes only where somebody asks for it, and one lower lowers it once"),
        ("B5", "a call is refused only where a fault was in its way"),
        ("H1", "a participant asks again only when the barrier has changed"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(BarrierJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &BARRIER);
        let mut found = Vec::new();
        for (mount, calls) in by_mount(&case) {
            let states = States::of(history, mount);
            passing::check_passes(&calls, &states, "B1", &mut found);
            passing::check_openings(&case, &calls, &states, "B2", &mut found);
            answers::check(&calls, &states, "B3", &mut found);
            effects::check(&calls, &states, "B4", &mut found);
            polling::check(&case, &calls, &states, "H1", &mut found);
        }
        turns::check_refusals(&case, "B5", &mut found);
        first_of_each(found)
    }
}

/// A call, and whose it is.
type Made<'c, 'a> = (&'c Person<'a>, &'c Call<'a>);

/// The calls of each barrier.
fn by_mount<'c, 'a>(case: &'c Case<'a>) -> BTreeMap<&'a str, Vec<Made<'c, 'a>>> {
    let mut mounts: BTreeMap<_, Vec<_>> =
        case.people.persons().map(|person| (person.mount, Vec::new())).collect();
    for call in case.people.calls() {
        if let Some(person) = case.people.person(call.who) {
            mounts.entry(person.mount).or_default().push((person, call));
        }
    }
    mounts
}

wok_judge::export!(BarrierJudge);
