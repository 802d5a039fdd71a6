//! Never two at once: in the ensemble's log, and at what the claim guards.

use std::collections::BTreeMap;

use crate::history::{ParticipantId, What};
use crate::{Case, Violation};

/// M2: a contender owns from being first in line until it is deleted: these times are disjoint.
pub fn check_log(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for contender in case.truth.contenders() {
        let beside = contender.beside.and_then(|beside| case.truth.contender(beside));
        let Some((beside, first)) = beside.zip(contender.first) else { continue };
        let sentence = format!(
            "{} became first in line while {}, which had been first, was still there",
            contender.path, beside.path
        );
        let owners = [contender, beside].map(|owner| case.people.asker(owner));
        found.push(
            Violation::new(id, first.at, sentence)
                .involving([beside.created.at])
                .by(owners.into_iter().flatten().map(|person| person.id)),
        );
    }
}

/// M3: the resource behind each mount takes exactly the writes whose fence is not lower than the
/// highest it has seen, and a writer shows a fence of its own. Holds whatever is paused.
pub fn check_resource(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut highest: BTreeMap<&str, (u64, ParticipantId, usize)> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let What::Wrote { participant: who, fence, accepted } = &entry.what else { continue };
        let Some(person) = case.people.person(*who) else { continue };
        let seen = highest.get(person.mount).copied();
        let mut complain = |sentence: String| {
            let earlier = seen.iter().map(|(_, _, at)| *at);
            let others = seen.iter().map(|(_, who, _)| *who).filter(|other| other != who);
            let violation = Violation::new(id, at, sentence).involving(earlier);
            found.push(violation.by([*who]).by(others));
        };
        // What is told and done in one instant may be taken down in either order.
        let mut own = case.people.beliefs_of(*who).rev();
        if !own.any(|belief| belief.fence == *fence && belief.since.us <= entry.at_us) {
            complain(format!("participant {who} wrote with fence {fence}, which is none of its"));
        }
        let top = seen.map_or(0, |(top, ..)| top);
        if *accepted && *fence < top {
            complain(format!("the resource took fence {fence} of participant {who} after {top}"));
        } else if !*accepted && *fence >= top {
            complain(format!(
                "the resource refused fence {fence} of participant {who}, and the highest was {top}"
            ));
        }
        if *accepted && *fence >= top {
            highest.insert(person.mount, (*fence, *who, at));
        }
    }
}
