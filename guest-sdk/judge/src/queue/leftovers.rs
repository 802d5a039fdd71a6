//! What is left of a call, and of a claim that was given up.

use crate::history::Outcome;
use crate::people::Call;
use crate::truth::split;
use crate::{Case, Violation};

use super::log::Log;

/// M7: a place in line goes with its call, however that ends, and a claim with the call that it was made
/// in, if that ends without the item, or with what ends it: `ack` and `reject`.
pub fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for place in case.truth.contenders() {
        if split(place.parent).is_none_or(|(_, part)| part != "consumers") {
            continue;
        }
        let Some(person) = case.people.asker(place) else { continue };
        let Some(call) = case.people.call_at(person.id, place.created.at) else { continue };
        let Some((answered, _)) = call.answered else { continue };
        let Some(at) = case.overdue(person, place, answered) else { continue };
        found.push(left(place.path, at, call));
    }
    for (item, claim) in
        log.items.iter().flat_map(|it| it.claims.iter().map(move |claim| (it, claim)))
    {
        let call = case.people.calls().iter().find(|call| Some(call.id) == claim.by);
        let Some(call) = call else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let ended = |call: &&Call<'_>| {
            let is_its_end = call.who == person.id
                && ["ack", "reject"].contains(&call.operation)
                && call.invoked.at > claim.since.at;
            is_its_end && !matches!(call.answered, None | Some((_, Outcome::Busy)))
        };
        let end = match call.answered {
            Some((_, Outcome::Ok { .. })) => case.people.calls().iter().find(ended),
            _ => Some(call),
        };
        let Some((call, (from, _))) = end.and_then(|call| Some((call, call.answered?))) else {
            continue;
        };
        let Some(at) = case.outstays(person, claim.session, claim.until, from) else { continue };
        found.push(left(claim.path, at, call).involving([item.put.at, claim.since.at]));
    }
}

fn left(path: &str, at: usize, call: &Call<'_>) -> Violation {
    let (who, operation) = (call.who, call.operation);
    let sentence =
        format!("{path} is still there, and the `{operation}` of participant {who} has ended");
    Violation::new("M7", at, sentence).by([who])
}
