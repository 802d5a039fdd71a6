//! What was told and answered: is it theirs?

use serde_json::Value;
use wok_judge::grants::{fence_of, granted};
use wok_judge::history::Outcome;
use wok_judge::people::Belief;
use wok_judge::{Case, Violation};

use crate::log::{Lease, Semaphores};

/// M1: a participant that is told to hold permits has leases of its own, of that `czxid`, which were not
/// gone before it asked; and it is answered what it was told.
pub(super) fn check(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for belief in case.people.beliefs() {
        let Some(why) = objection(case, semaphores, belief) else { continue };
        let sentence = format!("{}, but {why}", granted(case, belief));
        found.push(Violation::new(id, belief.since.at, sentence).by([belief.who]));
    }
    check_answers(case, semaphores, id, found);
}

/// The leases that a participant was told to hold.
pub(super) fn leases_of<'a>(
    case: &'a Case<'_>,
    semaphores: &'a Semaphores<'_>,
    belief: &Belief<'_>,
) -> Vec<&'a Lease<'a>> {
    let semaphore = case.people.person(belief.who).and_then(|it| semaphores.at(it.mount));
    let fence = i64::try_from(belief.fence).ok();
    let all = semaphore.zip(fence).map(|(semaphore, fence)| semaphore.created_by(fence).collect());
    all.unwrap_or_default()
}

fn objection(case: &Case<'_>, semaphores: &Semaphores<'_>, belief: &Belief<'_>) -> Option<String> {
    let leases = leases_of(case, semaphores, belief);
    if !leases.iter().any(|lease| lease.path == belief.path) {
        return Some(format!("{} is no lease of that czxid", belief.path));
    }
    let session = case.people.person(belief.who)?.session;
    for lease in leases {
        let path = lease.path;
        if lease.session != session {
            return Some(format!("{path} belongs to session {:#x}, not to its own", lease.session));
        }
        if let Some(other) = lease.asker.filter(|asker| *asker != belief.who) {
            return Some(format!("{path} is participant {other}'s"));
        }
        if let Some(deleted) = lease.deleted.filter(|deleted| deleted.at <= belief.asked) {
            return Some(format!("{path} was gone since entry {}", deleted.at));
        }
    }
    None
}

fn check_answers(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls().iter().filter(|call| call.operation == "acquire") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let told = case.people.beliefs_of(call.who).any(|belief| {
            let leases = leases_of(case, semaphores, belief);
            // A component knows its paths as those below its mount.
            let own = |lease: &&Lease<'_>| lease.path.strip_prefix(person.mount).map(str::to_owned);
            let paths: Option<Vec<String>> = leases.iter().map(own).collect();
            let is_it = paths.as_ref() == Some(&paths_of(value))
                && value.get("fence").and_then(fence_of) == Some(belief.fence);
            // A loss may be told between the answer and its being taken down.
            is_it && belief.since.us <= answered.us && belief.lasts_beyond(call.invoked.at)
        });
        let timeout = case.truth.longest_timeout_us();
        // Otherwise it may have been lost before anybody heard of it.
        if told || !case.faults.spared(person.host, call.invoked.us, answered.us, timeout) {
            continue;
        }
        let who = call.who;
        let sentence = format!("participant {who} was answered {value}, which it does not hold");
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// The paths of a grant.
fn paths_of(grant: &Value) -> Vec<String> {
    let paths = grant.get("paths").and_then(Value::as_array).into_iter().flatten();
    paths.filter_map(Value::as_str).map(str::to_owned).collect()
}
