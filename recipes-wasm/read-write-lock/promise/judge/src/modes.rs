//! From reading to writing and back: the one is refused, the other keeps the place in line.

use wok_judge::grants::fence_of;
use wok_judge::history::{Outcome, What};
use wok_judge::people::{Belief, Call};
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation};

/// Whether the lock is asked for in one mode while it is held in the other.
pub(super) fn crosses(case: &Case<'_>, call: &Call<'_>) -> bool {
    let wants_shared = match call.operation {
        "acquire-read" | "try-acquire-read" => true,
        "acquire-write" | "try-acquire-write" => false,
        _ => return false,
    };
    let held = held(case, call).and_then(|belief| belief.contender);
    held.is_some_and(|held| held.is_shared != wants_shared)
}

/// What the participant held when it was called.
fn held<'a>(case: &'a Case<'a>, call: &Call<'_>) -> Option<&'a Belief<'a>> {
    let at = call.invoked.at;
    let mut own = case.people.beliefs_of(call.who).rev();
    own.find(|belief| belief.since.at < at && belief.lasts_beyond(at))
}

/// R2 of who asks for the one while it has the other: it is refused, and stands in no line meanwhile,
/// in which it would wait for itself.
pub(super) fn check_upgrades(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| crosses(case, call)) {
        let (who, operation) = (call.who, call.operation);
        // One that was asked to give way may have done so before it came to this call. Its followers
        // may be told later than its component is.
        let holds = |at: usize| {
            held(case, call)
                .is_some_and(|belief| belief.lasts_beyond(at) && !has_released(case, belief, at))
        };
        let answered = call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
        let mut complain = |at: usize, what: &str| {
            let sentence =
                format!("the `{operation}` of participant {who} {what} while it held the lock");
            found.push(Violation::new(id, at, sentence).involving([call.invoked.at]).by([who]));
        };
        if let Some((answered, Outcome::Ok { .. })) = call.answered
            && holds(answered.at)
        {
            complain(answered.at, "was answered as if it were none");
        }
        let meanwhile = case.history.iter().enumerate().skip(call.invoked.at);
        for (at, entry) in meanwhile.take_while(|(at, _)| *at < answered) {
            match &entry.what {
                // What it looks at may be a request that woke it before.
                What::HostCall { participant, name, .. }
                    if *participant == who && name.starts_with("contend") && holds(at) =>
                {
                    complain(at, &format!("called `{name}`"));
                    break;
                }
                _ => {}
            }
        }
    }
}

/// Whether the holder's component was answered, before that entry, that the holder has released it.
fn has_released(case: &Case<'_>, belief: &Belief<'_>, at: usize) -> bool {
    let path = belief.contender.map(|contender| contender.path);
    let mut asked = None;
    case.history.iter().take(at).any(|entry| match &entry.what {
        What::HostCall { participant, number, name, paths }
            if *participant == belief.who && name == "release" =>
        {
            let is_of_it = paths.iter().any(|it| path == Some(it.as_str()));
            asked = is_of_it.then_some(*number).or(asked);
            false
        }
        What::HostCallAnswered { participant, number, answer, .. } => {
            *participant == belief.who && asked == Some(*number) && answer == "ok"
        }
        _ => false,
    })
}

/// R2 of downgrades: a writer reads on in its own place, as one txn deletes the writer's znode and
/// creates the reader's; and no place is taken otherwise.
pub(super) fn check_downgrades(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| call.operation == "downgrade") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let fence = value.get("fence").and_then(fence_of);
        let created = fence.and_then(|fence| i64::try_from(fence).ok());
        let new = created.and_then(|czxid| case.truth.created_by(czxid).next());
        let before = held(case, call).and_then(|belief| belief.contender);
        let Some(why) = wrong(before, new) else { continue };
        let sentence =
            format!("the `downgrade` of participant {} was answered, but {why}", call.who);
        let entries = before.into_iter().chain(new).map(|it| it.created.at);
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving(entries.chain([call.invoked.at])).by([call.who]));
    }
    for contender in case.truth.contenders() {
        let old = contender.replaces.and_then(|old| case.truth.contender(old));
        let (Some(old), Some(person)) = (old, case.people.asker(contender)) else { continue };
        // The txn of a call that was withdrawn may come after its answer.
        let is_asked = case.people.calls().iter().any(|call| {
            let is_its_own = call.who == person.id && call.operation == "downgrade";
            let held = held(case, call).and_then(|belief| belief.contender);
            let is_of_it = held.is_some_and(|held| held.id == old.id);
            is_its_own && is_of_it && call.invoked.at < contender.created.at
        });
        if is_asked && contender.is_shared && !old.is_shared {
            continue;
        }
        let sentence = format!(
            "{} took the place of {}, which is no downgrade that was asked for",
            contender.path, old.path
        );
        let violation = Violation::new(id, contender.created.at, sentence);
        found.push(violation.involving([old.created.at]).by([person.id]));
    }
}

/// R2 of grants: each says that it is for what its call asks for, and is by a contender that is there for
/// that.
pub(super) fn check_grants(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let asked = match call.operation {
            "acquire-read" | "try-acquire-read" | "downgrade" => "read",
            "acquire-write" | "try-acquire-write" => "write",
            _ => continue,
        };
        let Some(told) = value.get("mode").and_then(|mode| mode.as_str()) else { continue };
        let created = value.get("fence").and_then(fence_of).and_then(|it| i64::try_from(it).ok());
        let by = created.and_then(|czxid| case.truth.created_by(czxid).next());
        let is_for = |by: &Contender<'_>| if by.is_shared { "read" } else { "write" };
        if told == asked && by.is_none_or(|by| is_for(by) == asked) {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!("the `{operation}` of participant {who} was answered {value}");
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// What is wrong with a downgrade from one contender to another.
fn wrong(before: Option<&Contender<'_>>, new: Option<&Contender<'_>>) -> Option<String> {
    let Some(before) = before else { return Some("it held nothing".to_owned()) };
    let Some(new) = new else { return Some("its fence is nobody's".to_owned()) };
    if !new.is_shared {
        Some(format!("{} is no reader", new.path))
    } else if before.is_shared {
        let reads_on = new.id == before.id;
        (!reads_on).then(|| format!("it read with {} before", before.path))
    } else if new.replaces != Some(before.id) {
        Some(format!("{} did not take the place of {} at once", new.path, before.path))
    } else {
        None
    }
}
