//! The judge accepts what is good, and rejects what breaks a promise by that promise alone. What both stock
//! queues promise is tried where its passes are, in `wok_judge::queue`.

use serde_json::{Value, json};
use wok_judge::history::Entry;
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::queue::stories::{QueueStory, good_queue};
use wok_judge::stories::{good_election, good_lock};
use wok_judge::{Judge, Violation};

use crate::PriorityQueueJudge;

fn empty() -> QueueStory {
    QueueStory::new(name, Some(0))
}

fn name(number: u32, priority: Option<i64>) -> String {
    let priority = match priority {
        Some(0) => "80000000",
        Some(-1) => "7fffffff",
        other => panic!("no item of these stories has priority {other:?}"),
    };
    format!("pq-{priority}-u{number}-item-{number:010}")
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    PriorityQueueJudge::begin(r#"{"max-attempts":2}"#).unwrap().verdict(history)
}

/// It breaks that, and nothing else.
#[track_caller]
fn check(queue: &QueueStory, invariant: &str, says: &str) {
    let found = verdict(&queue.story.entries);
    assert_breaks(&found, &[invariant]);
    assert!(found.iter().any(|it| it.sentence.contains(says)), "{says:?} is not in {found:?}");
}

/// What can go right with any queue; and then an urgent item is taken before an older one.
fn good() -> QueueStory {
    let mut queue = good_queue(name, Some(0));
    let last = queue.next_number();
    queue.put(1, "d").prioritise(-1);
    let urgent = queue.next_number();
    queue.put(1, "e").remove(3, urgent).remove(3, last).calm(60_000);
    queue
}

#[test]
fn a_queue_that_does_what_it_promises_is_good_wherever_the_history_is_cut_off() {
    assert_good_wherever_cut_off(&good().story, verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good().story] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn of_one_priority_the_oldest_is_taken_first() {
    let says = "of priority 0 was taken while";
    check(empty().put(1, "a").put(1, "b").take(2, 1), "P1", says);
    check(empty().put(1, "a").put(1, "b").remove(2, 1), "P1", says);
}

#[test]
fn the_most_urgent_is_taken_first() {
    let mut queue = empty();
    queue.put(1, "a").prioritise(-1).put(1, "b").take(2, 0);
    check(&queue, "P1", "of priority -1 was there");
    // What comes when the queue was listed is not overlooked.
    let mut queue = empty();
    queue.put(1, "a").ask(2).look(2).prioritise(-1).put(1, "b").claim(2, 0);
    let told = queue.told(2, 0);
    queue.answer(2, told);
    assert_eq!(verdict(&queue.story.entries), []);
    // A list from before the call is none.
    let mut queue = empty();
    queue.put(1, "a").put(1, "b").take(2, 0).ack(2, 0).prioritise(-1).put(1, "c");
    queue.ask(2).claim(2, 1);
    let told = queue.told(2, 1);
    queue.answer(2, told);
    check(&queue, "P1", "of priority -1 was there");
}

#[test]
fn the_priority_in_an_items_name_is_the_one_that_it_was_put_in_with() {
    let mut queue = empty();
    queue.story.invoke_with(1, "put", json!({ "data": "a", "priority": 3 }));
    queue.add(1, "a").story.answer_value(1, Value::Null);
    check(&queue, "Q1", "was acknowledged");
    let mut queue = empty();
    queue.prioritise(-1).put(1, "a").ask(2).look(2).claim(2, 0);
    let mut told = queue.told(2, 0);
    told["priority"] = json!(7);
    queue.answer(2, told);
    check(&queue, "Q1", "its priority is -1");
}

#[test]
fn peek_answers_the_most_urgent_as_it_was_during_the_call() {
    check(empty().put(1, "a").put(1, "b").peek(3, None, Some(1)), "Q7", "comes before it");
    let mut queue = empty();
    queue.put(1, "a").put(1, "b").prioritise(-1).put(1, "c").peek(3, None, Some(0));
    check(&queue, "Q7", "comes before it");
}

#[test]
fn an_item_is_taken_as_often_as_the_config_says() {
    let mut queue = empty();
    queue.put(1, "a").take(2, 0).reject(2, 0).take(2, 0).reject(2, 0).take(3, 0);
    check(&queue, "Q6", "for the time 3");
    let unlimited = PriorityQueueJudge::begin("{}").unwrap();
    assert_eq!(unlimited.verdict(&queue.story.entries), []);
}
