//! The judges notice when the host leaves one of its rules out.

use wok::session::Omission;
use wok::simulation::subject::Subject;
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::{number, stock};

/// The first seed from there on that breaks something, and what.
fn first_broken(subject: &Subject, from: u64, seeds: u64) -> Option<(u64, &'static str)> {
    (from..from + seeds).find_map(|seed| {
        let verdict = Verdict::of(subject, workload::plan(subject, seed)).unwrap();
        verdict.violations.first().map(|violation| (seed, violation.invariant))
    })
}

#[track_caller]
fn check(name: &str, rule: Omission, from: u64, expected: &[&str]) {
    let seeds = number("WOK_MUTANT_SEEDS", 300);
    let Some((seed, invariant)) = first_broken(&stock(name).without(rule), from, seeds) else {
        panic!("{name} without {rule:?}: no judge noticed in {seeds} seeds");
    };
    println!("figure: {name} without {rule:?}: {invariant} in seed {seed}");
    assert!(expected.contains(&invariant), "{name} without {rule:?}: {invariant} in seed {seed}");
}

#[test]
fn a_contender_that_is_not_looked_for_is_noticed() {
    check("lock", Omission::UuidLookUp, 1, &["M7", "W1"]);
}

#[test]
fn a_look_up_without_sync_is_noticed() {
    check("lock", Omission::SyncBeforeLookUp, 1, &["M7", "W1"]);
}

#[test]
fn a_deadline_that_is_not_counted_from_the_last_contact_is_noticed() {
    check("lock", Omission::ContactDeadline, 1, &["M5"]);
}

#[test]
fn a_claim_that_is_not_looked_at_after_a_pause_is_noticed() {
    check("lock", Omission::LookAfterPause, 1, &["M5"]);
}

#[test]
fn a_name_that_is_taken_for_ones_own_whosever_it_is_is_noticed() {
    // Two announcements have to meet, and a reply to be lost between them.
    check("leader-election", Omission::SessionCheck, 1_400, &["V1"]);
}

#[test]
fn a_delete_by_path_alone_is_noticed() {
    check("leader-election", Omission::CzxidCheck, 1, &["V1"]);
}
