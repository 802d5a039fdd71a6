//! A contender that waits is told, and need not ask.

use crate::history::What;
use crate::people::Call;
use crate::{Case, Moment, Violation};

/// How many host calls a contender may make from its creation on: a list, a watch, and both again
/// because what was to be watched had gone.
const ONCE: usize = 6;
/// And how many more for whatever happened to those before it: each that went, each that wrote, and
/// each time that its participant asked to stand in line once more.
const AGAIN: usize = 4;

/// H1 of what is asked: the host calls of a contender that waits are as many as what happened before
/// it in line gives reason for, where no fault did. Those for other operations of its participant are
/// not counted: it waits in one and answers the others.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
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
        let (asking, others): (Vec<_>, Vec<_>) = (case.people.calls().iter())
            .filter(|call| call.who == person.id)
            .partition(|call| case.promise.asks.contains(&call.operation));
        let is_for_another = |at: usize| {
            let over = |call: &Call<'_>| call.answered.map_or(usize::MAX, |(when, _)| when.at);
            others.iter().any(|call| call.invoked.at < at && at < over(call))
        };
        let asked = (from.at..).zip(waited).filter(|(at, entry)| match &entry.what {
            What::HostCall { participant, name, .. } => {
                *participant == person.id && name != "wait" && !is_for_another(*at)
            }
            _ => false,
        });
        let asked = asked.count();
        if asked <= ONCE {
            continue;
        }
        let within = |moment: &Moment| from.at < moment.at && moment.at <= until.at;
        let line = case.truth.contenders().iter();
        let ahead = line.filter(|it| it.parent == contender.parent && it.came < contender.came);
        let moments = ahead.flat_map(|it| it.written.iter().copied().chain(it.deleted_at()));
        let moves = moments.filter(within).count();
        let again = asking.iter().filter(|call| within(&call.invoked)).count();
        if asked <= ONCE + AGAIN * (moves + again) {
            continue;
        }
        let sentence = format!(
            "participant {} asked the ensemble {asked} times while {} waited, and those before it \
             went or wrote {moves} times",
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
