//! What is left of rounds that are over.

use wok_judge::history::Outcome;
use wok_judge::people::Call;
use wok_judge::{Case, Moment, Violation};

use crate::rounds::{Created, Round, Rounds};

/// D4: who enters by a new generation leaves none of those behind whose members had all gone.
pub(super) fn check(
    case: &Case<'_>,
    rounds: &Rounds<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for newer in rounds.all() {
        let Some((created, call, answered)) = entered(case, newer) else { continue };
        let is_left = |earlier: &&Round<'_>| {
            let is_earlier =
                earlier.created.is_some_and(|earlier| earlier.when.at < created.when.at);
            let mut gone = earlier.members.iter().map(|member| member.deleted);
            let is_over = gone.all(|gone| gone.is_some_and(|gone| gone.at < created.when.at));
            is_earlier
                && is_over
                && !earlier.members.is_empty()
                && earlier.deleted.is_none_or(|gone| gone.at > answered.at)
        };
        let Some(left) = rounds.all().iter().find(is_left) else { continue };
        let sentence = format!(
            "participant {} entered by {}, and {} is still there, though all of its members had gone",
            call.who, newer.path, left.path
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([created.when.at]).by([call.who]));
    }
}

/// The call that has had a generation created, if it entered and no fault was in its way.
fn entered<'c, 'a>(
    case: &'c Case<'a>,
    round: &Round<'_>,
) -> Option<(Created, &'c Call<'a>, Moment)> {
    let created = round.created?;
    let person = case.people.person(created.asker?)?;
    let call = case.people.call_at(person.id, created.when.at)?;
    let (answered, outcome) = call.answered?;
    let has_entered = call.operation == "enter" && matches!(outcome, Outcome::Ok { .. });
    let timeout = case.truth.longest_timeout_us();
    let is_spared = case.faults.spared(person.host, call.invoked.us, answered.us, timeout);
    (has_entered && is_spared).then_some((created, call, answered))
}
