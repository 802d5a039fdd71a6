//! Does it go on? Once no fault comes any more, the first in line is granted what it waits for.

use crate::history::Outcome;
use crate::people::{Call, End, Person};
use crate::truth::Contender;
use crate::{Case, Stay, Violation};

/// How long a hand-over may take after the last fault, beyond two of the longest session timeouts:
/// one for the session of a killed host, one for a connection to be given up and found again.
const HAND_OVER_US: u64 = 5_000_000;

/// W1 of a lock's waiters, and E3 of candidates: a contender that is first of its line, and that
/// somebody waits for, is told to hold.
pub fn check_turns(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let Some(calm) = case.faults.calm() else { return };
    let patience = case.truth.longest_timeout_us().saturating_mul(2).saturating_add(HAND_OVER_US);
    for contender in case.truth.contenders() {
        let asker = case.people.asker(contender);
        let Some((first, person)) = contender.first.zip(asker) else { continue };
        let due = first.us.max(calm.us).saturating_add(patience);
        let Some(at) = case.first_after(due) else { continue };
        let is_gone = contender.deleted_at().is_some_and(|deleted| deleted.us <= due);
        let is_granted = case.people.granted(contender).is_some_and(|it| it.since.us <= due);
        if is_gone || is_granted || !is_wanted(case, person, contender, due) {
            continue;
        }
        let sentence = format!(
            "participant {} was not granted {}, though {} has been first in line since entry {}",
            person.id, case.promise.noun, contender.path, first.at
        );
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([calm.at, first.at]).by([person.id]));
    }
}

/// Whether the participant still wants the contender at that time.
fn is_wanted(case: &Case<'_>, person: &Person<'_>, contender: &Contender<'_>, at: u64) -> bool {
    let has_ended = |end: End| end.when().us <= at;
    let call = case.people.call_at(person.id, contender.created.at);
    let Some(call) = call.filter(|_| !person.end.is_some_and(has_ended)) else {
        return false;
    };
    let answered = call.answered.filter(|(answered, _)| answered.us <= at);
    match answered {
        None => true,
        Some((_, Outcome::Ok { .. })) => case.promise.stay == Stay::BeyondCall,
        Some(_) => false,
    }
}

/// W1 and E3 of those who are turned away: a participant that waits in line is not answered an
/// error where no fault was in its way.
pub fn check_refusals(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    check_refusals_but(case, id, |_| false, found);
}

/// The same, but for calls that are to be refused.
pub fn check_refusals_but(
    case: &Case<'_>,
    id: &'static str,
    is_refused: impl Fn(&Call<'_>) -> bool,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Err { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let waits = case.promise.waits.contains(&call.operation);
        let timeout = case.truth.longest_timeout_us();
        if !waits
            || is_refused(call)
            || !case.faults.spared(person.host, call.invoked.us, answered.us, timeout)
        {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who} was answered {value}, and no fault was in its way"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
