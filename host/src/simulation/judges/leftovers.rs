//! What is left of a request, and of a participant.

use std::collections::BTreeMap;

use wok_judge::people::{End, Over, Person};
use wok_judge::truth::Contender;
use wok_judge::{Case, Moment, Violation};

use crate::simulation::history::{Left, Outcome, Watches, What};

/// M7: a contender goes with the request that asked for it if that is withdrawn or fails, when the claim
/// of it is given up, and with its participant, while its session goes on; and a lost reply never makes two of one.
pub(super) fn check_znodes(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for contender in case.truth.contenders() {
        let asker = case.people.asker(contender);
        if let Some(twin) = contender.twin.and_then(|twin| case.truth.contender(twin)) {
            let (at, path) = (contender.created.at, contender.path);
            let sentence = format!("{path} was created while {} was there", twin.path);
            let violation = Violation::new(id, at, sentence).involving([twin.created.at]);
            found.push(violation.by(asker.map(|person| person.id)));
        }
        let reason =
            asker.and_then(|person| Some((person, reason_to_go(case, person, contender)?)));
        let Some((person, (from, why))) = reason else { continue };
        let Some(at) = case.overdue(person, contender, from) else { continue };
        let sentence = format!("{} is still there, and {why}", contender.path);
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([contender.created.at, from.at]).by([person.id]));
    }
    if let Some((at, entry)) = case.history.iter().enumerate().next_back()
        && let What::Final { znodes, .. } = &entry.what
    {
        for path in orphans(case, znodes) {
            let sentence = format!("{path} is left though all participants of its session ended");
            found.push(Violation::new(id, at, sentence));
        }
    }
}

/// Since when a contender has no business there any more, and why.
fn reason_to_go(
    case: &Case<'_>,
    person: &Person<'_>,
    contender: &Contender<'_>,
) -> Option<(Moment, String)> {
    let call = case.people.call_at(person.id, contender.created.at);
    let failed = call.and_then(|call| {
        let (answered, outcome) = call.answered?;
        let how = match outcome {
            Outcome::Cancelled => "was withdrawn",
            Outcome::Err { holds: false, .. } => "failed",
            _ => return None,
        };
        let id = person.id;
        Some((answered, format!("the `{}` of participant {id} {how}", call.operation)))
    });
    let ended = match person.end {
        Some(End::Told(when)) => Some((when, format!("participant {} has ended", person.id))),
        Some(End::Killed(_)) | None => None,
    };
    let released = case.people.beliefs_of(person.id).find_map(|belief| {
        let is_it = belief.contender.is_some_and(|it| it.created == contender.created);
        let (when, _) = belief.over.filter(|(_, how)| is_it && *how == Over::Released)?;
        Some((when, format!("participant {} has given it up", person.id)))
    });
    failed.into_iter().chain(ended).chain(released).min_by_key(|(from, _)| *from)
}

/// The ephemeral znodes of sessions whose participants have all ended.
fn orphans<'a>(
    case: &Case<'_>,
    znodes: &'a BTreeMap<String, Left>,
) -> impl Iterator<Item = &'a str> {
    let mut over: BTreeMap<i64, bool> = BTreeMap::new();
    for person in case.people.persons() {
        *over.entry(person.session).or_insert(true) &= person.end.is_some();
    }
    let is_orphan = move |left: &Left| over.get(&left.ephemeral_owner) == Some(&true);
    znodes.iter().filter(move |(_, left)| is_orphan(left)).map(|(path, _)| path.as_str())
}

/// X2: nothing is heard of a participant after its end, and on a host where all have ended no watch is
/// left. An answer of the same instant may be taken down after the end that it came before.
pub(super) fn check_silence(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let (participant, act) = match &entry.what {
            What::HostCall { participant, name, .. } => (participant, format!("called `{name}`")),
            What::Woken { participant, .. } => (participant, "was woken".to_owned()),
            What::Told { participant, .. } => (participant, "told something".to_owned()),
            What::Returned { participant, outcome, .. } if *outcome != Outcome::Ended => {
                (participant, "answered a call".to_owned())
            }
            What::Final { watches, .. } => {
                let is_left = |left: &&Watches| {
                    let mut persons = case.people.persons().filter(|it| it.host == left.host);
                    left.count > 0 && persons.all(|person| person.end.is_some())
                };
                for Watches { host, count } in watches.iter().filter(is_left) {
                    let sentence = format!("host {host} is left with {count} server watches");
                    found.push(Violation::new(id, at, sentence));
                }
                continue;
            }
            _ => continue,
        };
        let end = case.people.person(*participant).and_then(|person| person.end);
        let Some(End::Told(end)) = end.filter(|end| end.when().at < at) else { continue };
        if matches!(entry.what, What::Returned { .. }) && entry.at_us == end.us {
            continue;
        }
        let sentence = format!("participant {participant} {act} after it had ended");
        found.push(Violation::new(id, at, sentence).involving([end.at]).by([*participant]));
    }
}
