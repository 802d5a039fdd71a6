//! What a lock promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | M1 | `grants` | a grant's fence is not the `czxid` of the participant's own contender, or that was first in line only before it was asked for |
//! | M2 | `exclusion` | the ensemble's log has two owners at once: one becomes first while the one before is still there |
//! | M3 | `exclusion` | the guarded resource takes a lower fence after a higher one, refuses one that is not lower, or is shown one that was never granted |
//! | M4 | `grants` | fences do not strictly grow from owner to owner |
//! | M5 | `beliefs` | somebody believes to hold what has gone to the next, but for a pause and news under way |
//! | M6 | `grants` | somebody is granted before another who came earlier and still stands in line |
//! | M7 | `leftovers` | a contender outlives the wait that it was made for |
//! | M8 | `linear` | what callers saw is no mutex with growing fences, whatever the order in which it happened |
//! | W1 | `turns` | a waiter whose turn it is stays blocked, or one is turned away without a fault |
//! | W2 | `grants` | a wait succeeds though its condition never held, or is answered with a fence that is not held |
//! | V1 | `revoking` | one participant deletes another's contender that it has not asked to give way, or that nobody may force |
//! | V2 | `revoking` | a holder is asked to give way and is not told, or is told, consents at once and keeps the lock |
//! | V3 | `revoking` | one that was asked is forced before its time |
//! | V4 | `revoking` | a request leaves no word of whose the znode is |
//! | V5 | `revoking` | a `revoke` is answered what is not so |
//! | C1 | `lines` | `contenders` answers a line that stood so at no moment: with others in it, in another order, with other holders, or with another owner |
//! | H1 | `herd`, `polling` | one deletion wakes more than one contender, or one that waits asks the ensemble again and again |

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use wok_judge::history::Entry;
use wok_judge::revoking::Revoking;
use wok_judge::truth::Truth;
use wok_judge::{
    Case, Judge, Promise, Stay, Violation, beliefs, exclusion, first_of_each, grants, herd,
    leftovers, linear, lines, polling, turns,
};

/// Mutual exclusion, first come first served.
const LOCK: Promise = Promise {
    noun: "the lock",
    asks: &["acquire", "try-acquire"],
    waits: &["acquire"],
    stay: Stay::WithCall,
    events: &[],
    looks: &["revoke"],
};

/// The judge of locks.
#[derive(Debug)]
pub struct LockJudge;

impl Judge for LockJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("M1", "a grant is the participant's own contender, by its czxid, first in line in time"),
        ("M2", "by the ensemble's log no two own the lock at once"),
        ("M3", "the guarded resource takes no fence that is lower than one before"),
        ("M4", "fences strictly grow from owner to owner"),
        ("M5", "nobody believes to hold what has gone to the next"),
        ("M6", "first come, first served"),
        ("M7", "a contender goes with the wait that it was made for"),
        ("M8", "some order of the calls explains what callers saw of a mutex with growing fences"),
        (
            "W1",
            "a waiter whose turn it is gets the lock, and nobody is turned away without a fault",
        ),
        ("W2", "a wait succeeds only after the contender was first in line"),
        ("V1", "who holds gives way by its own consent, but for the force that was agreed on"),
        ("V2", "a holder that is asked to give way is told, and does so if it consents at once"),
        ("V3", "nobody is forced to give way before its time"),
        ("V4", "who is asked to give way is still named by its znode"),
        ("V5", "what a request to give way is answered is so"),
        (
            "C1",
            "`contenders` answers the line, its order and its holders as they were at one moment",
        ),
        ("H1", "one release wakes one waiter, and a waiter does not poll"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(LockJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &LOCK);
        let mut found = Vec::new();
        grants::check_validity(&case, "M1", &mut found);
        exclusion::check_log(&case, "M2", &mut found);
        exclusion::check_resource(&case, "M3", &mut found);
        grants::check_growth(&case, "M4", &mut found);
        grants::check_order(&case, "M6", &mut found);
        grants::check_condition(&case, "W2", &mut found);
        // A second opinion is asked for where the first is that all is well.
        if found.is_empty() {
            linear::check(&case, "M8", &mut found);
        }
        beliefs::check(&case, "M5", "M5", &mut found);
        turns::check_turns(&case, "W1", &mut found);
        let revoking = Revoking::of(&case);
        turns::check_refusals_but(&case, "W1", |call| revoking.was_forced(call), &mut found);
        revoking.check_consent("V1", &mut found);
        revoking.check_told("V2", &mut found);
        revoking.check_gives_way("V2", &mut found);
        revoking.check_force("V3", &mut found);
        revoking.check_owners("V4", &mut found);
        revoking.check_answers("V5", &mut found);
        lines::check(&case, "C1", &mut found);
        polling::check(&case, "H1", &mut found);
        herd::check(&case, "H1", &mut found);
        leftovers::check(&case, "M7", &mut found);
        first_of_each(found)
    }
}

wok_judge::export!(LockJudge);
