//! Who enters, and by what.

use wok_judge::grants::fence_of;
use wok_judge::history::Outcome;
use wok_judge::people::Belief;
use wok_judge::{Case, Violation};

use crate::rounds::Rounds;

/// D1: a member that is told to be inside has a znode that was there when its round opened, with as
/// many as make a round, and the round opened for it; and `enter` answers what it was told.
pub(super) fn check(
    case: &Case<'_>,
    rounds: &Rounds<'_>,
    size: usize,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for belief in case.people.beliefs() {
        if let Some((why, since)) = objection(rounds, size, belief) {
            let who = belief.who;
            let sentence = format!("participant {who} entered with {}, but {why}", belief.path);
            let violation = Violation::new(id, belief.since.at, sentence);
            found.push(violation.involving(since).by([who]));
        }
    }
    check_answers(case, id, found);
}

fn objection(
    rounds: &Rounds<'_>,
    size: usize,
    belief: &Belief<'_>,
) -> Option<(String, Option<usize>)> {
    let Some((round, member)) = rounds.find(belief.path, belief.since.at) else {
        return Some(("no such znode ever was".to_owned(), None));
    };
    let (created, path) = (Some(member.created.at), round.path);
    if u64::try_from(member.czxid).ok() != Some(belief.fence) {
        return Some((format!("the fence is {}, not {}", belief.fence, member.czxid), created));
    }
    let opened = round.opened.filter(|(opened, _)| opened.at < belief.since.at);
    let Some((opened, _)) = opened else {
        return Some((format!("{path} had not opened"), created));
    };
    let since = Some(opened.at);
    if !member.lives_at(opened.at) {
        return Some((format!("its znode was not there when {path} opened"), since));
    }
    let there = round.there_when_opened().count();
    if there < size {
        return Some((format!("{path} opened with {there} members, not {size}"), since));
    }
    if !round.admits(member) {
        return Some((format!("{path} opened with others"), since));
    }
    None
}

fn check_answers(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| call.operation == "enter") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let told = case.people.beliefs_of(call.who).any(|belief| {
            // A component knows its paths as those below its mount.
            let path = value.get("path").and_then(|path| path.as_str());
            let is_it = path
                .is_some_and(|path| belief.path.strip_prefix(person.mount) == Some(path))
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
