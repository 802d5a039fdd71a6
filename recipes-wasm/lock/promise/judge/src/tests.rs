//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use serde_json::{Value, json};
use wok_judge::history::{Change, Entry, FaultKind, Outcome, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{
    MOUNT, Story, TIMEOUT_MS, configured, created, good_election, good_lock, joined, session,
};
use wok_judge::{Judge, Violation};

use crate::LockJudge;

mod lines;
mod revoking;
mod waits;

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

pub(crate) fn verdict(history: &[Entry]) -> Vec<Violation> {
    judged_by(&Value::Null, history)
}

/// What is said of a history whose participants all have this config.
fn judged_by(config: &Value, history: &[Entry]) -> Vec<Violation> {
    LockJudge.verdict(&configured(history, config))
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
    assert_good_wherever_cut_off(&good_lock(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn what_comes_in_one_instant_may_be_taken_down_in_either_order() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
    let (path, fence) = (story.contender(1), story.fence(1));
    story.answer(1, Outcome::Ok { value, holds: true });
    story.at_once().write(1, true).at_once().tell(1, Told::Held { path, fence });
    story.give_up(1, "release").invoke(1, "contenders").leave(1).at_once().answer(1, NOTHING);
    story.invoke(1, "contenders").answer(1, Outcome::Ended);
    assert_eq!(judge(&story), []);
}

#[test]
fn a_sentence_says_who_when_and_against_whom() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).expire(1).win(2).wait(20_000).lose(1);
    let found = judge(&story);
    let [violation] = found.as_slice() else { panic!("{found:#?}") };
    let (one, two) = (story.fence(1), story.fence(2));
    let sentence = format!(
        "participant 1 still believed to have the lock with fence {one} when it was participant \
         2's with fence {two}"
    );
    assert_eq!(violation.sentence, sentence);
    assert_eq!(violation.participants, [1, 2]);
    let What::Txn { changes, .. } = &story.entries[violation.at].what else { panic!() };
    assert!(changes.contains(&Change::SessionClosed { session: session(1) }));
}

#[test]
fn m1_a_fence_that_is_not_the_czxid_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let (path, fence) = (story.contender(1), story.fence(1) - 1);
    story.tell(1, Told::Held { path, fence });
    check(&story, "M1");
}

#[test]
fn m1_a_grant_of_somebody_elses_contender_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).invoke(2, "acquire");
    let (path, fence) = (story.contender(1), story.fence(1));
    story.tell(2, Told::Held { path, fence });
    check(&story, "M1");
}

#[test]
fn m1_a_grant_of_another_clients_contender_is_rejected() {
    let mut story = Story::new();
    let (path, ephemeral_owner) = (format!("{MOUNT}/_c_x-lock-0000000000"), 99);
    story.commit(99, vec![created(&path, ephemeral_owner)]);
    story.invoke(1, "acquire").tell(1, Told::Held { path, fence: 104 });
    check(&story, "M1");
}

#[test]
fn m1_a_grant_of_a_neighbours_contender_in_the_same_session_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).push(joined(4, 1, session(1)));
    let (path, fence) = (story.contender(1), story.fence(1));
    story.tell(4, Told::Held { path, fence });
    check(&story, "M1");
}

#[test]
fn m1_a_grant_of_a_contender_that_went_before_the_call_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).delete(1).answer(1, Outcome::Cancelled).invoke(1, "acquire").hold(1);
    check(&story, "M1");
}

#[test]
fn m1_an_answer_of_a_grant_that_was_given_up_before_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").invoke(1, "acquire");
    let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
    check(story.answer(1, Outcome::Ok { value, holds: false }), "M1");
}

#[test]
fn m2_a_counter_that_goes_back_makes_two_owners() {
    let mut story = Story::new();
    story.acquire(1, 5).acquire(2, 3);
    check(&story, "M2");
}

#[test]
fn m2_a_counter_that_wraps_does_not() {
    let mut story = Story::new();
    story.acquire(1, 2_147_483_647).win(1).invoke(2, "acquire");
    let path = format!("{MOUNT}/_c_2-lock--2147483648");
    let ephemeral_owner = session(2);
    story.commit(ephemeral_owner, vec![created(&path, ephemeral_owner)]);
    assert_eq!(judge(&story), []);
}

#[test]
fn m3_a_resource_that_takes_a_lower_fence_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).fault(FaultKind::Expiry, 1).expire(1);
    story.win(2).write(2, true).write(1, true).lose(1);
    check(&story, "M3");
}

