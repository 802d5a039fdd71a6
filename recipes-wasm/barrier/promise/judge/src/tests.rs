//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::BarrierJudge;

/// Longer than a waiter may take that nothing disturbs.
const LONG_MS: u64 = 1500;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    BarrierJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

/// What may happen to a barrier, in the words of these tests.
trait Barring {
    /// The ensemble creates the znode for that participant, or deletes it.
    fn goes_up(&mut self, who: ParticipantId) -> &mut Self;
    fn goes_down(&mut self, who: ParticipantId) -> &mut Self;
    /// It asks, and this is done.
    fn raise(&mut self, who: ParticipantId) -> &mut Self;
    fn lower(&mut self, who: ParticipantId) -> &mut Self;
    /// It begins a wait and meets the barrier.
    fn meet(&mut self, who: ParticipantId) -> &mut Self;
    /// Its wait is answered.
    fn pass(&mut self, who: ParticipantId) -> &mut Self;
    /// Its component looks at the barrier.
    fn look(&mut self, who: ParticipantId) -> &mut Self;
}

impl Barring for Story {
    fn goes_up(&mut self, who: ParticipantId) -> &mut Self {
        let data = Data::from(format!("owner {who}\nraise-{who}-0").into_bytes());
        let path = MOUNT.to_owned();
        self.commit(session(who), vec![Change::Created { path, ephemeral_owner: 0, data }])
    }

    fn goes_down(&mut self, who: ParticipantId) -> &mut Self {
        self.commit(session(who), vec![Change::Deleted { path: MOUNT.to_owned() }])
    }

    fn raise(&mut self, who: ParticipantId) -> &mut Self {
        self.invoke(who, "raise").goes_up(who).answer_value(who, json!("raised"))
    }

    fn lower(&mut self, who: ParticipantId) -> &mut Self {
        self.invoke(who, "lower").goes_down(who).answer_value(who, Value::Null)
    }

    fn meet(&mut self, who: ParticipantId) -> &mut Self {
        self.invoke(who, "wait").look(who).ask(who, "wait", "")
    }

    fn pass(&mut self, who: ParticipantId) -> &mut Self {
        self.answer_value(who, Value::Null)
    }

    fn look(&mut self, who: ParticipantId) -> &mut Self {
        self.ask(who, "pipeline", MOUNT).answer_ask(who, None)
    }
}

