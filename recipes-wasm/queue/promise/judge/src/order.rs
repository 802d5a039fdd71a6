//! The oldest comes first.

use wok_judge::history::CallId;
use wok_judge::queue::log::{How, Item, Log};
use wok_judge::queue::takes::takes;
use wok_judge::{Case, Moment, Violation};

/// Q4: nothing is taken while something older is there that nobody has ever taken. (What was taken before
/// and came back may be younger in somebody's list, for a while.)
pub(super) fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for (place, item) in log.items.iter().enumerate() {
        let claimed = item.claims.iter().map(|claim| claim.since);
        let removed = item.gone.filter(|gone| gone.how == How::Alone && is_taking(case, gone.by));
        for taken in claimed.chain(removed.map(|gone| gone.when)) {
            let older = log.items.iter().take(place);
            if let Some(older) = older.rev().find(|older| is_passed_over(older, item, taken)) {
                let sentence = format!(
                    "{} was taken while {}, which is older, was there",
                    item.path, older.path
                );
                let violation = Violation::new("Q4", taken.at, sentence);
                found.push(violation.involving([older.put.at]));
            }
        }
    }
}

fn is_passed_over(older: &Item<'_>, item: &Item<'_>, taken: Moment) -> bool {
    let was_taken = older.claims.iter().any(|claim| claim.since.at <= taken.at);
    older.queue == item.queue && older.is_there(taken.at, taken.at) && !was_taken
}

fn is_taking(case: &Case<'_>, by: Option<CallId>) -> bool {
    case.people.calls().iter().any(|call| Some(call.id) == by && takes(call))
}
