//! Whoever waits is told, and need not ask.

use super::{Case, Moment, Violation};
use crate::simulation::history::What;

/// How many host calls a contender may make from its creation on: a list, a watch, and both again
/// because what was to be watched had gone.
const ONCE: usize = 8;
/// And how many more for each of those in line that came or went meanwhile, and for each operation
/// that was called.
const AGAIN: usize = 4;

/// H1 of what is asked: the host calls of a contender that waits are as many as those that came and
/// went meanwhile give reason for, where no fault did.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for contender in case.truth.contenders() {
        let Some(person) = case.people.asker(contender) else { continue };
        let from = contender.created;
        let granted = case.people.granted(contender).map(|belief| belief.since);
        let until = granted.into_iter().chain(contender.deleted_at()).min();
        let Some(until) = until.or_else(|| last(case)) else { continue };
        let timeout = case.truth.timeout_us(contender.owner);
        if !case.faults.spared(person.host, from.us, until.us, timeout) {
            continue;
        }
        let waited = case.history.get(from.at..until.at).unwrap_or_default();
        let asked = waited.iter().filter(|entry| match &entry.what {
            What::HostCall { participant, name, .. } => *participant == person.id && name != "wait",
            _ => false,
        });
        let asked = asked.count();
        if asked <= ONCE {
            continue;
        }
        let within = |moment: Moment| from.at < moment.at && moment.at <= until.at;
        let line = case.truth.contenders().iter().filter(|it| it.parent == contender.parent);
        let moves = line
            .flat_map(|it| [Some(it.created), it.deleted_at()])
            .flatten()
            .filter(|moment| within(*moment))
            .count();
        let calls = case.people.calls().iter();
        let calls = calls.filter(|call| call.who == person.id && within(call.invoked)).count();
        if asked <= ONCE + AGAIN * (moves + calls) {
            continue;
        }
        let sentence = format!(
            "participant {} asked the ensemble {asked} times while {} waited and {moves} others came \
             or went",
            person.id, contender.path
        );
        let violation = Violation::new(id, until.at, sentence);
        found.push(violation.involving([from.at]).by([person.id]));
    }
}

/// The end of the history.
fn last(case: &Case<'_>) -> Option<Moment> {
    let at = case.history.len().checked_sub(1)?;
    Some(Moment::of(at, case.history.get(at)?))
}
