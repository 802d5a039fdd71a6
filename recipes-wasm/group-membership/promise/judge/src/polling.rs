//! Who waits is told, and need not ask.

use wok_judge::history::What;
use wok_judge::people::Call;
use wok_judge::{Case, Moment, Violation};

use crate::Made;
use crate::group::Group;

/// How many host calls there may be in one call, or while a participant is idle: a join finds no
/// directory, makes it, finds the name taken, looks whose it is and watches it.
const ONCE: usize = 6;
/// And how many more for each change of the group meanwhile.
const AGAIN: usize = 4;

/// H1: the host calls of a call, and those from its answer to the next one, are as many as the changes
/// of the group meanwhile give reason for, where no fault did.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    group: &Group<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (number, made) in calls.iter().enumerate() {
        let who = made.call.who;
        let later = || calls.iter().skip(number + 1).map(|next| next.call);
        let next = later().find(|call| call.who == who).map(|call| call.invoked);
        let last = case.history.len().checked_sub(1);
        let last = last.and_then(|at| Some(Moment::of(at, case.history.get(at)?)));
        let Some(until) = next.or(last) else { continue };
        let answered = made.call.answered.map_or(until, |(answered, _)| answered);
        for (from, until) in [(made.call.invoked, answered), (answered, until)] {
            found.extend(asks_too_often(
                case,
                made.call,
                group,
                (from, until),
                id,
                made.person.host,
            ));
        }
    }
}

fn asks_too_often(
    case: &Case<'_>,
    call: &Call<'_>,
    group: &Group<'_>,
    (from, until): (Moment, Moment),
    id: &'static str,
    host: u32,
) -> Option<Violation> {
    if !case.faults.spared(host, from.us, until.us, case.truth.longest_timeout_us()) {
        return None;
    }
    let who = call.who;
    let asks = |what: &What| {
        matches!(what, What::HostCall { participant, name, .. }
            if *participant == who && name != "wait")
    };
    let meanwhile = case.history.get(from.at..until.at)?;
    let asked = meanwhile.iter().filter(|entry| asks(&entry.what)).count();
    // What it hears of late is from before.
    let changes = group.changes(from.at.saturating_sub(1), until.at);
    if asked <= ONCE + AGAIN * changes {
        return None;
    }
    let sentence = format!(
        "participant {who} asked the ensemble {asked} times in or after its `{}`, and the group \
         changed {changes} times",
        call.operation
    );
    Some(Violation::new(id, until.at, sentence).involving([from.at]).by([who]))
}