#[test]
fn m3_a_resource_that_refuses_the_highest_fence_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).write(1, false);
    check(&story, "M3");
}

#[test]
fn m3_a_write_with_a_fence_of_nobodys_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).push(What::Wrote { participant: 1, fence: 7, accepted: true });
    check(&story, "M3");
}

#[test]
fn m4_a_fence_that_is_granted_twice_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1);
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).hold(1);
    check(&story, "M4");
}

#[test]
fn m4_a_claim_that_is_told_again_while_it_lasts_is_no_other_grant() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).hold(1).write(1, true).give_up(1, "release");
    assert_eq!(judge(&story), []);
}

#[test]
fn m5_a_belief_that_outlives_the_session_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).expire(1).win(2).wait(500).lose(1);
    check(&story, "M5");
}

#[test]
fn m5_a_write_under_a_claim_that_is_lost_is_rejected_even_after_a_pause() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).fault(FaultKind::Pause, 1).wait(TIMEOUT_MS).expire(1);
    story.heal(FaultKind::Pause, 1).write(1, true).lose(1);
    check(&story, "M5");
}

#[test]
fn m5_a_host_that_does_not_notice_after_a_pause_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).fault(FaultKind::Pause, 1).wait(TIMEOUT_MS);
    story.expire(1).win(2).heal(FaultKind::Pause, 1).wait(500).lose(1);
    check(&story, "M5");
}

#[test]
fn m5_a_write_after_the_loss_was_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").write(1, true);
    check(&story, "M5");

    let mut story = Story::new();
    story.acquire(1, 0).win(1).tell(1, Told::Lost { reason: "session".to_owned() });
    check(story.write(1, true), "M5");
}

#[test]
fn m5_a_grant_that_is_told_when_the_next_has_it_is_rejected_there() {
    let mut story = Story::new();
    story.acquire(1, 0).acquire(2, 1).expire(1).win(2).hold(1);
    check(&story, "M5");
    let told = story.entries.len() - 1;
    assert_eq!(judge(&story)[0].at, told);
}

#[test]
fn m5_who_deletes_its_own_claim_knows_it_by_the_answer() {
    let asking = |name: &str| {
        let mut story = Story::new();
        story.acquire(1, 0).win(1).acquire(2, 1).invoke(1, "release");
        let path = story.contender(1);
        story.ask(1, name, &path);
        story
    };
    let mut unanswered = asking("multi");
    unanswered.delete(1).win(2).wait(2 * TIMEOUT_MS).lose(1);
    assert_eq!(judge(&unanswered), []);
    let mut answered = asking("multi");
    answered.delete(1).wait(2 * TIMEOUT_MS).answer_ask(1, None).win(2).wait(2 * TIMEOUT_MS);
    check(answered.lose(1), "M5");
    // It asks for nothing that deletes the znode.
    let mut reading = asking("get-data");
    check(reading.delete(1).win(2).wait(2 * TIMEOUT_MS).lose(1), "M5");
    // Another client deletes it meanwhile.
    let mut wronged = asking("multi");
    let path = wronged.contender(1);
    wronged.commit(session(2), vec![Change::Deleted { path }]).win(2).wait(2 * TIMEOUT_MS);
    let found = judge(wronged.lose(1));
    assert!(found.iter().any(|it| it.invariant == "M5"), "{found:?}");
}

#[test]
fn m6_a_grant_before_one_who_came_earlier_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 5).win(1).acquire(2, 7).acquire(3, 6).give_up(1, "release").win(3);
    check(&story, "M6");
}

#[test]
fn m7_a_contender_that_outlives_its_call_is_rejected() {
    let mut story = Story::new();
    story.fault(FaultKind::LostBefore, 1).push(What::Calm);
    story.invoke(1, "try-acquire").refuse(1).stand(1, 0).answer(1, NOTHING);
    story.wait(4 * TIMEOUT_MS).refuse(1);
    check(&story, "M7");
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
fn m7_a_contender_goes_with_a_session_that_is_lost() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled).lose(2);
    story.wait(TIMEOUT_MS + 3000).expire(2);
    assert_eq!(judge(&story), []);
}

#[test]
fn m8_a_release_by_somebody_who_has_nothing_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).invoke(2, "release").answer(2, NOTHING);
    check(&story, "M8");

    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").invoke(1, "release").answer(1, NOTHING);
    check(&story, "M8");
}
