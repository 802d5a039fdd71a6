//! Who waits is told, and need not ask.

use wok_judge::history::Change;
use wok_judge::polling::{self, Allowance};
use wok_judge::truth::split;
use wok_judge::{Case, Violation};

use crate::asked;
use crate::lens::name_of;

/// How many host calls a call may make for each lock: the place, the wait for the next one ahead, a look
/// and the wait once more because what was to be watched had gone.
const EACH: usize = 4;
/// And for all of them: the claim, or giving up what it has.
const ONCE: usize = 2;
/// And how many more for each znode that went or was written meanwhile in one of the lines.
const AGAIN: usize = 4;

/// H1 of what is asked: one that waits asks as often as something has happened that it could wait for,
/// where no fault did.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|it| case.promise.asks.contains(&it.operation)) {
        let Some(person) = case.people.person(call.who) else { continue };
        let names = asked(case, call);
        let allowed = Allowance { once: ONCE + EACH * names.len(), again: AGAIN };
        let is_reason = |change: &Change| match change {
            Change::Deleted { path } | Change::DataSet { path, .. } => split(path)
                .and_then(|(line, _)| name_of(person, line))
                .is_some_and(|name| names.contains(&name)),
            _ => false,
        };
        polling::check_call(case, call, allowed, is_reason, id, found);
    }
}
