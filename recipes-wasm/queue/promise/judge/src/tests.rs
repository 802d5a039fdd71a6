//! The judge accepts what is good, and rejects what breaks a promise by that promise alone. What both stock
//! queues promise is tried where its passes are, in `wok_judge::queue`.

use wok_judge::history::Entry;
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::queue::stories::{QueueStory, good_queue};
use wok_judge::stories::{good_election, good_lock};
use wok_judge::{Judge, Violation};

use crate::QueueJudge;

fn empty() -> QueueStory {
    QueueStory::new(name, None)
}

fn name(number: u32, _: Option<i64>) -> String {
    format!("qn-u{number}-item-{number:010}")
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    QueueJudge::begin(r#"{"max-attempts":2}"#).unwrap().verdict(history)
}

/// It breaks that, and nothing else.
#[track_caller]
fn check(queue: &QueueStory, invariant: &str, says: &str) {
    let found = verdict(&queue.story.entries);
    assert_breaks(&found, &[invariant]);
    assert!(found.iter().any(|it| it.sentence.contains(says)), "{says:?} is not in {found:?}");
}

#[test]
fn a_queue_that_does_what_it_promises_is_good_wherever_the_history_is_cut_off() {
    assert_good_wherever_cut_off(&good_queue(name, None).story, verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good_queue(name, None).story] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn the_oldest_is_taken_first() {
    check(empty().put(1, "a").put(1, "b").take(2, 1), "Q4", "which is older");
    check(empty().put(1, "a").put(1, "b").remove(2, 1), "Q4", "which is older");
    // What was taken before and came back may be younger in somebody's list.
    let mut queue = empty();
    queue.put(1, "a").put(1, "b").take(2, 0).reject(2, 0).take(3, 1);
    assert_eq!(verdict(&queue.story.entries), []);
}

#[test]
fn peek_answers_the_oldest_as_far_as_the_server_knows_that_it_asks() {
    // What the one that looks has written itself is known there.
    check(empty().put(1, "a").put(3, "b").peek(3, None, Some(1)), "Q7", "which is older");
    let mut queue = empty();
    assert_eq!(verdict(&queue.put(1, "a").put(3, "b").peek(2, None, None).story.entries), []);
}

#[test]
fn an_item_is_taken_as_often_as_the_config_says() {
    let mut queue = empty();
    queue.put(1, "a").take(2, 0).reject(2, 0).take(2, 0).reject(2, 0).take(3, 0);
    check(&queue, "Q6", "for the time 3");
    let unlimited = QueueJudge::begin("{}").unwrap();
    assert_eq!(unlimited.verdict(&queue.story.entries), []);
}
