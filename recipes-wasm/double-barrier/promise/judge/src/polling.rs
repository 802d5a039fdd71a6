//! A member that waits is told, and need not ask.

use wok_judge::history::Change;
use wok_judge::polling::{self, Allowance};
use wok_judge::{Case, Violation};

/// The host calls of a call: two looks at generations, one of which has opened, the own znode, the opening,
/// and the claim. More come for each generation that came, opened or went meanwhile, and for each member that
/// went.
const ALLOWED: Allowance = Allowance { once: 12, again: 6 };

/// H1 of what is asked: the host calls of a member that waits are as many as what happened
/// meanwhile gives reason for, where no fault did. That others come is no reason.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let is_reason = |change: &Change| match change {
        Change::Created { ephemeral_owner, .. } => *ephemeral_owner == 0,
        Change::Deleted { .. } | Change::DataSet { .. } => true,
        _ => false,
    };
    for call in case.people.calls() {
        polling::check_call(case, call, ALLOWED, is_reason, id, found);
    }
}
