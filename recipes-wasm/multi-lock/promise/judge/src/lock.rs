//! Each lock by itself, as a lock is judged.

use std::collections::BTreeSet;

use wok_judge::truth::Truth;
use wok_judge::{Case, Violation, beliefs, exclusion, grants, linear};

use crate::lens::{Grants, view};

/// M1, M2, M4 to M6, M8 and W2 of each lock that somebody stood in line for.
pub(super) fn check_each(case: &Case<'_>, told: &Grants<'_>, found: &mut Vec<Violation>) {
    let lines: BTreeSet<&str> = case.truth.contenders().iter().map(|it| it.parent).collect();
    for directory in lines {
        let history = view(case, told, directory);
        let truth = Truth::of(&history);
        let of_it = Case::of(&history, &truth, case.promise);
        let before = found.len();
        grants::check_validity(&of_it, "M1", found);
        exclusion::check_log(&of_it, "M2", found);
        grants::check_growth(&of_it, "M4", found);
        grants::check_order(&of_it, "M6", found);
        grants::check_condition(&of_it, "W2", found);
        // A second opinion is asked for where the first is that all is well.
        if found.len() == before {
            linear::check(&of_it, "M8", found);
        }
        beliefs::check(&of_it, "M5", "M5", found);
    }
}