/// Everything that can go right with a barrier.
fn good() -> Story {
    let mut story = Story::new();
    // It is not up.
    story.invoke(2, "wait").look(2).pass(2).invoke(3, "lower").answer_value(3, Value::Null);
    // Two pass at one lowering, and at one that is short.
    story.raise(1).meet(2).meet(3).lower(1).event(2, "deleted", MOUNT).look(2).pass(2);
    story.look(3).pass(3).raise(1).meet(2).lower(1).raise(3).look(2).pass(2);
    story.invoke(1, "raise").answer_value(1, json!({ "was-up": "owner 3" }));
    // What is given up may be done or not, and may be done later.
    story.meet(2).answer(2, Outcome::Cancelled).invoke(2, "lower").answer(2, Outcome::Cancelled);
    story.goes_down(2).invoke(2, "raise").answer(2, Outcome::Cancelled).goes_up(2);
    story.invoke(2, "raise").answer(2, Outcome::Cancelled);
    // A waiter whose host has lost its connection hears of it later.
    story.meet(3).fault(FaultKind::LostBefore, 3).lower(1).wait(TIMEOUT_MS).look(3).pass(3);
    // One that ends hears nothing.
    story.wait(3 * TIMEOUT_MS).raise(1).meet(2).push(What::Calm).lower(1).lose(2);
    story.wait(LONG_MS).leave(1).leave(3);
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
fn a_barrier_that_is_up_from_the_beginning_is_one() {
    let mut story = Story::new();
    story.meet(2).lower(1).look(2).pass(2);
    assert_eq!(verdict(&story.entries), []);
    let mut story = Story::new();
    check(story.invoke(2, "wait").look(2).pass(2).lower(1), "B1");
}

#[test]
fn b1_who_passes_a_barrier_that_is_up_is_rejected() {
    let mut story = Story::new();
    check(story.raise(1).invoke(2, "wait").look(2).pass(2), "B1");
}

#[test]
fn b1_an_opening_before_the_wait_is_none_of_it() {
    let mut story = Story::new();
    check(story.raise(1).lower(1).raise(1).meet(2).pass(2).lower(1), "B1");
}

#[test]
fn b2_who_waits_on_when_it_is_lowered_is_rejected() {
    let mut story = Story::new();
    check(story.raise(1).meet(2).lower(1).wait(LONG_MS).invoke(3, "wait"), "B2");
}

#[test]
fn b2_who_waits_on_because_it_is_raised_again_is_rejected() {
    let mut story = Story::new();
    story.raise(1).meet(2).lower(1).raise(1).look(2).wait(LONG_MS).lower(1).look(2).pass(2);
    check(&story, "B2");
}

#[test]
fn b2_who_has_not_met_it_may_wait_for_the_next_one() {
    let mut story = Story::new();
    story.raise(1).invoke(2, "wait").lower(1).raise(1).look(2).ask(2, "wait", "");
    story.wait(LONG_MS).invoke(3, "lower");
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn b2_a_look_that_was_not_followed_by_a_wait_has_met_nothing() {
    let mut story = Story::new();
    story.raise(1).invoke(2, "wait").look(2).lower(1).raise(1).look(2).ask(2, "wait", "");
    story.wait(LONG_MS).invoke(3, "lower");
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn b2_after_a_fault_it_may_take_as_long_as_a_session_lasts_and_no_longer() {
    let mut story = Story::new();
    story.raise(1).meet(2).fault(FaultKind::LostBefore, 2).lower(1).wait(TIMEOUT_MS);
    story.invoke(3, "wait");
    assert_eq!(verdict(&story.entries), []);
    check(story.wait(3000).invoke(3, "wait"), "B2");
}

#[test]
fn b3_a_raise_that_raised_nothing_is_rejected() {
    let mut story = Story::new();
    story.raise(1).invoke(2, "raise").answer_value(2, json!("raised"));
    check(&story, "B3");
}

#[test]
fn b3_a_barrier_that_was_up_by_somebody_else_is_rejected() {
    let mut story = Story::new();
    story.raise(1).invoke(2, "raise").answer_value(2, json!({ "was-up": "owner 3" }));
    check(&story, "B3");
}

#[test]
fn b3_a_barrier_that_was_not_up_is_rejected() {
    let mut story = Story::new();
    story.raise(1).lower(1).invoke(2, "raise").answer_value(2, json!({ "was-up": "owner 1" }));
    check(&story, "B3");
}

#[test]
fn b3_a_lower_that_leaves_it_up_is_rejected() {
    let mut story = Story::new();
    check(story.raise(1).invoke(2, "lower").answer_value(2, Value::Null), "B3");
}

#[test]
fn b4_what_nobody_asked_for_is_rejected() {
    let mut story = Story::new();
    check(story.goes_up(1), "B4");
    let mut story = Story::new();
    check(story.raise(1).goes_down(1), "B4");
    let mut story = Story::new();
    check(story.raise(1).invoke(2, "wait").goes_down(2).pass(2), "B4");
}

#[test]
fn b4_one_lower_that_lowers_it_twice_is_rejected() {
    let mut story = Story::new();
    story.raise(1).invoke(2, "lower").goes_down(2).raise(1).goes_down(2);
    check(story.answer_value(2, Value::Null), "B4");
}

#[test]
fn b5_who_is_refused_without_a_fault_is_rejected() {
    for operation in ["raise", "wait", "lower"] {
        let mut story = Story::new();
        story.invoke(1, operation);
        story.answer(1, Outcome::Err { value: json!("over-limit"), holds: false });
        check(&story, "B5");
    }
}

#[test]
fn h1_a_wait_that_asks_again_and_again_is_rejected() {
    let mut story = Story::new();
    story.raise(1).meet(2);
    for _ in 0..8 {
        story.look(2);
    }
    check(story.lower(1).look(2).pass(2), "H1");
}
