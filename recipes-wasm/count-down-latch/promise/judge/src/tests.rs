//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::LatchJudge;

/// Longer than a wait may take that nothing disturbs.
const LONG_MS: u64 = 1500;

/// Of a latch for two.
fn verdict(history: &[Entry]) -> Vec<Violation> {
    LatchJudge { count: 2 }.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

fn set(data: &str) -> Change {
    let data = Data::from(data.as_bytes().to_vec());
    Change::DataSet { path: MOUNT.to_owned(), version: 1, data }
}

/// What may happen to a latch, in the words of these tests.
trait Counting {
    /// The ensemble makes the latch.
    fn make(&mut self, who: ParticipantId) -> &mut Self;
    /// The ensemble counts the id, and that leaves so many.
    fn counts(&mut self, who: ParticipantId, id: &str, remaining: u32) -> &mut Self;
    fn ask_to_count(&mut self, who: ParticipantId, id: &str) -> &mut Self;
    /// It asks, and this is done.
    fn count(&mut self, who: ParticipantId, id: &str, remaining: u32) -> &mut Self;
    /// Its component makes a host call.
    fn look(&mut self, who: ParticipantId) -> &mut Self;
}

impl Counting for Story {
    fn make(&mut self, who: ParticipantId) -> &mut Self {
        self.commit(session(who), vec![created(MOUNT, 0)]);
        let gate = created(&format!("{MOUNT}/gate"), 0);
        self.commit(session(who), vec![set("2 of 2"), gate])
    }

    fn counts(&mut self, who: ParticipantId, id: &str, remaining: u32) -> &mut Self {
        let child = created(&format!("{MOUNT}/count-{id}"), 0);
        let mut changes = vec![child, set(&format!("{remaining} of 2"))];
        if remaining == 0 {
            changes.push(Change::Deleted { path: format!("{MOUNT}/gate") });
        }
        self.commit(session(who), changes)
    }

    fn ask_to_count(&mut self, who: ParticipantId, id: &str) -> &mut Self {
        self.invoke_with(who, "count-down", json!({ "id": id }))
    }

    fn count(&mut self, who: ParticipantId, id: &str, remaining: u32) -> &mut Self {
        self.ask_to_count(who, id).counts(who, id, remaining).answer_value(who, json!(remaining))
    }

    fn look(&mut self, who: ParticipantId) -> &mut Self {
        self.ask(who, "get-data", MOUNT).answer_ask(who, None)
    }
}

/// Everything that can go right with a latch.
fn good() -> Story {
    let mut story = Story::new();
    story.invoke(3, "remaining").answer_value(3, json!(2));
    story.invoke(2, "wait").look(2).make(2).look(2).ask(2, "wait", "");
    // The same id again, by another participant; and one whose caller gives up.
    story.count(1, "a", 1).ask_to_count(3, "a").answer_value(3, json!(1));
    story.invoke(3, "remaining").ask_to_count(1, "b").answer(1, Outcome::Cancelled);
    story.counts(1, "b", 0).answer_value(3, json!(1));
    // A waiter whose host has lost its connection hears of it later.
    story.fault(FaultKind::LostBefore, 2).wait(TIMEOUT_MS).look(2).answer_value(2, Value::Null);
    // It stays open, and nobody counts any more.
    story.invoke(1, "wait").look(1).answer_value(1, Value::Null);
    story.ask_to_count(1, "c").answer_value(1, json!(0));
    story.ask_to_count(1, "b").answer_value(1, json!(0)).invoke(3, "remaining");
    story.answer_value(3, json!(0)).push(What::Calm).invoke(3, "wait").lose(3).wait(LONG_MS);
    story.leave(1).leave(2);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn a_judge_wants_to_know_how_many_have_to_count() {
    assert!(LatchJudge::begin("{\"count\": 3}").is_ok());
    assert!(LatchJudge::begin("null").is_err());
}

#[test]
fn other_children_are_none_of_the_latch() {
    let mut story = good();
    story.commit(7, vec![created(&format!("{MOUNT}/somebody-elses"), 0)]);
    story.commit(7, vec![created(&format!("{MOUNT}-beside/count-x"), 0)]);
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn a2_who_passes_before_it_is_open_is_rejected() {
    let mut story = Story::new();
    check(story.make(1).count(1, "a", 1).invoke(2, "wait").answer_value(2, Value::Null), "A2");
}

#[test]
fn a2_one_id_asked_for_twice_opens_nothing() {
    let mut story = Story::new();
    story.make(1).count(1, "a", 1).ask_to_count(1, "a").answer_value(1, json!(1));
    check(story.invoke(2, "wait").answer_value(2, Value::Null), "A2");
}

#[test]
fn c1_who_waits_on_when_it_is_open_is_rejected() {
    let mut story = Story::new();
    story.make(1).invoke(2, "wait").count(1, "a", 1).count(1, "b", 0).wait(LONG_MS);
    check(story.invoke(3, "wait"), "C1");
    let mut story = Story::new();
    story.make(1).count(1, "a", 1).count(1, "b", 0).invoke(2, "wait").wait(LONG_MS);
    check(story.invoke(3, "wait"), "C1");
}

#[test]
fn c1_who_waits_on_at_a_closed_latch_is_none_of_these() {
    let mut story = Story::new();
    story.make(1).invoke(2, "wait").count(1, "a", 1).wait(LONG_MS).invoke(3, "wait");
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn c1_after_a_fault_it_may_take_as_long_as_a_session_lasts_and_no_longer() {
    let mut story = Story::new();
    story.make(1).invoke(2, "wait").fault(FaultKind::LostBefore, 2);
    story.count(1, "a", 1).count(1, "b", 0).wait(TIMEOUT_MS).invoke(3, "remaining");
    assert_eq!(verdict(&story.entries), []);
    check(story.wait(3000).answer(3, Outcome::Cancelled), "C1");
}

#[test]
fn c2_an_id_that_is_counted_twice_is_rejected() {
    let mut story = Story::new();
    check(story.make(1).count(1, "a", 1).ask_to_count(1, "a").counts(1, "a", 0), "C2");
}

#[test]
fn c2_what_nobody_asked_for_is_rejected() {
    let mut story = Story::new();
    check(story.make(1).counts(1, "a", 1), "C2");
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").counts(1, "b", 1), "C2");
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").counts(2, "a", 1), "C2");
}

#[test]
fn c2_an_id_that_is_taken_back_is_rejected() {
    let mut story = Story::new();
    let path = format!("{MOUNT}/count-a");
    check(story.make(1).count(1, "a", 1).commit(session(1), vec![Change::Deleted { path }]), "C2");
}

#[test]
fn c2_what_is_written_to_remain_is_what_the_ids_leave() {
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").counts(1, "a", 2), "C2");
    let mut story = Story::new();
    check(story.make(1).commit(session(1), vec![set("1 of 2")]), "C2");
    let mut story = Story::new();
    check(story.make(1).commit(session(1), vec![set("3 of 3")]), "C2");
}

#[test]
fn c3_what_did_not_remain_during_the_call_is_rejected() {
    let mut story = Story::new();
    story.make(1).count(1, "a", 1).invoke(2, "remaining");
    check(story.answer_value(2, json!(2)), "C3");
    let mut story = Story::new();
    check(story.make(1).invoke(2, "remaining").answer_value(2, json!(1)).count(1, "a", 1), "C3");
}

#[test]
fn c3_a_count_that_is_acknowledged_and_not_counted_is_rejected() {
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").answer_value(1, json!(1)), "C3");
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").answer_value(1, json!(2)), "C3");
}

#[test]
fn c3_what_remained_before_its_own_count_is_no_answer() {
    let mut story = Story::new();
    check(story.make(1).ask_to_count(1, "a").counts(1, "a", 1).answer_value(1, json!(2)), "C3");
}

#[test]
fn c4_who_is_refused_without_a_fault_is_rejected() {
    for operation in ["count-down", "wait", "remaining"] {
        let mut story = Story::new();
        story.invoke(1, operation);
        story.answer(1, Outcome::Err { value: json!("over-limit"), holds: false });
        check(&story, "C4");
    }
}

#[test]
fn h1_a_waiter_that_looks_at_every_count_is_rejected() {
    let mut story = Story::new();
    story.make(1).invoke(2, "wait").look(2);
    for _ in 0..4 {
        story.look(2).look(2);
    }
    story.count(1, "a", 1).count(1, "b", 0).look(2);
    check(story.answer_value(2, Value::Null), "H1");
}
