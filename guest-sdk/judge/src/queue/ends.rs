//! How items go.

use crate::history::Outcome;
use crate::people::Call;
use crate::{Case, Violation};

use super::log::{Gone, How, Item, Log};

/// Q3: an item that is claimed goes by its consumer's word and by no other, and then for good; Q6: one becomes
/// a dead letter when it was taken as often as it may be, and is not taken more often.
pub fn check(case: &Case<'_>, log: &Log<'_>, most: Option<u64>, found: &mut Vec<Violation>) {
    for item in &log.items {
        if let Some(gone) = item.gone
            && let Some((id, why)) = wrong(case, item, gone, most)
        {
            let sentence = format!("{} is gone: {why}", item.path);
            let involved = item.claims.iter().map(|claim| claim.since.at);
            found.push(Violation::new(id, gone.when.at, sentence).involving(involved));
        }
        for claim in &item.claims {
            let version = u64::try_from(claim.version).unwrap_or(u64::MAX);
            if most.is_some_and(|most| version > most) {
                let sentence = format!("{} was taken for the time {version}", item.path);
                found.push(Violation::new("Q6", claim.since.at, sentence));
            }
        }
    }
    check_acknowledged(case, log, found);
}

/// Q3: what is acknowledged is gone, and does not come back to another consumer.
fn check_acknowledged(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
        let acknowledged: Vec<&Item<'_>> = match call.operation {
            "ack" => log.items.iter().filter(|item| is_held(case, item, call)).collect(),
            "ack-item" => named(case, log, call, call.invoked.at).into_iter().collect(),
            _ => continue,
        };
        for item in acknowledged {
            if item.gone.is_none_or(|gone| gone.when.at > answered.at) {
                let (who, operation) = (call.who, call.operation);
                let sentence = format!(
                    "{} is still there, and the `{operation}` of participant {who} was answered",
                    item.path
                );
                found.push(Violation::new("Q3", answered.at, sentence).by([who]));
            }
        }
    }
}

/// Whether the participant that calls has taken the item and has it still. A claim that a withdrawn take has
/// left for a moment does not count.
fn is_held(case: &Case<'_>, item: &Item<'_>, call: &Call<'_>) -> bool {
    let by = |id| case.people.calls().iter().find(|taking| taking.id == id);
    item.claims.iter().any(|claim| {
        let is_its_own = claim.by.and_then(by).is_some_and(|taking| {
            let is_answered = matches!(taking.answered, Some((_, Outcome::Ok { .. })));
            taking.who == call.who && is_answered && !was_given_up(case, taking, call)
        });
        let at = call.invoked.at;
        is_its_own && claim.since.at < at && claim.until.is_none_or(|until| until.at > at)
    })
}

/// Whether the participant gave up what it had taken, between that take and the call. Its claims may stand
/// for a while after that.
fn was_given_up(case: &Case<'_>, taking: &Call<'_>, call: &Call<'_>) -> bool {
    let between = taking.invoked.at + 1..call.invoked.at;
    case.people.calls().iter().any(|it| {
        it.who == call.who
            && ["ack", "reject"].contains(&it.operation)
            && between.contains(&it.invoked.at)
    })
}

/// The item that a call names, by its path or its name, as of that entry.
pub(super) fn named<'l, 'a>(
    case: &Case<'a>,
    log: &'l Log<'a>,
    call: &Call<'_>,
    at: usize,
) -> Option<&'l Item<'a>> {
    let name = name_asked(case, call)?.rsplit('/').next()?;
    let path = [case.people.person(call.who)?.mount, "/items/", name].concat();
    log.find(&path, at)
}

/// How a call names an item, if it does.
pub(super) fn name_asked<'a>(case: &Case<'a>, call: &Call<'_>) -> Option<&'a str> {
    case.arguments(call)?.get("item")?.as_str()
}

fn wrong(
    case: &Case<'_>,
    item: &Item<'_>,
    gone: Gone,
    most: Option<u64>,
) -> Option<(&'static str, String)> {
    let call = gone.by.and_then(|id| case.people.calls().iter().find(|call| call.id == id));
    let by = call.map_or("", |call| call.operation);
    let claim = item.claim_before(gone.when.at);
    let attempts = u64::try_from(item.version).unwrap_or(u64::MAX);
    match gone.how {
        How::Buried if claim.is_some() => {
            Some(("Q6", "it was buried while somebody had it".to_owned()))
        }
        How::Buried if most != Some(attempts) => {
            Some(("Q6", format!("it was buried after {attempts} attempts")))
        }
        How::Buried => None,
        How::WithClaim => match claim {
            None => Some(("Q3", "nobody had claimed it".to_owned())),
            Some(claim) if claim.session != gone.session => {
                Some(("Q3", "another session's consumer had it".to_owned()))
            }
            Some(_) if !["ack", ""].contains(&by) => {
                Some(("Q3", format!("`{by}` removed it, and nobody had acknowledged it")))
            }
            Some(_) => None,
        },
        // By the name and the fence, or by somebody who takes at most once.
        How::Alone => match (by, claim) {
            ("ack-item", Some(claim)) => {
                let is_meant = call.is_some_and(|call| fence(case, call) == Some(claim.czxid));
                (!is_meant).then(|| ("Q3", "it was taken under another fence".to_owned()))
            }
            ("ack-item", None) => Some(("Q3", "nobody had claimed it".to_owned())),
            ("take" | "take-many", None) | ("", _) => None,
            (by, None) if most.is_some_and(|most| attempts >= most) => {
                Some(("Q6", format!("`{by}` removed it, and there is no dead letter")))
            }
            (by, _) => Some(("Q3", format!("`{by}` removed it while somebody had it"))),
        },
    }
}

/// The fence that a call of `ack-item` names.
fn fence(case: &Case<'_>, call: &Call<'_>) -> Option<i64> {
    let fence = case.arguments(call)?.get("fence")?;
    fence.as_i64().or_else(|| fence.as_str()?.parse().ok())
}
