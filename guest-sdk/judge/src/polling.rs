//! Who waits is told, and need not ask.

use crate::history::{Change, What};
use crate::people::{Call, Person};
use crate::{Case, Moment, Violation};

/// How many host calls there may be without a reason from outside. A contender lists, watches, and does
/// both again because what was to be watched had gone; a member that joins finds no directory, makes it,
/// finds the name taken, looks whose it is and watches it.
const ONCE: usize = 6;
/// And how many more for each reason: one before it in line went or wrote, what is followed
/// changed, or its participant asked to stand in line once more.
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

/// How late a host hears of a change, where no fault holds the news up.
const LATE_US: u64 = 1_000_000;

/// H1 of participants that call and follow: the host calls of a call, and those from its answer to the
/// next call, are no more than the changes of `what` give reason for, where no fault did. A change counts
/// for what is asked up to a second after it, as news may be on its way for so long. The calls are in their
/// order, each with who made it; `changes` counts those from one entry to before another.
pub fn check_calls(
    case: &Case<'_>,
    calls: &[(&Person<'_>, &Call<'_>)],
    what: &str,
    changes: impl Fn(usize, usize) -> usize,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (number, (person, call)) in calls.iter().enumerate() {
        let next = calls.iter().skip(number + 1).find(|(_, next)| next.who == call.who);
        let until = next.map(|(_, next)| next.invoked).or_else(|| last(case));
        let Some(until) = until else { continue };
        let answered = call.answered.map_or(until, |(answered, _)| answered);
        for (from, until) in [(call.invoked, answered), (answered, until)] {
            let timeout = case.truth.longest_timeout_us();
            if !case.faults.spared(person.host, from.us, until.us, timeout) {
                continue;
            }
            let asked = asked(case, call, (from, until));
            let since = case.history.partition_point(|entry| entry.at_us + LATE_US < from.us);
            let changed = changes(since, until.at);
            if asked <= ONCE + AGAIN * changed {
                continue;
            }
            let (who, operation) = (call.who, call.operation);
            let sentence = format!(
                "participant {who} asked the ensemble {asked} times in or after its `{operation}`, \
                 and {what} changed {changed} times"
            );
            found.push(Violation::new(id, until.at, sentence).involving([from.at]).by([who]));
        }
    }
}

/// How many host calls a call may make.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Without a reason from outside.
    pub once: usize,
    /// And for each reason to look again.
    pub again: usize,
}

/// H1 of one call, by a recipe that counts for itself: from when it was made until it was answered, its host
/// calls are no more than `allowed` for the changes that are a reason to look again, where no fault was. A
/// call that was not answered is not judged.
pub fn check_call(
    case: &Case<'_>,
    call: &Call<'_>,
    allowed: Allowance,
    is_reason: impl Fn(&Change) -> bool,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let (Some((answered, _)), Some(person)) = (call.answered, case.people.person(call.who)) else {
        return;
    };
    let timeout = case.truth.longest_timeout_us();
    if !case.faults.spared(person.host, call.invoked.us, answered.us, timeout) {
        return;
    }
    let asked = asked(case, call, (call.invoked, answered));
    if asked <= allowed.once {
        return;
    }
    let meanwhile = case.history.get(call.invoked.at..answered.at).unwrap_or_default();
    let changes = meanwhile.iter().filter_map(|entry| match &entry.what {
        What::Txn { changes, .. } => Some(changes),
        _ => None,
    });
    let reasons = changes.flatten().filter(|change| is_reason(change)).count();
    if asked <= allowed.once + allowed.again * reasons {
        return;
    }
    let (who, operation) = (call.who, call.operation);
    let sentence = format!(
        "participant {who} asked the ensemble {asked} times in one `{operation}`, and {reasons} \
         things happened that it could wait for"
    );
    let violation = Violation::new(id, answered.at, sentence);
    found.push(violation.involving([call.invoked.at]).by([who]));
}

/// How often the caller asked the ensemble between these moments.
fn asked(case: &Case<'_>, call: &Call<'_>, (from, until): (Moment, Moment)) -> usize {
    let asks = |what: &What| {
        matches!(what, What::HostCall { participant, name, .. }
            if *participant == call.who && name != "wait")
    };
    let meanwhile = case.history.get(from.at..until.at).unwrap_or_default();
    meanwhile.iter().filter(|entry| asks(&entry.what)).count()
}

/// The end of the history.
fn last(case: &Case<'_>) -> Option<Moment> {
    let at = case.history.len().checked_sub(1)?;
    Some(Moment::of(at, case.history.get(at)?))
}
