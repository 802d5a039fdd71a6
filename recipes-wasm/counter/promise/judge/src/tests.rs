//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use serde_json::json;
use wok_judge::history::{Change, Entry, FaultKind, Outcome, ParticipantId, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, session};
use wok_judge::{Judge, Violation};

use crate::CounterJudge;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    CounterJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

fn set(path: &str, data: impl Into<Vec<u8>>) -> Change {
    Change::DataSet { path: path.to_owned(), version: 1, data: data.into().into() }
}

/// What may happen to a counter, in the words of these tests.
trait Counting {
    /// The ensemble commits the value for that participant.
    fn becomes(&mut self, who: ParticipantId, value: i64) -> &mut Self;
    fn get(&mut self, who: ParticipantId, value: i64) -> &mut Self;
    /// An addition, and what it makes of the counter.
    fn add(&mut self, who: ParticipantId, by: i64, sum: i64) -> &mut Self;
    fn ask_to_add(&mut self, who: ParticipantId, by: i64) -> &mut Self;
    fn ask_to_set(&mut self, who: ParticipantId, expected: i64, value: i64) -> &mut Self;
}

impl Counting for Story {
    fn becomes(&mut self, who: ParticipantId, value: i64) -> &mut Self {
        self.commit(session(who), vec![set(MOUNT, value.to_be_bytes())])
    }

    fn get(&mut self, who: ParticipantId, value: i64) -> &mut Self {
        self.invoke(who, "get").answer_value(who, json!(value))
    }

    fn add(&mut self, who: ParticipantId, by: i64, sum: i64) -> &mut Self {
        self.ask_to_add(who, by).becomes(who, sum).answer_value(who, json!(sum))
    }

    fn ask_to_add(&mut self, who: ParticipantId, by: i64) -> &mut Self {
        self.invoke_with(who, "add", json!({ "by": by }))
    }

    fn ask_to_set(&mut self, who: ParticipantId, expected: i64, value: i64) -> &mut Self {
        self.invoke_with(who, "compare-and-set", json!({ "expected": expected, "value": value }))
    }
}

/// Everything that can go right with a counter.
fn good() -> Story {
    let mut story = Story::new();
    story.get(1, 0).ask_to_add(1, 5).commit(session(1), vec![created(MOUNT, 0)]);
    story.becomes(1, 5).answer_value(1, json!(5)).get(2, 5);
    story.ask_to_set(2, 5, 9).becomes(2, 9).answer_value(2, json!("set"));
    // It was 5 when the call was made, and 9 when it was decided.
    story.ask_to_set(3, 9, 9).ask_to_add(1, -2).becomes(1, 7).answer_value(1, json!(7));
    story.answer_value(3, json!({ "differs": 7 }));

    // What was withdrawn is added after all, and what was not answered is not.
    story.ask_to_add(3, 4);
    let call = story.call(3);
    story.push(What::Withdrawn { participant: 3, call }).answer(3, Outcome::Cancelled);
    story.becomes(3, 11).get(1, 11).ask_to_add(3, 1).answer_error(3, json!("outcome-unknown"));
    // Two on one host, of which one is not answered: either of them may have added.
    story.ask_to_add(2, 3).becomes(2, 14).fault(FaultKind::HostKill, 2).get(1, 14);

    story.add(1, i64::MAX - 14, i64::MAX).ask_to_add(1, 1);
    story.answer_error(1, json!({ "invalid": "they make more than 64 bits hold" }));
    story.add(1, -i64::MAX, 0).refuse(1);

    // A reader at a leader that has lost the others.
    story.push(What::Fault {
        fault: FaultKind::LeaderCut,
        host: None,
        struck: Vec::new(),
        cut: None,
    });
    story.add(1, 6, 6).get(3, 0).get(3, i64::MAX).get(1, 6);
    story.push(What::Healed { fault: FaultKind::LeaderCut, host: None });
    story.fault(FaultKind::HalfOpen, 3).ask_to_add(3, 1);
    story.answer_error(3, json!({ "other": "it had no time" })).heal(FaultKind::HalfOpen, 3);
    story.push(What::Calm).wait(3 * TIMEOUT_MS).get(3, 6);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    assert_judged_without_beginning(&good(), verdict);
}

