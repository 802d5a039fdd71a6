//! What is left of a wait.

use crate::history::Outcome;
use crate::truth::Contender;
use crate::{Case, Moment, Violation};

/// M7 of what is waited for: a contender is a wait, so it goes with a call that ended without a claim.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for contender in case.truth.contenders() {
        let Some(person) = case.people.asker(contender) else { continue };
        let call = case.people.call_at(person.id, contender.created.at);
        let Some((from, operation)) = call.and_then(|call| {
            let (answered, outcome) = call.answered?;
            let is_without = matches!(outcome, Outcome::Ok { holds: false, .. });
            is_without.then_some((answered, call.operation))
        }) else {
            continue;
        };
        let Some(at) = case.overdue(person, contender, from) else { continue };
        found.push(violation(case, id, at, (person.id, operation), contender, from));
    }
}

fn violation(
    case: &Case<'_>,
    id: &'static str,
    at: usize,
    (who, operation): (u32, &str),
    contender: &Contender<'_>,
    from: Moment,
) -> Violation {
    let sentence = format!(
        "{} is still there, and the `{operation}` of participant {who} ended without {}",
        contender.path, case.promise.noun
    );
    Violation::new(id, at, sentence).involving([contender.created.at, from.at]).by([who])
}
