//! What a read-write lock promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | M1 | `grants` | a grant's fence is not the `czxid` of the participant's own contender, or its turn was over before it was asked for |
//! | R1 | `exclusion`, `beliefs` | the ensemble's log has a writer beside another owner, or somebody believes to hold what has gone to one that it cannot hold beside |
//! | R2 | `modes` | a reader is made a writer or stands in line as one, a downgrade leaves the writer's place in line, or a grant is for something else than was asked for |
//! | M3 | `exclusion` | the guarded resource takes a lower fence after a higher one, refuses one that is not lower, or is shown one that was never granted |
//! | M4 | `grants` | a fence is not higher than those of all before that it excludes |
//! | M5 | `beliefs` | somebody goes on believing to hold what is long gone |
//! | M6 | `grants` | somebody is granted before another who came earlier, is in its way and still stands in line: so no writer starves |
//! | M7 | `leftovers` | a contender outlives the wait that it was made for |
//! | W1 | `turns` | a waiter whose turn it is stays blocked, or one is turned away without a fault |
//! | W2 | `grants` | a wait succeeds though its condition never held, or is answered with a fence that is not held |
//! | V1 | `revoking` | one participant deletes another's contender that it has not asked to give way, or that nobody may force |
//! | V2 | `revoking` | a holder is asked to give way and is not told, the request is lost in a downgrade, or one that is told and consents at once keeps the lock |
//! | V3 | `revoking` | one that was asked is forced before its time |
//! | V4 | `revoking` | a request leaves no word of whose the znode is |
//! | V5 | `revoking` | a `revoke` is answered what is not so |
//! | C1 | `lines` | `contenders` answers a line that stood so at no moment: with others in it, in another order, with other holders, with another owner, or for something else |
//! | H1 | `herd`, `polling` | one deletion wakes more than the readers that wait for a writer or one writer, or one that waits asks the ensemble again and again |

mod modes;

#[cfg(test)]
mod tests;

use wok_judge::history::Entry;
use wok_judge::people::Call;
use wok_judge::revoking::Revoking;
use wok_judge::truth::Truth;
use wok_judge::{
    Case, Judge, Promise, Stay, Violation, beliefs, exclusion, first_of_each, grants, herd,
    leftovers, lines, polling, turns,
};

/// Many readers or one writer, first come first served.
const LOCK: Promise = Promise {
    noun: "the lock",
    asks: &["acquire-read", "acquire-write", "try-acquire-read", "try-acquire-write", "downgrade"],
    waits: &["acquire-read", "acquire-write"],
    stay: Stay::WithCall,
    events: &[],
    looks: &["revoke"],
};

/// What the names of readers have before the counter, in both formats.
const READERS: &[&str] = &["__READ__", "__rlock__"];

/// The judge of read-write locks.
#[derive(Debug)]
pub struct ReadWriteLockJudge;

impl Judge for ReadWriteLockJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("M1", "a grant is the participant's own contender, by its czxid, in its turn in time"),
        ("R1", "no writer owns beside anybody, by the ensemble's log and by what is believed"),
        (
            "R2",
            "a downgrade keeps the place in line, an upgrade is refused at once, and a grant is for what was asked",
        ),
        ("M3", "the guarded resource takes no fence that is lower than one before"),
        ("M4", "a fence is higher than those of all before that it excludes"),
        ("M5", "nobody goes on believing to hold what is long gone"),
        ("M6", "first come, first served: readers do not overtake a writer that waits"),
        ("M7", "a contender goes with the wait that it was made for"),
        (
            "W1",
            "a waiter whose turn it is gets the lock, and nobody is turned away without a fault",
        ),
        ("W2", "a wait succeeds only after it was the contender's turn"),
        ("V1", "who holds gives way by its own consent, but for the force that was agreed on"),
        (
            "V2",
            "a holder that is asked to give way is told, also if it reads on meanwhile, and does so if it consents at once",
        ),
        ("V3", "nobody is forced to give way before its time"),
        ("V4", "who is asked to give way is still named by its znode"),
        ("V5", "what a request to give way is answered is so"),
        (
            "C1",
            "`contenders` answers the line, its order and its holders as they were at one moment",
        ),
        ("H1", "one release wakes the readers that wait for it or one writer, and nobody polls"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(ReadWriteLockJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of_kinds(history, READERS);
        let case = Case::of(history, &truth, &LOCK);
        let mut found = Vec::new();
        grants::check_validity(&case, "M1", &mut found);
        exclusion::check_log(&case, "R1", &mut found);
        exclusion::check_resource(&case, "M3", &mut found);
        grants::check_growth(&case, "M4", &mut found);
        grants::check_order(&case, "M6", &mut found);
        grants::check_condition(&case, "W2", &mut found);
        beliefs::check(&case, "R1", "M5", &mut found);
        modes::check_upgrades(&case, "R2", &mut found);
        modes::check_downgrades(&case, "R2", &mut found);
        modes::check_grants(&case, "R2", &mut found);
        turns::check_turns(&case, "W1", &mut found);
        let revoking = Revoking::of(&case);
        let is_refused = |call: &Call<'_>| modes::crosses(&case, call) || revoking.was_forced(call);
        turns::check_refusals_but(&case, "W1", is_refused, &mut found);
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

wok_judge::export!(ReadWriteLockJudge);
