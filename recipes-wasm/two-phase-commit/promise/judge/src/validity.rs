//! Why a transaction was decided as it was, and that what is written is written once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{FaultKind, Outcome, What};
use wok_judge::{Case, Violation};

use crate::log::{self, Log, Tx};

/// T2: a transaction asks the sites, with the payload and the time, that its coordinator gave it: the votes
/// of other sites would be no reason to commit.
pub(super) fn check_terms(
    case: &Case<'_>,
    log: &Log<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls().iter().filter(|call| call.operation == "begin") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let (Some(person), Some(path)) = (case.people.person(call.who), value.as_str()) else {
            continue;
        };
        let Some(terms) = case.arguments(call) else { continue };
        let is_as_asked = |tx: &Tx<'_>| {
            let sites = terms.get("sites").and_then(Value::as_array).into_iter().flatten();
            let asked: BTreeSet<_> = sites.filter_map(Value::as_str).collect();
            let within_ms = terms.get("within-ms").and_then(fence_of);
            let payload = terms.get("payload").and_then(Value::as_str).map(str::as_bytes);
            (call.invoked.at..answered.at).contains(&tx.created.at)
                && tx.session == person.session
                && tx.sites.iter().copied().collect::<BTreeSet<_>>() == asked
                && within_ms.map(|ms| ms.saturating_mul(1000)) == Some(tx.within_us)
                && payload.is_none_or(|payload| tx.payload == Some(payload))
        };
        if !log.find(person.mount, path).is_some_and(is_as_asked) {
            let sentence = format!(
                "the `begin` of participant {} was answered {path}, which is not what it asked for",
                call.who
            );
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([call.who]));
        }
    }
}

/// T2: a commit has the votes of all sites, cast in time by the servers' clock, and an abort has a reason.
pub(super) fn check_reasons(
    case: &Case<'_>,
    log: &Log<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let jumped = case
        .history
        .iter()
        .position(|entry| matches!(entry.what, What::Fault { fault: FaultKind::ClockJump, .. }));
    for tx in log.all() {
        let Some((decided, word)) = tx.decision() else { continue };
        let votes: BTreeMap<_, _> = (tx.votes.iter())
            .filter(|vote| vote.when.at < decided.at && vote.word == "commit")
            .map(|vote| (vote.site, vote))
            .collect();
        let missing = tx.sites.iter().find(|site| !votes.contains_key(*site));
        match (word, missing) {
            ("commit", None) => {
                // No clock but the servers' has a say in this: a host whose clock is behind may vote too
                // late, and then the transaction is to be aborted.
                if let Some(late) = votes.values().find(|vote| tx.is_late(vote)) {
                    let what =
                        format!("committed by the vote of {}, which came too late", late.site);
                    found.push(log::wrong(id, decided, tx, &what).involving([late.when.at]));
                }
            }
            ("commit", Some(site)) => {
                let what = format!("committed without the vote of {site}");
                found.push(log::wrong(id, decided, tx, &what));
            }
            ("abort", None) if votes.values().any(|vote| tx.may_be_late(vote)) => {}
            ("abort", None) => {
                let what = "aborted, and all its sites had voted to commit in time";
                found.push(log::wrong(id, decided, tx, what));
            }
            ("abort", Some(_)) => {
                let may_be_early = jumped.is_some_and(|jumped| jumped < decided.at);
                if !may_be_early && !has_reason(tx, decided.at, decided.us) {
                    let what = "aborted, and no site had voted so or died, and there was time left";
                    found.push(log::wrong(id, decided, tx, what));
                }
            }
            _ => found.push(log::wrong(id, decided, tx, "was decided in words nobody reads")),
        }
    }
}

fn has_reason(tx: &Tx<'_>, at: usize, us: u64) -> bool {
    let aborts = tx.votes.iter().any(|vote| vote.when.at < at && vote.word == "abort");
    aborts || tx.has_lost_a_site(at) || tx.may_be_over(us)
}

/// T3: what is written is written once, and nothing after the decision.
pub(super) fn check_once(log: &Log<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for tx in log.all() {
        if let Some(again) = tx.decisions.get(1) {
            let what = format!("was decided again, to {}", again.word);
            found.push(log::wrong(id, again.when, tx, &what));
        }
        let mut known = BTreeSet::new();
        for vote in &tx.votes {
            let site = vote.site;
            if !known.insert(site) {
                let what = format!("has a second vote of {site}, to {}", vote.word);
                found.push(log::wrong(id, vote.when, tx, &what));
            }
            if tx.decision().is_some_and(|(decided, _)| decided.at <= vote.when.at) {
                let what = format!("has a vote of {site} from after its decision");
                found.push(log::wrong(id, vote.when, tx, &what));
            }
            if !tx.sites.contains(&site) || !["commit", "abort"].contains(&vote.word) {
                let what = format!("has a vote of {site}, {:?}, that says nothing", vote.word);
                found.push(log::wrong(id, vote.when, tx, &what));
            }
        }
        if let Some(deleted) = tx.deleted.filter(|_| tx.decisions.is_empty()) {
            found.push(log::wrong(id, deleted, tx, "was deleted before it was decided"));
        }
    }
}
