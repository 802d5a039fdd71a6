//! A participant holds on the strength of a txn of its session.

use super::*;

#[test]
fn q1_a_grant_long_after_the_newest_txn_is_rejected() {
    let mut story = Story::new();
    check(story.acquire(1, 0).wait(TIMEOUT_MS / 5).hold_unheard(1), "Q1");
}

#[test]
fn q1_a_write_long_after_the_newest_txn_is_rejected() {
    let mut story = Story::new();
    check(story.acquire(1, 0).win(1).wait(TIMEOUT_MS * 9 / 10).write_unheard(1, true), "Q1");
}

#[test]
fn q1_an_answer_that_it_is_held_long_after_the_newest_txn_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).invoke(1, "leader").wait(TIMEOUT_MS * 9 / 10);
    story.answer(1, Outcome::Ok { value: Value::Null, holds: true });
    check(&story, "Q1");
}

#[test]
fn a_grant_that_is_told_late_was_asked_for_in_time() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let (path, fence) = (story.contender(1), story.fence(1));
    story.ask(1, "claim", &path).answer_ask(1, None).fault(FaultKind::Pause, 1);
    story.wait(TIMEOUT_MS / 5).heal(FaultKind::Pause, 1).tell(1, Told::Held { path, fence });
    assert_eq!(judge(&story), []);
}
