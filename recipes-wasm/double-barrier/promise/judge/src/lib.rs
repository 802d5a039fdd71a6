//! What a double barrier promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | D1 | `entering` | somebody enters though its round had never as many members at one moment as make one, or by the opening of another round |
//! | D2 | `leaving` | somebody leaves while another member of its round is there, or goes on waiting when all are gone |
//! | D3 | `crowds` | more enter a round than make one, or as many as make one wait and nobody enters |
//! | D4 | `burials` | who enters by a new generation leaves one behind that nobody is in any more |
//! | M7 | `leftovers` | a member outlives a call that ended without entering |
//! | H1 | `polling` | a member that waits asks the ensemble again and again |

mod burials;
mod crowds;
mod entering;
mod leaving;
mod leftovers;
mod polling;
mod rounds;

#[cfg(test)]
mod tests;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each, turns};

use rounds::Rounds;

/// A place inside.
const BARRIER: Promise = Promise {
    noun: "a place inside",
    asks: &["enter"],
    waits: &["enter"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of double barriers.
#[derive(Debug)]
pub struct BarrierJudge {
    /// How many make a round.
    size: usize,
}

impl Judge for BarrierJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        (
            "D1",
            "a member enters with as many members as make a round, and by no other round's opening",
        ),
        ("D2", "nobody leaves before all of its round have finished, and everybody does then"),
        ("D3", "no more enter a round than make one, and those who can make one do"),
        ("D4", "who makes a new generation and enters leaves none behind that nobody is in"),
        ("M7", "no member outlives a call that ended without entering"),
        ("H1", "a member that waits asks again only when a round opens or a member goes"),
    ];

    fn begin(config: &str) -> Result<Self, String> {
        let config: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
        let size = config.get("size").and_then(Value::as_u64);
        let size = size.and_then(|size| usize::try_from(size).ok());
        size.map(|size| BarrierJudge { size }).ok_or_else(|| format!("no size in {config}"))
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &BARRIER);
        let rounds = Rounds::of(&case);
        let mut found = Vec::new();
        entering::check(&case, &rounds, self.size, "D1", &mut found);
        leaving::check(&case, &rounds, "D2", &mut found);
        crowds::check(&case, &rounds, self.size, "D3", &mut found);
        turns::check_refusals(&case, "D3", &mut found);
        burials::check(&case, &rounds, "D4", &mut found);
        leftovers::check(&case, &rounds, "M7", &mut found);
        polling::check(&case, "H1", &mut found);
        first_of_each(found)
    }
}

wok_judge::export!(BarrierJudge);
