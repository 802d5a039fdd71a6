//! Who is refused, and why.

use wok_judge::history::{FaultKind, Outcome, What};
use wok_judge::people::Call;
use wok_judge::{Case, Violation, turns};

use crate::Made;

/// C2: a call is refused only if a fault was in its way, or the transaction is the reason.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let has_jumped = case
        .history
        .iter()
        .any(|entry| matches!(entry.what, What::Fault { fault: FaultKind::ClockJump, .. }));
    let has_reason = |call: &Call<'_>| {
        let made = calls.iter().find(|made| made.call.id == call.id);
        made.is_some_and(|made| is_reason(made, has_jumped))
    };
    turns::check_refusals_but(case, id, has_reason, found);
}

fn is_reason(made: &Made<'_, '_>, has_jumped: bool) -> bool {
    let Made { call, tx, .. } = made;
    let Some((answered, Outcome::Err { value, .. })) = call.answered else { return false };
    let was_deleted = tx.deleted.is_some_and(|deleted| deleted.at < answered.at);
    let is_decided = tx.decision().is_some_and(|(decided, _)| decided.at < answered.at);
    match (call.operation, value.as_str()) {
        (_, Some("no-node")) => was_deleted,
        ("register" | "vote", Some("node-exists")) => {
            made.site.is_some_and(|site| tx.was_registered(site, answered.at))
        }
        ("register" | "vote", None) if value.get("invalid").is_some() => {
            let vote = made.site.and_then(|site| tx.vote(site));
            let has_voted = vote.filter(|vote| vote.when.at < answered.at);
            let is_another = match call.operation {
                "vote" => has_voted.is_some_and(|vote| Some(vote.word) != made.choice),
                _ => has_voted.is_some(),
            };
            let is_over = has_jumped || tx.may_be_over(answered.us);
            let is_asked = made.site.is_some_and(|site| tx.sites.contains(&site));
            is_decided || is_another || (is_over && call.operation == "vote") || !is_asked
        }
        ("forget", None) if value.get("invalid").is_some() => {
            let decision = tx.decision();
            decision.is_none_or(|(decided, _)| decided.at > call.invoked.at)
        }
        _ => false,
    }
}
