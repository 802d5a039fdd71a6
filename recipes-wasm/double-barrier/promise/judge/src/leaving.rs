//! Who leaves, and when.

use wok_judge::history::Outcome;
use wok_judge::people::Call;
use wok_judge::{Case, Moment, Violation};

use crate::crowds::patience;
use crate::rounds::{Member, Round, Rounds};

/// D2: a member that has left found all others of its round gone; and a member that wants to leave
/// leaves once they are gone.
pub(super) fn check(
    case: &Case<'_>,
    rounds: &Rounds<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls().iter().filter(|call| call.operation == "leave") {
        let Some((round, own)) = round_of(case, rounds, call) else { continue };
        if let Some((answered, Outcome::Ok { .. })) = call.answered {
            let left = others(round, own).find(|other| other.lives_at(answered.at));
            if let Some(other) = left {
                let (who, path) = (call.who, other.path);
                let sentence = format!("participant {who} left while {path} was inside");
                let violation = Violation::new(id, answered.at, sentence);
                found.push(violation.involving([call.invoked.at]).by([who]));
            }
        } else {
            found.extend(overdue(case, round, own, call, id));
        }
    }
}

/// The round that the caller was inside of last, and its member.
fn round_of<'r, 'a>(
    case: &Case<'a>,
    rounds: &'r Rounds<'a>,
    call: &Call<'_>,
) -> Option<(&'r Round<'a>, &'r Member<'a>)> {
    let mut beliefs = case.people.beliefs_of(call.who).rev();
    let last = beliefs.find(|belief| belief.since.us <= call.invoked.us)?;
    rounds.find(last.path, last.since.at)
}

/// The others for whom the round opened.
fn others<'r, 'a>(
    round: &'r Round<'a>,
    own: &'r Member<'a>,
) -> impl Iterator<Item = &'r Member<'a>> {
    round.there_when_opened().filter(move |it| it.path != own.path && round.admits(it))
}

/// A wait that goes on though nobody is left to wait for.
fn overdue(
    case: &Case<'_>,
    round: &Round<'_>,
    own: &Member<'_>,
    call: &Call<'_>,
    id: &'static str,
) -> Option<Violation> {
    let calm = case.faults.calm()?;
    let mut gone: Vec<Moment> = vec![call.invoked, calm];
    for other in others(round, own) {
        gone.push(other.deleted?);
    }
    let last = gone.into_iter().max()?;
    let due = last.us.saturating_add(patience(case));
    let is_over = call.answered.is_some_and(|(answered, _)| answered.us <= due);
    let has_ended = case.people.person(call.who)?.end.is_some_and(|end| end.when().us <= due);
    let at = case.first_after(due).filter(|_| !is_over && !has_ended)?;
    let who = call.who;
    let sentence = format!("participant {who} has not left, and all others of its round are gone");
    Some(Violation::new(id, at, sentence).involving([call.invoked.at, last.at]).by([who]))
}
