//! Why a transaction was decided as it was, and that what is written is written once.

use std::collections::BTreeSet;

use wok_judge::history::{FaultKind, What};
use wok_judge::{Case, Violation};

use crate::log::{self, Log, Tx};

/// T2: a commit has the votes of all sites, and an abort has a reason.
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
        let votes: BTreeSet<_> = (tx.votes.iter())
            .filter(|vote| vote.when.at < decided.at && vote.word == "commit")
            .map(|vote| vote.site)
            .collect();
        let missing = tx.sites.iter().find(|site| !votes.contains(*site));
        match (word, missing) {
            ("commit", None) => {}
            ("commit", Some(site)) => {
                let what = format!("committed without the vote of {site}");
                found.push(log::wrong(id, decided, tx, &what));
            }
            ("abort", None) => {
                let what = "aborted, and all its sites had voted to commit";
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
        if let Some((again, word)) = tx.decisions.get(1) {
            found.push(log::wrong(id, *again, tx, &format!("was decided again, to {word}")));
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
