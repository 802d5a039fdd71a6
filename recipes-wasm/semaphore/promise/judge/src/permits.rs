//! How many leases there are, and whose turn it was to create them.

use wok_judge::people::Call;
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation};

use crate::log::{Semaphores, Taking};
use crate::wanted;

/// P2: after a txn that creates leases there are no more than there are permits, and it created as many
/// as were asked for. Where there are fewer permits than before, leases may be more for a while; then
/// nobody creates any.
pub(super) fn check_numbers(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for semaphore in semaphores.all() {
        for taking in &semaphore.takings {
            let (at, count) = (taking.when.at, taking.count);
            for state in semaphore.between(at, at) {
                let permits = state.permits.unwrap_or(0);
                if state.taken > permits {
                    let sentence = format!(
                        "{count} leases were created in {}, and then there were {} for {permits} \
                         permits",
                        taking.directory, state.taken
                    );
                    found.push(Violation::new(id, at, sentence).by(taking.asker));
                }
            }
            let asked = place(case, taking).and_then(|place| asked(case, place));
            let Some(call) = asked.filter(|call| wanted(case, call) != count) else { continue };
            let sentence = format!(
                "{count} leases were created for participant {}, which asked for {}",
                call.who,
                wanted(case, call)
            );
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([call.invoked.at]).by([call.who]));
        }
    }
}

/// P3: somebody whose settings say how many permits there are takes some only if that was the number at
/// some time since it first asked. The number may have changed since: what was compared once is not
/// compared again.
pub(super) fn check_settings(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    stated: Option<u64>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let Some(stated) = stated else { return };
    for semaphore in semaphores.all() {
        for taking in &semaphore.takings {
            let Some(who) = taking.asker else { continue };
            let mut own = case.people.calls().iter().filter(|call| call.who == who);
            let Some(first) = own.find(|call| call.operation == "acquire") else { continue };
            let mut stored = semaphore.between(first.invoked.at, taking.when.at);
            if stored.any(|state| state.permits == Some(stated)) {
                continue;
            }
            let sentence = format!(
                "participant {who} took permits though its settings say that there are {stated}, which \
                 was never stored since it first asked"
            );
            let violation = Violation::new(id, taking.when.at, sentence);
            found.push(violation.involving([first.invoked.at]).by([who]));
        }
    }
}

/// M6: who creates leases is the first in the queue, and leaves it in the same txn.
pub(super) fn check_order(
    case: &Case<'_>,
    semaphores: &Semaphores<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for taking in semaphores.all().flat_map(|semaphore| &semaphore.takings) {
        let at = taking.when.at;
        let (why, before) = match place(case, taking) {
            None => ("without leaving a place in the queue".to_owned(), None),
            Some(place) if place.first.is_some_and(|first| first.at < at) => continue,
            Some(place) => {
                let ahead = case.truth.in_the_way_of(place, at);
                let who = ahead.map_or("somebody", |ahead| ahead.path);
                (format!("while {who} stood before {}", place.path), ahead)
            }
        };
        let sentence = format!("leases were created in {} {why}", taking.directory);
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving(before.map(|it| it.created.at)).by(taking.asker));
    }
}

/// The place in the queue that leases were taken in exchange for.
fn place<'a>(case: &'a Case<'_>, taking: &Taking<'_>) -> Option<&'a Contender<'a>> {
    case.truth.find(taking.place?, taking.when.at)
}

/// The call that a place was made for.
fn asked<'a>(case: &'a Case<'_>, place: &Contender<'_>) -> Option<&'a Call<'a>> {
    let person = case.people.asker(place)?;
    case.people.call_at(person.id, place.created.at).filter(|call| call.operation == "acquire")
}
