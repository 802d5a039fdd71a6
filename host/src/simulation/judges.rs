//! Judges of a recorded run: which of the promises did it break?
//!
//! What a recipe promises, its own judge says: a component that stands beside it, and is fed the history
//! after the run. What is here holds for every recipe, whatever it is for.
//!
//! | id | judge | broken if |
//! |---|---|---|
//! | M5 | `claims` | a claim that is gone is held on to, or something is done in its name, or its loss is told twice |
//! | M7 | `leftovers` | a contender outlives its request, or one request has two |
//! | Q1 | `quorum` | somebody is granted a claim, or acts on one, though the newest txn of its session is long ago |
//! | V1 | `consent` | an ephemeral znode is deleted by another session than its own; left to a recipe's judge that names V1 |
//! | W1 | `blocked` | any call at all stays without an answer |
//! | H1 | `wok_judge::herd` | one deletion wakes more than one contender; left to a recipe's judge that names H1 |
//! | X1 | `isolation` | a component reaches outside its mount |
//! | X2 | `leftovers` | a participant acts after its end, or leaves a watch behind |
//! | L1 | `limits` | a component traps, uses up what it may, or does not end when it is cancelled |
//! | S1 | `watches` | a watch event has no cause, comes twice, or comes in the wrong order |

mod blocked;
mod claims;
mod consent;
mod feed;
mod isolation;
mod leftovers;
mod limits;
mod quorum;
mod watches;

#[cfg(test)]
mod tests;

use wok_judge::truth::Truth;
use wok_judge::{Case, Promise, first_of_each, herd};

pub use wok_judge::Violation;

use crate::guest::{
    CompileCache, Interface, Judge, JudgeError, carried_judge, describes, own_name_of,
};
use crate::modules::{self, ModuleSource};
use crate::simulation::history::Entry;

/// Invariants that a recipe's own judge may know more of: who looks on and who waits, and whose znode may
/// be deleted by others, as its users have agreed.
const HERD: &str = "H1";
const CONSENT: &str = "V1";

/// The judge of what a module promises: the one that it carries along, or else that of the stock recipe
/// whose interface it exports; none if there is neither. A fork keeps the interface's own name and its
/// operations, whatever it calls its package, and with them the promise. An interface of the same name
/// with other operations is another one.
///
/// # Errors
/// The component carries a judge that cannot be used.
pub fn promised(
    name: &str,
    bytes: &[u8],
    interface: &Interface,
    cache: &CompileCache,
) -> Result<Option<Judge>, JudgeError> {
    if let Some(carried) = carried_judge(bytes) {
        return Judge::load(&format!("{name}'s own"), carried, cache).map(Some);
    }
    let stock = own_name_of(&interface.name);
    // An error: there is no stock recipe of that name, so nobody's promise is known.
    let recipe = ModuleSource::Stock(stock.to_owned()).read(None).ok();
    recipe
        .filter(|recipe| describes(recipe, stock, interface))
        .and_then(|_| modules::stock_judge(stock))
        .map(|bytes| Judge::load(&format!("stock {stock}"), bytes, cache))
        .transpose()
}

/// Judges a run by what every recipe owes, and by what its own judge says. In the order in which the
/// promises were broken, a few violations of each at most.
///
/// # Errors
/// The judge fails.
pub fn judge(
    history: &[Entry],
    judge: Option<&Judge>,
    config: &str,
) -> Result<Vec<Violation>, JudgeError> {
    let of_its_own = |invariant: &str| judge.is_some_and(|judge| judge.names(invariant));
    let mut found = owed(history, of_its_own);
    if let Some(judge) = judge {
        found.extend(feed::ask(judge, config, history)?);
    }
    Ok(first_of_each(found))
}

/// The violation that is told of several: the first, but a herd is only slow where another promise is
/// broken as well.
pub fn gravest(violations: &[Violation]) -> Option<&Violation> {
    let is_grave = |violation: &&Violation| violation.invariant != HERD;
    violations.iter().find(is_grave).or(violations.first())
}

/// Whether the host judges that invariant only where the recipe's own judge does not name it.
pub(super) fn is_left_to_recipes(invariant: &str) -> bool {
    matches!(invariant, HERD | CONSENT)
}

/// What every recipe owes, but for what its own judge knows more of.
fn owed(history: &[Entry], is_judged: impl Fn(&str) -> bool) -> Vec<Violation> {
    let truth = Truth::of(history);
    let case = Case::of(history, &truth, &Promise::NONE);
    let mut found = Vec::new();
    claims::check(&case, "M5", &mut found);
    quorum::check(&case, "Q1", &mut found);
    leftovers::check_znodes(&case, "M7", &mut found);
    leftovers::check_silence(&case, "X2", &mut found);
    blocked::check(&case, "W1", &mut found);
    if !is_judged(HERD) {
        herd::check(&case, HERD, &mut found);
    }
    if !is_judged(CONSENT) {
        consent::check(&case, CONSENT, &mut found);
    }
    isolation::check(&case, "X1", &mut found);
    limits::check(&case, "L1", &mut found);
    watches::check(&case, "S1", &mut found);
    found
}
