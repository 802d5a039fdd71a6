//! Waits: a waiter is told, in time, alone, and only what is true.

use super::*;

#[test]
fn w1_a_waiter_whose_turn_it_is_and_who_is_not_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).push(What::Calm).wait(2 * TIMEOUT_MS + 6000).acquire(2, 1);
    check(&story, "W1");
}

#[test]
fn w1_time_counts_from_the_last_fault() {
    let mut story = Story::new();
    story.acquire(1, 0).wait(6 * TIMEOUT_MS).push(What::Calm).wait(TIMEOUT_MS).win(1);
    assert_eq!(judge(&story), []);
}

#[test]
fn w1_who_is_turned_away_without_a_fault_is_rejected() {
    let refused = || Outcome::Err { value: json!("over-limit"), holds: false };
    let mut story = Story::new();
    story.invoke(1, "acquire").answer(1, refused());
    check(&story, "W1");

    let mut story = Story::new();
    story.invoke(1, "acquire").fault(FaultKind::LostAfter, 1).answer(1, refused());
    story.invoke(2, "release").answer(2, refused());
    // A try is there to be turned away.
    story.invoke(3, "try-acquire").answer(3, refused());
    assert_eq!(judge(&story), []);
}

#[test]
fn w2_a_grant_while_the_predecessor_lives_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).acquire(2, 1).win(2).give_up(2, "release");
    check(&story, "W2");
}

#[test]
fn w2_an_acquire_that_answers_what_is_none_of_its_own_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).hold(1);
    let value = json!({ "path": story.contender(1), "fence": 0 });
    story.answer(1, Outcome::Ok { value, holds: true });
    check(&story, "W2");
}

#[test]
fn w2_an_acquire_that_is_answered_before_its_turn_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1);
    let value = json!({ "path": story.contender(2), "fence": story.fence(2) });
    check(story.answer(2, Outcome::Ok { value, holds: false }), "W2");
}

#[test]
fn w2_an_acquire_that_is_answered_what_nobody_claimed_is_rejected() {
    let unclaimed = |fault: Option<FaultKind>| {
        let mut story = Story::new();
        if let Some(fault) = fault {
            story.fault(fault, 1);
        }
        story.acquire(1, 0);
        let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
        story.answer(1, Outcome::Ok { value, holds: false }).invoke(1, "release");
        story
    };
    check(&unclaimed(None), "W2");
    // The claim may have been lost before anybody heard of it.
    assert_eq!(judge(&unclaimed(Some(FaultKind::LostAfter))), []);
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
fn h1_a_waiter_that_watches_the_whole_line_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).ask(2, "watch-children", MOUNT).answer_ask(2, None);
    story.acquire(3, 2).event(2, "children-changed", MOUNT);
    check(&story, "H1");
}

#[test]
fn h1_a_waiter_that_asks_again_and_again_is_rejected() {
    let polls = |fault: Option<FaultKind>| {
        let mut story = Story::new();
        story.acquire(1, 0).win(1).acquire(2, 1);
        if let Some(fault) = fault {
            story.fault(fault, 2);
        }
        for _ in 0..9 {
            story.ask(2, "get-children", MOUNT).answer_ask(2, None);
        }
        story
    };
    check(&polls(None), "H1");
    check(polls(None).acquire(3, 2), "H1");
    assert_eq!(judge(&polls(Some(FaultKind::LostBefore))), []);
    let mut story = polls(None);
    story.give_up(1, "release");
    assert_eq!(judge(&story), [], "the one before it had gone");
}
