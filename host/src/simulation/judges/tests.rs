//! Each judge accepts what is good, and alone rejects what breaks its promise.

use serde_json::{Value, json};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};

use super::*;
use crate::guest::{Operation, Parameter, ValueType};
use crate::simulation::history::{Change, FaultKind, Outcome, Told, What};
use crate::simulation::subject::Subject;

mod bounds;
mod claims;
mod quorum;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    super::judge(history, None, "null").expect("no judge is there to fail")
}

fn judge(story: &Story) -> Vec<Violation> {
    verdict(&story.entries)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&judge(story), &[expected]);
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    for story in [good_lock(), good_election()] {
        assert_good_wherever_cut_off(&story, verdict);
    }
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn m7_a_contender_that_outlives_its_call_is_rejected() {
    let failed = Outcome::Err { value: json!("no-node"), holds: false };
    for outcome in [Outcome::Cancelled, failed] {
        let mut story = Story::new();
        story.fault(FaultKind::LostBefore, 1).push(What::Calm);
        story.invoke(1, "try-acquire").refuse(1).stand(1, 0).answer(1, outcome);
        story.wait(4 * TIMEOUT_MS).refuse(1);
        check(&story, "M7");
    }
}

#[test]
fn m7_a_fault_gives_the_host_more_time_to_clean_up() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled);
    story.fault(FaultKind::HalfOpen, 2).wait(8000).heal(FaultKind::HalfOpen, 2).wait(8000);
    story.write(1, true).delete(2).wait(TIMEOUT_MS).write(1, true);
    assert_eq!(judge(&story), []);
}

#[test]
fn m7_calm_ends_every_fault() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled);
    story.fault(FaultKind::HalfOpen, 2).push(What::Calm).wait(TIMEOUT_MS + 3000).write(1, true);
    check(&story, "M7");
}

#[test]
fn m7_a_contender_goes_with_a_session_that_is_lost() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled).lose(2);
    story.wait(TIMEOUT_MS + 3000).expire(2);
    assert_eq!(judge(&story), []);
}

#[test]
fn m7_a_candidate_that_outlives_its_participant_is_rejected() {
    let mut story = Story::new();
    story.push(What::Calm).volunteer(1, 0).leave(1).wait(4 * TIMEOUT_MS).leave(2);
    check(&story, "M7");
}

#[test]
fn m7_a_contender_that_nobody_was_told_of_is_rejected_when_its_participant_has_ended() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).ask(2, "contend", MOUNT);
    let (path, ephemeral_owner) = (format!("{MOUNT}/_c_2-lock-0000000001"), session(2));
    story.commit(ephemeral_owner, vec![created(&path, ephemeral_owner)]);
    story.leave(2).wait(TIMEOUT_MS + 3000).write(1, true);
    check(&story, "M7");
}

#[test]
fn m7_a_request_with_two_contenders_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "acquire").stand(1, 0).stand(1, 1);
    check(&story, "M7");

    let mut story = Story::new();
    story.invoke(1, "acquire").stand(1, 0).delete(1).stand(1, 1);
    assert_eq!(judge(&story), []);
}

#[test]
fn m7_an_ephemeral_znode_that_is_left_in_the_end_is_rejected() {
    let mut story = Story::new();
    story.leave(1).leave(2).leave(3);
    story.end(Some(("/mounts/a/announcement", session(2))), Vec::new(), 0);
    check(&story, "M7");
}

#[test]
fn w1_a_call_that_is_never_answered_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "enter");
    let blocked = vec![story.call(1)];
    check(story.end(None, blocked, 0), "W1");
}

#[test]
fn h1_a_release_that_wakes_two_waiters_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).watch(2, 1).acquire(3, 2).watch(3, 1);
    let path = story.contender(1);
    story.give_up(1, "release").event(2, "deleted", &path).event(3, "deleted", &path);
    check(&story, "H1");
}

#[test]
fn of_each_invariant_a_few_violations_are_told() {
    let mut story = Story::new();
    for _ in 0..10 {
        story.ask(1, "get-data", "/elsewhere");
    }
    let found = judge(&story);
    assert_eq!(found.len(), 3);
}

#[test]
fn a_stock_judge_judges_its_own_operations_whatever_the_package_is_called() {
    let recipe = ModuleSource::Stock("barrier".to_owned()).read(None).expect("a stock recipe");
    let subject = Subject::new("barrier", &recipe, None, CompileCache::Off).expect("it loads");
    let own = subject.module.interface();
    // Without its own WIT and judge, as another tool makes a component.
    let judge = |interface: &Interface| {
        let promised = promised("mine", b"", interface, &CompileCache::Off).expect("it loads");
        promised.map(|judge| judge.name().to_owned())
    };
    let named = |name: &str| {
        let mut named = own.clone();
        named.name = name.to_owned();
        named
    };
    for name in ["wok:barrier/barrier@0.1.0", "my:fork/barrier", "my:fork/barrier@2.0.0"] {
        assert_eq!(judge(&named(name)).as_deref(), Some("stock barrier"), "{name}");
    }
    for name in ["my:fork/barriers", "wok:barrier/lock@0.1.0", "wok:barrier/", ""] {
        assert_eq!(judge(&named(name)), None, "{name}");
    }
    let other = |change: fn(&mut Vec<Operation>)| {
        let mut other = named("my:own/barrier");
        change(&mut other.operations);
        assert_eq!(judge(&other), None, "{:?}", other.operations);
    };
    other(|operations| drop(operations.pop()));
    other(|operations| operations.extend(operations.last().cloned()));
    other(|operations| operations.iter_mut().for_each(|it| it.result = None));
    other(|operations| {
        let number = Parameter { name: "number".to_owned(), ty: ValueType::U32 };
        operations.iter_mut().for_each(|it| it.parameters.push(number.clone()));
    });
}
