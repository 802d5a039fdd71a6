//! Whether those who want to know are told, and those who wait go on.

use wok_judge::people::{Call, End, Person};
use wok_judge::{Case, Violation};

use crate::Made;
use crate::service::{Service, State};
use crate::views::{Of, news};

/// How long it may take that nothing disturbs.
const UNDISTURBED_US: u64 = 1_500_000;

/// How long it may take beyond a session's timeout where something does.
const BEYOND_US: u64 = 2_000_000;

/// When something that can begin at `from` must be done on the person's host; none if a fault goes on.
fn due(case: &Case<'_>, person: &Person<'_>, from: u64) -> Option<u64> {
    let timeout = case.truth.longest_timeout_us();
    let soon = from.saturating_add(UNDISTURBED_US);
    match case.faults.spared(person.host, from, soon, timeout) {
        true => Some(soon),
        false => case.faults.due(person.host, from, timeout.saturating_add(BEYOND_US)),
    }
}

fn has_ended(person: &Person<'_>, us: u64) -> bool {
    person.end.map(End::when).is_some_and(|end| end.us <= us)
}

/// N3 of observers: a participant that observes and is idle is told of a revision that is not older
/// than each change.
pub(super) fn check_observers(
    case: &Case<'_>,
    (name, calls): Of<'_, '_, '_>,
    service: &Service<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.is("observe", name)) {
        let Some((since, _)) = made.value() else { continue };
        let own: Vec<&Call<'_>> = calls
            .iter()
            .filter(|other| other.call.who == made.call.who)
            .map(|other| other.call)
            .collect();
        let mut later = calls.iter().filter(|other| other.call.who == made.call.who);
        let again = later.find(|it| it.is("observe", name) && it.call.invoked.at > since);
        let until = again.map_or(usize::MAX, |it| it.call.invoked.at);
        for change in service.states.iter().filter(|it| since < it.from.at && it.from.at < until) {
            found.extend(untold(case, made, &own, (change, until), service, id));
        }
    }
}

fn untold(
    case: &Case<'_>,
    made: &Made<'_, '_>,
    own: &[&Call<'_>],
    (change, until): (&State<'_>, usize),
    service: &Service<'_>,
    id: &'static str,
) -> Option<Violation> {
    let (person, who) = (made.person, made.call.who);
    // A component is woken when none of its operations is under way.
    let mut by = due(case, person, change.from.us)?;
    for call in own.iter().filter(|call| call.answered.is_none_or(|it| it.0.at > change.from.at)) {
        if call.invoked.us <= by {
            by = by.max(due(case, person, call.answered?.0.us)?);
        }
    }
    let at = case.first_after(by)?;
    let is_news = |(told, whose, revision): (usize, u32, u64)| {
        whose == who && told > change.from.at && (revision == 0 || revision >= change.revision)
    };
    let is_told = news(case, made.name()?).take_while(|(told, ..)| *told < at).any(is_news);
    if is_told || until < at || has_ended(person, by) {
        return None;
    }
    // What came and went before this one could look is as this one was told.
    let before = news(case, made.name()?).take_while(|(told, ..)| *told < change.from.at);
    let before = before.filter(|(_, whose, _)| *whose == who).last().map(|(.., revision)| revision);
    let knows_of_none = match before {
        Some(revision) => revision == 0,
        None => made.value().and_then(|(_, answer)| wok_judge::grants::fence_of(answer)) == Some(0),
    };
    if knows_of_none && service.during(change.from.at, at).any(|state| state.revision == 0) {
        return None;
    }
    let sentence = format!(
        "participant {who} follows a name, and was not told of its revision {}",
        change.revision
    );
    Some(Violation::new(id, at, sentence).involving([change.from.at]).by([who]))
}

/// N3 of those who wait: a wait is answered when there is a later revision, and not before.
pub(super) fn check_waits(
    case: &Case<'_>,
    (name, calls): Of<'_, '_, '_>,
    service: &Service<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for made in calls.iter().filter(|made| made.is("wait", name)) {
        let after = made.arguments.get("after").and_then(wok_judge::grants::fence_of);
        let Some(after) = after else { continue };
        let (who, invoked) = (made.call.who, made.call.invoked);
        if let Some((at, value)) = made.value() {
            let revision = wok_judge::grants::fence_of(value).unwrap_or_default();
            let was_gone = || service.during(invoked.at, at).any(|state| state.revision == 0);
            let is_right = if revision == 0 { after > 0 && was_gone() } else { revision > after };
            if !is_right {
                let sentence = format!(
                    "participant {who} waits for what is after {after}, and got {revision}"
                );
                found.push(Violation::new(id, at, sentence).involving([invoked.at]).by([who]));
            }
        }
        found.extend(goes_on(case, made, after, service, id));
    }
}

/// A wait that goes on though there is something after what it waits for. A directory that came and
/// went again before anybody could look does not count.
fn goes_on(
    case: &Case<'_>,
    made: &Made<'_, '_>,
    after: u64,
    service: &Service<'_>,
    id: &'static str,
) -> Option<Violation> {
    let (who, invoked) = (made.call.who, made.call.invoked);
    let is_ready = |state: &State<'_>| match state.revision {
        0 => after > 0,
        revision => revision > after,
    };
    let until = made.call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
    for change in service.during(invoked.at, until) {
        let Some(by) = due(case, made.person, change.from.us.max(invoked.us)) else { continue };
        let Some(at) = case.first_after(by) else { continue };
        let from = change.from.at.max(invoked.at);
        let stays_ready = service.during(from, at).all(is_ready);
        let is_over = made.call.answered.is_some_and(|(answered, _)| answered.us <= by);
        if !stays_ready || is_over || has_ended(made.person, by) {
            continue;
        }
        let revision = change.revision;
        let sentence =
            format!("participant {who} still waits for what is after {after}, and {revision} is");
        let violation = Violation::new(id, at, sentence);
        return Some(violation.involving([invoked.at, change.from.at]).by([who]));
    }
    None
}
