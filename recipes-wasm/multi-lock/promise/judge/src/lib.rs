//! What several locks at once promise.
//!
//! Each lock is judged as a lock: by a history in which there is no other (`lens`). What the locks have to
//! do with each other is judged by the history itself.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | A1 | `wholes` | somebody is told or answered that it holds other locks than all that it asked for |
//! | A2 | `wholes` | a release deletes the znodes of one grant in more than one txn |
//! | D1 | `waits` | some wait for each other, in a ring |
//! | M1 | `lock`, `wholes` | a grant's fence is not the `czxid` of the participant's own contender in the line of that lock |
//! | M2 | `lock` | the ensemble's log has two owners of one lock at once |
//! | M4 | `lock` | the fences of one lock do not strictly grow from owner to owner |
//! | M5 | `lock` | somebody believes to hold what has gone to the next, but for a pause and news under way |
//! | M6 | `lock` | somebody is granted a lock before another who came earlier and still stands in its line |
//! | M7 | `wholes`, `leftovers` | a contender outlives the wait that it was made for, or the release of its grant |
//! | M8 | `lock` | what callers saw of one lock is no mutex with growing fences, whatever the order in which it happened |
//! | W1 | `waits` | one that nobody is ahead of goes on waiting, or is turned away without a fault |
//! | W2 | `lock` | somebody is granted a lock though it was never first in the line of that lock |
//! | W3 | `waits` | `try-acquire` waits, or names a lock that nobody had |
//! | C1 | `lines` | `contenders` answers a line of that lock that stood so at no moment: with others in it, in another order, with another one first, or with another owner |
//! | H1 | `herd`, `polling` | one deletion wakes more than one contender, or one that waits asks the ensemble again and again |

mod lens;
mod lock;
mod polling;
mod waits;
mod wholes;

#[cfg(test)]
mod tests;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::people::{Call, Person};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each, herd, leftovers, lines};

use lens::Grants;

/// Several locks, first come first served in each.
const MULTI_LOCK: Promise = Promise {
    noun: "the lock",
    asks: &["acquire", "try-acquire"],
    waits: &["acquire"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of several locks at once.
#[derive(Debug)]
pub struct MultiLockJudge;

impl Judge for MultiLockJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("A1", "who is told that it holds locks has asked for these, and holds all of them"),
        ("A2", "the locks of one grant are given back at once"),
        ("D1", "nobody waits for somebody who waits for it"),
        ("M1", "a grant is the participant's own contender for that lock, by its czxid"),
        ("M2", "by the ensemble's log no two own a lock at once"),
        ("M4", "the fences of one lock strictly grow from owner to owner"),
        ("M5", "nobody believes to hold what has gone to the next"),
        ("M6", "first come, first served, in the line of each lock"),
        ("M7", "a contender goes with the wait that it was made for, and with its grant"),
        ("M8", "some order of the calls explains what callers saw of each lock"),
        ("W1", "one that nobody is ahead of is granted its locks, and nobody is turned away"),
        ("W2", "a wait succeeds only after the contender was first in line, for each lock"),
        ("W3", "an attempt does not wait, and names a lock that it could not have"),
        ("C1", "`contenders` answers the line of a lock, and who is first in it, as at one moment"),
        ("H1", "one release wakes one waiter of each lock, and a waiter does not poll"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(MultiLockJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &MULTI_LOCK);
        let grants = Grants::of(history);
        let mut found = Vec::new();
        lock::check_each(&case, &grants, &mut found);
        wholes::check_grants(&case, &grants, "A1", &mut found);
        wholes::check_answers(&case, "A1", "M1", &mut found);
        wholes::check_releases(&case, &grants, "A2", "M7", &mut found);
        waits::check_rings(&case, "D1", &mut found);
        waits::check_turns(&case, "W1", &mut found);
        waits::check_refusals(&case, &grants, "W1", &mut found);
        waits::check_attempts(&case, "W3", &mut found);
        leftovers::check(&case, "M7", &mut found);
        polling::check(&case, "H1", &mut found);
        herd::check(&case, "H1", &mut found);
        let line_of = |person: &Person<'_>, call: &Call<'_>| line_of(&case, person, call);
        lines::check_of(&case, "C1", "is-first", line_of, &mut found);
        first_of_each(found)
    }
}

/// The directory of the lock whose line a call asks for.
fn line_of(case: &Case<'_>, person: &Person<'_>, call: &Call<'_>) -> Option<String> {
    let name = case.arguments(call)?.get("name")?.as_str()?;
    Some([person.mount.trim_end_matches('/'), "/", name].concat())
}

/// The names that a call asks for, in their order.
fn asked<'a>(case: &Case<'a>, call: &Call<'_>) -> Vec<&'a str> {
    let names = case.arguments(call).and_then(|given| given.get("names")?.as_array());
    let mut names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

/// Whether those are names that can be asked for.
fn is_sound(names: &[&str]) -> bool {
    let are_segments =
        names.iter().all(|name| !matches!(*name, "" | "." | "..") && !name.contains('/'));
    let once = names.iter().zip(names.iter().skip(1)).all(|(one, next)| one != next);
    !names.is_empty() && are_segments && once
}

/// What a call was answered that granted something: a record for each lock.
fn granted(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().or_else(|| value.get("granted")?.as_array())
}

wok_judge::export!(MultiLockJudge);
