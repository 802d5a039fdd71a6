//! Who is refused, and why.

use std::collections::BTreeSet;

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{FaultKind, Outcome, What};
use wok_judge::people::Call;
use wok_judge::refusals::{self, is_invalid, is_name, length_of};
use wok_judge::{Case, Violation, turns};

use crate::Made;
use crate::log::Log;

/// What `begin` takes: so many sites, with names of so many bytes, a payload of so many bytes, and a week.
const MOST_SITES: usize = 40;
const LONGEST_NAME: usize = 64;
const LARGEST_PAYLOAD: usize = 16 * 1024;
const MOST_MS: u64 = 604_800_000;

/// C2: a call is refused only if a fault was in its way, its arguments are wrong, or the transaction is the
/// reason. One with wrong arguments is refused.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
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
            || is_invalid(call) && has_wrong_arguments(case, call)
            || is_of_no_transaction(case, log, call)
    };
    turns::check_refusals_but(case, id, has_reason, found);
    refusals::check_answered(case, id, |call| has_wrong_arguments(case, call), found);
}

/// Whether the interface says that it is refused, whatever transactions there are.
fn has_wrong_arguments(case: &Case<'_>, call: &Call<'_>) -> bool {
    let Some(arguments) = case.arguments(call) else { return false };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let is_wrong_site = || text("site").is_some_and(|site| !is_site(site));
    let is_no_path = || text("transaction").is_some_and(|path| !is_transaction(path));
    match call.operation {
        "begin" => begins_what_is_wrong(arguments),
        "transactions" => is_wrong_site(),
        "register" | "vote" => is_wrong_site() || is_no_path(),
        "outcome" | "status" | "forget" => is_no_path(),
        _ => false,
    }
}

fn begins_what_is_wrong(arguments: &Value) -> bool {
    let sites = arguments.get("sites").and_then(Value::as_array);
    let are_wrong_sites = |sites: &Vec<Value>| {
        let names: BTreeSet<_> = sites.iter().filter_map(Value::as_str).collect();
        !(1..=MOST_SITES).contains(&sites.len())
            || names.len() < sites.len()
            || names.iter().any(|name| !is_site(name))
    };
    let length = arguments.get("payload").and_then(length_of);
    let within_ms = arguments.get("within-ms").and_then(fence_of);
    sites.is_some_and(are_wrong_sites)
        || length.is_some_and(|length| length > LARGEST_PAYLOAD)
        || within_ms.is_some_and(|ms| !(1..=MOST_MS).contains(&ms))
}

/// Whether a site may have that name: one that is no step of a path.
fn is_site(name: &str) -> bool {
    is_name(name, LONGEST_NAME) && name != "." && name != ".."
}

/// Whether a path is such as `begin` answers.
fn is_transaction(path: &str) -> bool {
    path.strip_prefix("/tx-").is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// Whether a call is refused because nobody had begun the transaction when it was made.
fn is_of_no_transaction(case: &Case<'_>, log: &Log<'_>, call: &Call<'_>) -> bool {
    let (Some((_, Outcome::Err { value, .. })), Some(person)) =
        (call.answered, case.people.person(call.who))
    else {
        return false;
    };
    let path = case.arguments(call).and_then(|arguments| arguments.get("transaction")?.as_str());
    let is_unknown = |path: &str| {
        let tx = log.find(person.mount, path);
        tx.is_none_or(|tx| tx.created.at > call.invoked.at)
    };
    value == "no-node" && path.is_some_and(is_unknown)
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
