//! What a count-down latch promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | A2 | `opening` | a wait is answered before as many ids as make the latch open were asked to be counted, and were counted |
//! | C1 | `opening` | somebody waits on at a latch that is open |
//! | C2 | `counts` | what remains is not what the counted ids leave, or an id is counted that nobody has asked for, or not any more |
//! | C3 | `answers` | a caller is told that so many remain, and that was not so at any moment of the call; or an id is not counted that was acknowledged |
//! | C4 | `turns` | a call is refused and no fault was in its way |
//! | H1 | `polling` | a participant asks the ensemble again and again, or a count wakes it |
//!
//! The ensemble's own log says which ids are counted: each of them has a child.

mod answers;
mod counts;
mod opening;
mod polling;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::people::{Call, Person};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each, turns};

use counts::Counts;

/// Nobody holds a latch, and nobody is turned away from it.
const LATCH: Promise = Promise {
    noun: "the latch",
    asks: &[],
    waits: &["count-down", "wait", "remaining"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of latches.
#[derive(Debug)]
pub struct LatchJudge {
    /// How many ids have to be counted.
    count: usize,
}

impl Judge for LatchJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("A2", "no wait is answered before the latch is open, and it never closes again"),
        ("C1", "who waits goes on when it is open"),
        ("C2", "each id is counted once, and only if somebody asks for it"),
        ("C3", "what a caller is told to remain did remain at some moment of the call"),
        ("C4", "a call is refused only where a fault was in its way"),
        ("H1", "a count wakes nobody but the last, and nobody asks again and again"),
    ];

    fn begin(config: &str) -> Result<Self, String> {
        let config: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
        let count = config.get("count").and_then(Value::as_u64);
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.map(|count| LatchJudge { count }).ok_or_else(|| format!("no count in {config}"))
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &LATCH);
        let mut found = Vec::new();
        for (mount, calls) in by_mount(&case) {
            let counts = Counts::of(history, mount, self.count);
            opening::check_passes(&calls, &counts, "A2", &mut found);
            opening::check_waits(&case, &calls, &counts, "C1", &mut found);
            counts::check(&calls, &counts, "C2", &mut found);
            answers::check(&calls, &counts, "C3", &mut found);
            polling::check(&case, &calls, &counts, "H1", &mut found);
        }
        turns::check_refusals(&case, "C4", &mut found);
        first_of_each(found)
    }
}

/// A call, whose it is, and the id that it names.
struct Made<'c, 'a> {
    person: &'c Person<'a>,
    call: &'c Call<'a>,
    id: Option<&'a str>,
}

/// The calls at each latch.
fn by_mount<'c, 'a>(case: &'c Case<'a>) -> BTreeMap<&'a str, Vec<Made<'c, 'a>>> {
    let mut mounts: BTreeMap<_, Vec<_>> =
        case.people.persons().map(|person| (person.mount, Vec::new())).collect();
    for call in case.people.calls() {
        if let Some(person) = case.people.person(call.who) {
            let id = case.arguments(call).and_then(|given| given.get("id")?.as_str());
            mounts.entry(person.mount).or_default().push(Made { person, call, id });
        }
    }
    mounts
}

wok_judge::export!(LatchJudge);
