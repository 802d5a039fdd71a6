//! The judges notice when the host leaves one of its rules out.

use wok::session::Omission;
use wok::simulation::plan::Plan;
use wok::simulation::subject::Subject;
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::{number, stock};

/// The first seed from there on that breaks something, and what.
fn first_broken(subject: &Subject, from: u64, seeds: u64) -> Option<(u64, String)> {
    (from..from + seeds).find_map(|seed| {
        let verdict = Verdict::of(subject, workload::plan(subject, seed)).unwrap();
        verdict.violations.first().map(|violation| (seed, violation.invariant.to_string()))
    })
}

#[track_caller]
fn check(name: &str, rule: Omission, from: u64, expected: &[&str]) {
    let seeds = number("WOK_MUTANT_SEEDS", 1_000);
    let Some((seed, invariant)) = first_broken(&stock(name).without(rule), from, seeds) else {
        panic!("{name} without {rule:?}: no judge noticed in {seeds} seeds");
    };
    println!("figure: {name} without {rule:?}: {invariant} in seed {seed}");
    assert!(expected.contains(&&*invariant), "{name} without {rule:?}: {invariant} in seed {seed}");
}

/// A host without the rule lets two hold the lock, in one of the seeds at least; the host itself does so in
/// none. The seed decides which server is elected and when, and of which version the servers are: whether the
/// rule is needed may depend on that.
#[track_caller]
fn check_holders(rule: Omission, invariant: &str, scenario: &str) {
    const SEEDS: u64 = 20;
    let lock = stock("lock");
    let without = lock.clone().without(rule);
    let verdict = |subject: &Subject, seed: u64| {
        let plan = Plan { seed, ..toml::from_str(scenario).unwrap() };
        Verdict::of(subject, plan).unwrap()
    };
    let seed = (1..=SEEDS).find(|seed| verdict(&without, *seed).breaks(invariant));
    println!("figure: lock without {rule:?}: {invariant} in seed {seed:?} of its scenario");
    assert!(seed.is_some(), "without {rule:?}: no {invariant} in {SEEDS} seeds");
    for seed in 1..=SEEDS {
        assert_eq!(verdict(&lock, seed).violations, [], "{rule:?}, seed {seed}");
    }
}

#[test]
fn a_contender_that_is_not_looked_for_is_noticed() {
    check("lock", Omission::UuidLookUp, 1, &["M7", "W1"]);
}

#[test]
fn a_look_up_on_a_server_that_is_behind_is_noticed() {
    check("lock", Omission::CatchUpBeforeLookUp, 400, &["M7", "W1"]);
}

#[test]
fn a_deadline_that_is_not_counted_from_the_last_contact_is_noticed() {
    check("lock", Omission::ContactDeadline, 1, &["M5", "Q1"]);
}

#[test]
fn a_claim_that_is_not_looked_at_after_a_pause_is_noticed() {
    check("lock", Omission::LookAfterPause, 1, &["M5", "Q1"]);
}

#[test]
fn heartbeats_that_are_reads_are_noticed() {
    check("lock", Omission::HeartbeatByRead, 1, &["M5", "Q1"]);
}

/// Not only is no majority asked: a follower that is cut off answers its client's heartbeats until
/// after the leader has given its claim to the next.
#[test]
fn heartbeats_that_are_reads_make_two_holders() {
    let makes_two = |name: &str, invariant: &str| {
        let subject = stock(name).without(Omission::HeartbeatByRead);
        let breaks = |seed: &u64| {
            let verdict = Verdict::of(&subject, workload::plan(&subject, *seed)).unwrap();
            verdict.breaks(invariant)
        };
        let seeds = number("WOK_MUTANT_SEEDS", 1_000);
        let seed = (1..=seeds).find(breaks);
        println!("figure: {name} without HeartbeatByRead: {invariant} in seed {seed:?}");
        assert!(seed.is_some(), "{name}: no {invariant} in {seeds} seeds");
    };
    makes_two("lock", "M5");
    makes_two("leader-election", "E2");
}

#[test]
fn a_takeover_that_counts_as_contact_is_noticed() {
    check("lock", Omission::AnswerAfterTakeover, 1, &["M5", "Q1"]);
}

/// A follower takes the session over on the leader's answer to an older question.
#[test]
fn a_takeover_that_counts_as_contact_makes_two_holders() {
    let scenario = include_str!("two_holders/takeover.toml");
    check_holders(Omission::AnswerAfterTakeover, "M5", scenario);
}

#[test]
fn heartbeats_that_are_syncs_are_noticed() {
    check("lock", Omission::HeartbeatBySync, 1, &["M5", "Q1"]);
}

/// A leader that is cut off together with the holder's host answers them.
#[test]
fn heartbeats_that_are_syncs_make_two_holders() {
    check_holders(Omission::HeartbeatBySync, "M5", include_str!("two_holders/sync.toml"));
}

/// Three come one after another where the counter ends: it tells nothing of the last two.
#[test]
fn a_counter_that_is_used_up_is_noticed() {
    let scenario = |seed: u64| {
        let acquire = "{ call = { operation = \"acquire\" } }, { rest = { ms = 2000 } }, \"leave\"";
        let application = |host: u64| {
            let rest = 100 * (host + 1);
            format!(
                "[[applications]]\nhost = {host}\nsteps = [{{ rest = {{ ms = {rest} }} }}, {acquire}]\n"
            )
        };
        let applications: String = (0..3).map(application).collect();
        let counter = i32::MAX - 1;
        format!(
            "seed = {seed}\nhosts = 3\nsession-timeout-ms = 4000\ncounter = {counter}\n{applications}"
        )
    };
    let breaks = |subject: &Subject, seed: u64| {
        let verdict = Verdict::of(subject, toml::from_str(&scenario(seed)).unwrap()).unwrap();
        verdict.breaks("W2")
    };
    let (lock, unchecked) = (stock("lock"), stock("lock").without(Omission::CounterCheck));
    // Which of the two UUIDs comes first is up to the seed.
    assert!((1..=10).any(|seed| breaks(&unchecked, seed)));
    assert!(!(1..=10).any(|seed| breaks(&lock, seed)));
}

#[test]
fn a_grant_on_old_contact_is_noticed() {
    check("lock", Omission::GrantOnOldContact, 1, &["Q1"]);
}

/// The server that has just taken the session over still shows the znode of somebody who was forced out of the
/// line.
#[test]
fn a_grant_on_old_contact_makes_two_holders() {
    let scenario = include_str!("two_holders/old-contact.toml");
    check_holders(Omission::GrantOnOldContact, "W2", scenario);
}

#[test]
fn an_answer_that_is_made_up_by_the_client_is_noticed() {
    check("lock", Omission::MadeUpAnswer, 1, &["M5", "Q1"]);
}

/// The client goes on refusing what it is asked while its server, cut off with it, answers nothing.
#[test]
fn an_answer_that_is_made_up_by_the_client_makes_two_holders() {
    check_holders(Omission::MadeUpAnswer, "M5", include_str!("two_holders/made-up-answer.toml"));
}

#[test]
fn a_name_that_is_taken_for_ones_own_whosever_it_is_is_noticed() {
    // Two announcements have to meet, and a reply to be lost between them.
    check("leader-election", Omission::SessionCheck, 100, &["V1"]);
}

#[test]
fn a_delete_by_path_alone_is_noticed() {
    check("leader-election", Omission::CzxidCheck, 1, &["V1"]);
}
