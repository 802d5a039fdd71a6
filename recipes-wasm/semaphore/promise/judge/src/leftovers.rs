//! What is left of a call, and of permits that were given back.

use wok_judge::history::Outcome;
use wok_judge::people::Over;
use wok_judge::{Case, Moment, Violation};

use crate::grants::leases_of;
use crate::log::{Lease, Semaphores};

/// M7 of leases: one goes with the call that it was created in, if that ends without permits, and with
/// those of its grant when they are given back. Others would wait for it as long as its session lasts.
pub(super) fn check(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for lease in semaphores.all().flat_map(|semaphore| &semaphore.leases) {
        let Some(person) = lease.asker.and_then(|who| case.people.person(who)) else { continue };
        let Some(call) = case.people.call_at(person.id, lease.created.at) else { continue };
        let Some((answered, outcome)) = call.answered else { continue };
        if matches!(outcome, Outcome::Ok { .. }) {
            continue;
        }
        let why =
            format!("the `{}` of participant {} ended without permits", call.operation, person.id);
        found.extend(left(case, id, lease, answered, &why));
    }
    for belief in case.people.beliefs() {
        let Some((over, Over::Released)) = belief.over else { continue };
        for lease in leases_of(case, semaphores, belief) {
            let why = format!("participant {} has given its permits back", belief.who);
            found.extend(left(case, id, lease, over, &why));
        }
    }
}

fn left(
    case: &Case<'_>,
    id: &'static str,
    lease: &Lease<'_>,
    from: Moment,
    why: &str,
) -> Option<Violation> {
    let person = lease.asker.and_then(|who| case.people.person(who))?;
    let at = case.outstays(person, lease.session, lease.deleted, from)?;
    let sentence = format!("{} is still there, and {why}", lease.path);
    let violation = Violation::new(id, at, sentence);
    Some(violation.involving([lease.created.at, from.at]).by([person.id]))
}