#[test]
fn other_znodes_are_none_of_the_counter() {
    let mut story = Story::new();
    story.add(1, 5, 5).commit(session(1), vec![set(&format!("{MOUNT}/adder-1"), "me")]);
    story.commit(session(2), vec![set("/mounts/b", "a text")]).get(2, 5);
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn a1_what_was_acknowledged_and_is_not_there_is_rejected() {
    let mut story = Story::new();
    story.ask_to_add(1, 5).answer_value(1, json!(5));
    check(&story, "A1");

    let mut story = Story::new();
    story.add(1, 5, 5).ask_to_set(2, 5, 6).answer_value(2, json!("set"));
    check(&story, "A1");
}

#[test]
fn a1_what_was_added_twice_is_rejected() {
    let mut story = Story::new();
    story.ask_to_add(1, 5).becomes(1, 5).becomes(1, 10).answer_value(1, json!(10));
    check(&story, "A1");

    // Also where nobody was told.
    let mut story = Story::new();
    story.ask_to_add(1, 5).becomes(1, 5).becomes(1, 10).answer(1, Outcome::Ended);
    check(&story, "A1");
}

#[test]
fn a1_a_lost_update_is_rejected() {
    let mut story = Story::new();
    story.ask_to_add(1, 5).ask_to_add(2, 3).becomes(1, 5).becomes(2, 3);
    story.answer_value(1, json!(5)).answer_value(2, json!(3));
    check(&story, "A1");
}

#[test]
fn a1_a_change_that_nobody_asked_for_is_rejected() {
    let mut story = Story::new();
    story.becomes(2, 5).ask_to_add(1, 5);
    check(&story, "A1");

    // It comes after the answer.
    let mut story = Story::new();
    story.add(1, 5, 5).becomes(1, 10);
    check(&story, "A1");

    // It was refused.
    let mut story = Story::new();
    story.fault(FaultKind::Delay, 1).ask_to_add(1, 5).becomes(1, 5);
    story.answer_error(1, json!({ "other": "no" }));
    check(&story, "A1");
}

#[test]
fn a1_what_is_no_counter_is_rejected() {
    let mut story = Story::new();
    story.ask_to_add(1, 5).commit(session(1), vec![set(MOUNT, "5")]);
    check(&story, "A1");

    // The least significant byte first.
    let mut story = Story::new();
    story.ask_to_add(1, 5).commit(session(1), vec![set(MOUNT, 5_i64.to_le_bytes())]);
    story.answer_value(1, json!(5));
    check(&story, "A1");
}

#[test]
fn a1_a_sum_that_wraps_is_rejected() {
    let mut story = Story::new();
    story.add(1, i64::MAX, i64::MAX).ask_to_add(1, 1).becomes(1, i64::MIN);
    story.answer_value(1, json!(i64::MIN.to_string()));
    check(&story, "A1");
}

#[test]
fn a2_a_comparison_that_did_not_differ_during_the_call_is_rejected() {
    let mut story = Story::new();
    story.add(1, 5, 5).add(1, 1, 6).ask_to_set(2, 6, 9).answer_value(2, json!({ "differs": 5 }));
    check(&story, "A2");

    let mut story = Story::new();
    story.add(1, 5, 5).ask_to_set(2, 5, 9).answer_value(2, json!({ "differs": 5 }));
    check(&story, "A2");
}

#[test]
fn a3_a_value_that_never_was_is_rejected() {
    let mut story = Story::new();
    story.add(1, 5, 5).get(2, 4);
    check(&story, "A3");
}

#[test]
fn a3_a_value_that_is_over_is_rejected() {
    let mut story = Story::new();
    story.add(1, 5, 5).add(1, 1, 6).get(2, 5);
    check(&story, "A3");

    // While a leader is cut off, too, if the reader has written since.
    let mut story = Story::new();
    story.add(2, 5, 5).push(What::Fault {
        fault: FaultKind::LeaderCut,
        host: None,
        struck: Vec::new(),
        cut: None,
    });
    story.add(2, 1, 6).add(2, 1, 7).get(2, 5);
    check(&story, "A3");
}

#[test]
fn a4_who_is_refused_though_the_sum_fits_is_rejected() {
    let mut story = Story::new();
    story.ask_to_add(1, 5).answer_error(1, json!({ "invalid": "too much" }));
    check(&story, "A4");
}

#[test]
fn a4_who_is_refused_for_nothing_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "get").answer_error(1, json!({ "other": "no" }));
    check(&story, "A4");
}
