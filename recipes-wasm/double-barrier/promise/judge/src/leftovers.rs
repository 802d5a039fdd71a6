//! What is left of a wait.

use wok_judge::history::Outcome;
use wok_judge::{Case, Violation};

use crate::rounds::Rounds;

/// M7 of a barrier: a member's znode goes with the call that created it, if that ends without entering.
/// The next round would count it.
pub(super) fn check(
    case: &Case<'_>,
    rounds: &Rounds<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for member in rounds.all().iter().flat_map(|round| &round.members) {
        let Some(person) = member.asker.and_then(|who| case.people.person(who)) else { continue };
        let Some(call) = case.people.call_at(person.id, member.created.at) else { continue };
        let Some((answered, outcome)) = call.answered else { continue };
        if matches!(outcome, Outcome::Ok { .. }) {
            continue;
        }
        let Some(at) = case.outstays(person, member.session, member.deleted, answered) else {
            continue;
        };
        let (path, who, operation) = (member.path, person.id, call.operation);
        let sentence = format!(
            "{path} is still there, and the `{operation}` of participant {who} ended without it"
        );
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([member.created.at, answered.at]).by([who]));
    }
}
