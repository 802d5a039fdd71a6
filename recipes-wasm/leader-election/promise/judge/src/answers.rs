//! Who `leader` and `observe` say leads: did it, and is it what they tell of it?

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{Entry, Outcome, Told, What};
use wok_judge::lines::{moments, owner, within};
use wok_judge::people::{Belief, Call, Person};
use wok_judge::truth::Contender;
use wok_judge::{Case, Moment, Violation};

use crate::announcements::Announcements;

/// E4 of who leads: the answers of `leader` and `observe` tell of the one that was first in line at a moment
/// of the call, or of nobody if nobody stood in line then. What they and `leader-changed` say of a leader is
/// what its znode says. E5: `leader` tells of the announcement that the leader had made, or had not.
pub(super) fn check(
    case: &Case<'_>,
    announcements: &Announcements<'_>,
    id: &'static str,
    of_announcements: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls() {
        if !matches!(call.operation, "leader" | "observe") {
            continue;
        }
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let mut complain = |id, why: String| {
            let (who, operation) = (call.who, call.operation);
            let sentence =
                format!("the `{operation}` of participant {who} was answered, but {why}");
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        };
        let leader = term(case, person, value);
        match led(case, person, call, answered, leader) {
            Err(why) => complain(id, why),
            Ok(from) => {
                let Some(leader) = leader else { continue };
                if let Some(why) = objection(case, person, leader, |key| value.get(key)?.as_str()) {
                    complain(id, why);
                }
                let until = case.end_of(answered);
                if call.operation == "leader"
                    && !is_announced(announcements, leader, value, (from, until))
                {
                    complain(of_announcements, "that was not its announcement".to_owned());
                }
            }
        }
    }
    check_news(case, id, found);
}

/// W2 of `volunteer`: one that leads when it answers is answered the fence of its term.
pub(super) fn check_volunteers(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| call.operation == "volunteer") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        if value.get("fence").is_some_and(|fence| !fence.is_null()) {
            continue;
        }
        // A component that is woken has answered before, and may come to lead before the answer arrives.
        let mut meanwhile = case.history.iter().take(answered.at).skip(call.invoked.at);
        let is_woken = |entry: &Entry| match &entry.what {
            What::Woken { participant, .. } => *participant == call.who,
            _ => false,
        };
        let since = if meanwhile.any(is_woken) { call.invoked.at } else { answered.at };
        let path = value.get("path").and_then(Value::as_str);
        let leads = |belief: &&Belief<'_>| {
            let is_it = belief.path.strip_prefix(person.mount.trim_end_matches('/')) == path;
            is_it && belief.since.at < since && belief.lasts_beyond(answered.at)
        };
        let Some(belief) = case.people.beliefs_of(call.who).find(leads) else { continue };
        let who = call.who;
        let sentence = format!(
            "the `volunteer` of participant {who} was answered without a fence, though it leads"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at, belief.since.at]).by([who]));
    }
}

/// The entry from which on the leader led of whom an answer tells, at the earliest that the answer allows;
/// of an answer that tells of nobody, the one from which on nobody did.
fn led(
    case: &Case<'_>,
    person: &Person<'_>,
    call: &Call<'_>,
    answered: Moment,
    leader: Option<&Contender<'_>>,
) -> Result<usize, String> {
    let within = within(case, call, answered);
    let from = within.start;
    let first = |at: usize| case.truth.line_at(person.mount, at).first().map(|it| it.id);
    let was_so = |at: &usize| first(*at) == leader.map(|leader| leader.id);
    moments(case, &[person.mount], within).into_iter().find(was_so).ok_or_else(|| match leader {
        Some(leader) => format!("{} led at no moment since entry {from}", leader.path),
        None => format!("somebody led at every moment since entry {from}"),
    })
}

/// What `leader-changed` says of a leader.
fn check_news(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant: who, notice: Told::Emitted { event, detail } } = &entry.what
        else {
            continue;
        };
        let Some(person) = case.people.person(*who).filter(|_| event == "leader-changed") else {
            continue;
        };
        let fence = detail.get("fence").cloned().map(Value::String);
        let leader = fence.and_then(|fence| of_fence(case, person, &fence));
        let told = |key: &str| detail.get(key).map(String::as_str);
        let Some(why) = leader.and_then(|leader| objection(case, person, leader, told)) else {
            continue;
        };
        let sentence = format!("participant {who} was told of a leader, but {why}");
        found.push(Violation::new(id, at, sentence).by([*who]));
    }
}

/// The leader of whom an answer tells.
fn term<'a>(case: &'a Case<'_>, person: &Person<'_>, value: &Value) -> Option<&'a Contender<'a>> {
    of_fence(case, person, value.get("fence")?)
}

fn of_fence<'a>(
    case: &'a Case<'_>,
    person: &Person<'_>,
    fence: &Value,
) -> Option<&'a Contender<'a>> {
    let czxid = fence_of(fence).and_then(|fence| i64::try_from(fence).ok())?;
    case.truth.created_by(czxid).find(|it| it.parent == person.mount)
}

/// What is told of the leader that its znode does not say.
fn objection<'t>(
    case: &Case<'_>,
    person: &Person<'_>,
    leader: &Contender<'_>,
    told: impl Fn(&str) -> Option<&'t str>,
) -> Option<String> {
    let path = leader.path.strip_prefix(person.mount.trim_end_matches('/'));
    if told("path").is_some_and(|told| Some(told) != path) {
        return Some(format!("the leader of that fence is {}", leader.path));
    }
    let owner = owner(case, leader)?;
    let is_another = told("owner").is_some_and(|told| told != owner);
    is_another.then(|| format!("the owner of {} is {owner}", leader.path))
}

/// Whether what is told of the leader's announcement was so between two entries.
fn is_announced(
    announcements: &Announcements<'_>,
    leader: &Contender<'_>,
    value: &Value,
    (from, until): (usize, usize),
) -> bool {
    let mut stood = announcements.of_leader(leader, from, until);
    match value.get("announcement") {
        Some(Value::String(text)) => stood.any(|it| it == Some(text.as_bytes())),
        None | Some(Value::Null) => stood.any(|it| it.is_none()),
        // What is no text is told in another form.
        Some(_) => stood.any(|it| it.is_some()),
    }
}
