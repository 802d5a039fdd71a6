//! The passes accept what is good, and reject what breaks a promise by that promise alone.

use serde_json::{Value, json};

use super::log::Log;
use super::stories::{QueueStory, good_queue};
use super::{Kind, Peek};
use crate::history::{Change, Data, Entry, Outcome, Told};
use crate::proofs::{assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning};
use crate::stories::{MOUNT, TIMEOUT_MS, good_election, good_lock};
use crate::truth::Truth;
use crate::{Case, Promise, Stay, Violation, first_of_each};

const PROMISE: Promise = Promise {
    asks: &["take", "take-many"],
    waits: &["take", "take-many"],
    stay: Stay::WithCall,
    ..Promise::NONE
};

/// A queue whose items have no priority.
const PLAIN: Kind = Kind {
    id: "OLD",
    earlier: "is older",
    later: "a younger",
    priority: None,
    peek: Peek::Unconfirmed,
};

/// A queue whose items begin with their priority.
const RANKED: Kind = Kind {
    id: "RANK",
    earlier: "comes before it",
    later: "a less urgent one",
    priority: Some(|name| name.split_once('_').map_or(0, |(rank, _)| rank.parse().unwrap())),
    peek: Peek::BehindSync,
};

/// An empty queue of that kind.
fn empty(kind: &Kind) -> QueueStory {
    QueueStory::new(name, kind.priority.map(|_| 0))
}

fn good(kind: &Kind) -> QueueStory {
    good_queue(name, kind.priority.map(|_| 0))
}

fn name(number: u32, priority: Option<i64>) -> String {
    let rank = priority.map(|priority| format!("{priority}_")).unwrap_or_default();
    format!("{rank}qn-u{number}-item-{number:010}")
}

/// What the passes find where items are taken twice at most.
fn verdict(kind: &Kind, history: &[Entry]) -> Vec<Violation> {
    let truth = Truth::of(history);
    let case = Case::of(history, &truth, &PROMISE);
    let log = Log::of(&case, kind);
    let mut found = Vec::new();
    super::check(&case, &log, Some(2), &mut found);
    first_of_each(found)
}

/// A queue of that kind breaks that, and nothing else.
#[track_caller]
fn check_of(kind: &Kind, queue: &QueueStory, invariant: &str, says: &str) {
    let found = verdict(kind, &queue.story.entries);
    assert_breaks(&found, &[invariant]);
    assert!(found.iter().any(|it| it.sentence.contains(says)), "{says:?} is not in {found:?}");
}

/// One without priorities does.
#[track_caller]
fn check(queue: &QueueStory, invariant: &str, says: &str) {
    check_of(&PLAIN, queue, invariant, says);
}

#[track_caller]
fn check_good(queue: &QueueStory, why: &str) {
    assert_eq!(verdict(&PLAIN, &queue.story.entries), [], "{why}");
}

#[test]
fn a_queue_that_does_what_it_promises_is_good_wherever_the_history_is_cut_off() {
    for kind in [PLAIN, RANKED] {
        assert_good_wherever_cut_off(&good(&kind).story, |history| verdict(&kind, history));
    }
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_passes() {
    for kind in [PLAIN, RANKED] {
        for story in [good_lock(), good_election(), good(&kind).story] {
            assert_judged_without_beginning(&story, |history| verdict(&kind, history));
        }
    }
}

#[test]
fn an_acknowledged_put_is_there_once() {
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(1, "put", json!({ "data": "a" })).answer_value(1, Value::Null);
    check(&queue, "Q1", "put in 0");
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(1, "put", json!({ "data": "a" }));
    queue.add(1, "a").add(1, "a").story.answer_value(1, Value::Null);
    check(&queue, "Q1", "put in 2");
}

#[test]
fn a_put_that_is_given_up_is_there_once_or_not_at_all() {
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(1, "put-all", json!({ "items": ["a", "b"] }));
    queue.add(1, "a").story.answer(1, Outcome::Cancelled);
    check(&queue, "Q5", "put in 1");
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(1, "put", json!({ "data": "a" }));
    queue.story.answer_error(1, json!("outcome-unknown"));
    check(&queue, "Q5", "outcome-unknown");
}

#[test]
fn an_item_has_the_priority_that_it_was_put_in_with() {
    let put = |asked: Value| {
        let mut queue = empty(&RANKED);
        queue.prioritise(3).story.invoke_with(1, "put", asked);
        queue.add(1, "a").story.answer_value(1, Value::Null);
        queue
    };
    let asked = json!({ "data": "a", "priority": 3 });
    assert_eq!(verdict(&RANKED, &put(asked).story.entries), []);
    for asked in [json!({ "data": "a", "priority": 2 }), json!({ "data": "a" })] {
        check_of(&RANKED, &put(asked), "Q1", "was acknowledged");
    }
    let mut queue = empty(&RANKED);
    queue.put(1, "a").ask(2).look(2).claim(2, 0);
    let mut told = queue.told(2, 0);
    told["priority"] = json!(7);
    queue.answer(2, told);
    check_of(&RANKED, &queue, "Q1", "its priority is 0");
}

#[test]
fn what_nobody_has_put_in_is_not_taken() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").ask(2).look(2).claim(2, 0);
    let mut told = queue.told(2, 0);
    told["data"] = json!("b");
    queue.answer(2, told);
    check(&queue, "Q1", "other data");
    // Where it would come in the order is no question then.
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").story.invoke_with(2, "take-many", json!({ "max": 2 }));
    queue.look(2).claim(2, 0);
    let (told, mut unknown) = (queue.told(2, 0), queue.told(2, 0));
    unknown["path"] = json!("/items/qn-x-item-0000000009");
    queue.answer(2, json!([told, unknown]));
    check(&queue, "Q1", "nobody has put that in");
}

#[test]
fn several_items_are_told_in_their_order() {
    /// Two items of these priorities are taken by one call, and told as they were put in, or the other way
    /// round.
    fn taken(kind: &Kind, priorities: [i64; 2], are_turned: bool) -> QueueStory {
        let mut queue = empty(kind);
        for priority in priorities {
            if kind.priority.is_some() {
                queue.prioritise(priority);
            }
            queue.put(1, "a");
        }
        queue.story.invoke_with(2, "take-many", json!({ "max": 2 }));
        queue.look(2).claim_all(2, &[0, 1]);
        let (first, second) = (queue.told(2, 0), queue.told(2, 1));
        queue.answer(2, if are_turned { json!([second, first]) } else { json!([first, second]) });
        queue
    }
    for (kind, priorities, are_turned) in
        [(PLAIN, [0, 0], false), (RANKED, [0, 0], false), (RANKED, [0, -1], true)]
    {
        let queue = taken(&kind, priorities, are_turned);
        assert_eq!(verdict(&kind, &queue.story.entries), [], "{kind:?} {priorities:?}");
    }
    check(&taken(&PLAIN, [0, 0], true), "OLD", "behind a younger");
    check_of(&RANKED, &taken(&RANKED, [0, 0], true), "RANK", "behind a less urgent one");
    check_of(&RANKED, &taken(&RANKED, [0, -1], false), "RANK", "behind a less urgent one");
}

#[test]
fn a_call_takes_no_more_items_than_it_asks_for() {
    /// Two items are taken by a call that asks for so many at most, and told.
    fn claimed(max: u64) -> QueueStory {
        let mut queue = empty(&PLAIN);
        queue.put(1, "a").put(1, "b");
        queue.story.invoke_with(2, "take-many", json!({ "max": max }));
        queue.look(2).claim_all(2, &[0, 1]);
        let told = json!([queue.told(2, 0), queue.told(2, 1)]);
        queue.answer(2, told);
        queue
    }
    check(&claimed(1), "Q9", "took 2 items");
    let mut queue = claimed(2);
    queue.story.invoke_with(2, "take-many", json!({ "max": 1 }));
    let told = json!([queue.told(2, 0), queue.told(2, 1)]);
    queue.answer(2, told);
    check_good(&queue, "it had both before, and is answered what it has");

    let mut queue = empty(&PLAIN);
    queue.put(1, "a").put(1, "b");
    queue.story.invoke_with(2, "take-many", json!({ "max": 1 }));
    let (first, second) = (queue.item(0), queue.item(1));
    let told = json!([queue.removed(0), queue.removed(1)]);
    queue.delete(2, first).delete(2, second).story.answer_value(2, told);
    check(&queue, "Q9", "took 2 items");
}

#[test]
fn what_is_removed_at_its_taking_is_told_to_the_one_who_took_it() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").put(1, "b").ask(2);
    let (first, second) = (queue.item(0), queue.item(1));
    let told = queue.removed(1);
    queue.delete(2, first).delete(2, second).story.answer_value(2, told);
    check(&queue, "Q2", "nobody has it");
}

#[test]
fn what_is_claimed_goes_by_its_consumers_word() {
    // It is removed when it is taken.
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").ask(2).look(2).claim(2, 0);
    let (item, told) = (queue.item(0), queue.told(2, 0));
    queue.delete(2, item).answer(2, told);
    check(&queue, "Q3", "while somebody had it");
    // It is removed by one who had it before.
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0).reject(2, 0).take(3, 0).story.invoke(2, "ack");
    let item = queue.item(0);
    queue.delete(2, item).story.answer_value(2, Value::Null);
    check(&queue, "Q3", "while somebody had it");
}

#[test]
fn an_item_is_told_with_its_own_claim_and_attempt() {
    for (key, value, says) in [("fence", json!(7), "no claim"), ("attempt", json!(2), "attempt 1")]
    {
        let mut queue = empty(&PLAIN);
        queue.put(1, "a").ask(2).look(2).claim(2, 0);
        let mut told = queue.told(2, 0);
        told[key] = value;
        queue.answer(2, told);
        check(&queue, "Q3", says);
    }
}

#[test]
fn an_item_is_a_dead_letter_in_its_time_and_is_kept() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0).reject(2, 0).ask(3).bury(3, 0, "a");
    check(&queue, "Q6", "after 1 attempts");
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0).reject(2, 0).take(2, 0).reject(2, 0).take(3, 0);
    check(&queue, "Q6", "for the time 3");
}

#[test]
fn one_that_has_items_is_granted_no_others() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").put(1, "b").ask(2).look(2).claim(2, 0);
    let told = queue.told(2, 0);
    queue.claim(2, 1).answer(2, told);
    check(&queue, "M5", "while it had");
}

#[test]
fn a_claim_goes_with_what_ends_it() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0);
    let path = queue.claim_of(0);
    queue.story.invoke(2, "reject").tell(2, Told::Released { path }).answer_value(2, Value::Null);
    queue.calm(TIMEOUT_MS + 3000);
    check(&queue, "M7", "still there");
}

#[test]
fn what_is_acknowledged_and_stays_is_rejected() {
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0);
    let path = queue.claim_of(0);
    queue.story.invoke(2, "ack").tell(2, Told::Released { path: path.clone() });
    queue.delete(2, path).story.answer_value(2, Value::Null);
    check(&queue, "Q3", "still there");
    let mut queue = empty(&PLAIN);
    queue.put(1, "a").take(2, 0);
    let named = json!({ "item": queue.item(0), "fence": 1 });
    queue.story.invoke_with(3, "ack-item", named).answer_value(3, Value::Null);
    check(&queue, "Q3", "still there");
}

/// Participants 1 and 3 have put an item in each.
fn two(kind: &Kind) -> QueueStory {
    let mut queue = empty(kind);
    queue.put(1, "a").put(3, "b");
    queue
}

#[test]
fn what_peek_answers_could_be_taken_and_comes_before_the_others() {
    // What the one that looks has written itself is known to the server that it asks.
    check(two(&PLAIN).peek(3, None, None), "Q7", "was there to take all the while");
    check(two(&PLAIN).peek(3, None, Some(1)), "Q7", "which is older");
    check(two(&PLAIN).take(2, 0).take(3, 1).peek(3, None, Some(1)), "Q7", "nobody could take it");
    let mut queue = two(&PLAIN);
    queue.story.invoke(3, "peek");
    let told = queue.take(2, 0).shown(1);
    queue.story.answer_value(3, told);
    check_good(&queue, "the first was taken meanwhile");
    let urgent = |told: u32| {
        let mut queue = two(&RANKED);
        queue.prioritise(-1).put(1, "c").peek(3, None, Some(told));
        queue
    };
    assert_eq!(verdict(&RANKED, &urgent(2).story.entries), []);
    check_of(&RANKED, &urgent(0), "Q7", "which comes before it");
}

#[test]
fn peek_may_read_what_is_old_where_nothing_confirms_it() {
    check_good(two(&PLAIN).peek(2, None, None), "the server of participant 2 may be behind");
    check_of(&RANKED, two(&RANKED).peek(2, None, None), "Q7", "was there to take all the while");
    // An item that is asked for is read without a `sync`.
    let by_name = two(&RANKED).peek(2, Some(0), None).story.entries.clone();
    assert_eq!(verdict(&RANKED, &by_name), []);
}

#[test]
fn what_peek_tells_of_an_item_is_so() {
    for (key, value, says) in [
        ("data", json!("b"), "other data"),
        ("czxid", json!(7), "another czxid"),
        ("attempts", json!(1), "so many attempts"),
        ("path", json!("/items/qn-x-item-0000000009"), "nobody had put that in"),
        ("priority", json!(7), "its priority is 0"),
    ] {
        let mut queue = empty(&RANKED);
        queue.put(3, "a").story.invoke(3, "peek");
        let mut told = queue.shown(0);
        told[key] = value;
        queue.story.answer_value(3, told);
        check_of(&RANKED, &queue, "Q7", says);
    }
}

#[test]
fn an_item_that_peek_is_asked_for_is_answered_taken_or_not_as_long_as_it_is_there() {
    let two = || {
        let mut queue = empty(&PLAIN);
        queue.put(1, "a").put(1, "b");
        queue
    };
    check(two().take(3, 0).peek(3, Some(0), None), "Q7", "all the while");
    check(two().peek(3, Some(0), Some(1)), "Q7", "another item");
}

#[test]
fn length_counts_what_was_there_at_a_moment_of_the_call() {
    let three = || {
        let mut queue = empty(&PLAIN);
        queue.put(1, "a").put(1, "b").put(1, "c").take(2, 0);
        queue
    };
    for (items, taken, dead_letters, says) in [
        (2, 1, 0, "`items` was from 3 to 3"),
        (3, 0, 0, "`taken` was from 1 to 1"),
        (3, 2, 0, "`taken` was from 1 to 1"),
        (3, 1, 1, "`dead-letters` was from 0 to 0"),
        (0, 1, 0, "no more can be taken than there are"),
    ] {
        check(three().length(3, items, taken, dead_letters), "Q8", says);
    }
    // The item is acknowledged by its name, and its consumer has not given the claim back yet.
    let acknowledged = || {
        let mut queue = three();
        let item = queue.item(0);
        let named = json!({ "item": item, "fence": queue.fence(2) });
        queue.story.invoke_with(3, "ack-item", named);
        queue.delete(3, item).story.answer_value(3, Value::Null);
        queue
    };
    check_good(acknowledged().length(3, 2, 0, 0), "what is acknowledged is not taken");
    check(acknowledged().length(3, 2, 1, 0), "Q8", "`taken` was from 0 to 0");
    // One goes while another one comes.
    for taken in [0, 1, 2] {
        let mut queue = three();
        queue.story.invoke(3, "length");
        let told = json!({ "items": 3, "taken": taken, "dead-letters": 0 });
        queue.take(1, 1).reject(2, 0).story.answer_value(3, told);
        check_good(&queue, &format!("{taken}"));
    }
}

#[test]
fn a_place_goes_with_its_wait() {
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).stand(2).story.answer(2, Outcome::Cancelled);
    queue.calm(TIMEOUT_MS + 3000);
    check(&queue, "M7", "still there");
}

#[test]
fn one_that_others_are_ahead_of_each_time_does_not_wait_for_nothing() {
    let mut queue = empty(&PLAIN);
    for _ in 0..6 {
        queue.put(1, "a");
    }
    queue.ask(3).look(3);
    // Each item is taken in time; the last one is there for four times as long.
    for number in 0..5 {
        queue.calm(TIMEOUT_MS).take(2, number).ack(2, number);
    }
    queue.claim(3, 5);
    let told = queue.told(3, 5);
    queue.answer(3, told);
    check_good(&queue, "the queue moves");
}

#[test]
fn what_another_program_leaves_among_the_items_is_no_item() {
    let mut queue = empty(&PLAIN);
    let path = format!("{MOUNT}/items/by-hand");
    let left = Change::Created { path, ephemeral_owner: 0, data: Data::default() };
    queue.story.commit(1, vec![left]);
    queue.ask(2).look(2).stand(2).look(2).wait(2).calm(TIMEOUT_MS + 5000);
    let place = queue.place(2);
    queue.delete(2, place).story.answer(2, Outcome::Cancelled);
    check_good(&queue, "there is nothing to take");
}

#[test]
fn nobody_waits_while_there_is_an_item() {
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).stand(2).look(2).wait(2).put(1, "a").calm(TIMEOUT_MS + 5000);
    check(&queue, "W1", "for anybody to take");
}

#[test]
fn nobody_is_turned_away_where_there_is_no_item() {
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).story.answer_error(2, json!({ "other": "nothing was taken" }));
    check(&queue, "W1", "no fault was in its way");
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(2, "take-many", json!({ "max": 3 }));
    queue.look(2).answer(2, json!([]));
    check(&queue, "W1", "was answered no item");
    let mut queue = empty(&PLAIN);
    queue.story.invoke_with(2, "take-many", json!({ "max": 65 }));
    queue.story.answer_error(2, json!({ "invalid": "take-many: 65 is not from 1 to 64" }));
    check_good(&queue, "it asks for what nobody may have");
}

#[test]
fn only_the_first_in_line_watches_and_nobody_waits_without_a_place() {
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).wait(2);
    check(&queue, "H1", "without a place");
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).stand(2).look(2).wait(2).ask(3).look(3).stand(3).look(3);
    check(&queue, "H1", "ahead of it");
}

#[test]
fn one_that_waits_does_not_ask_again_and_again() {
    let mut queue = empty(&PLAIN);
    queue.ask(2).look(2).stand(2);
    for _ in 0..60 {
        queue.look(2);
    }
    let place = queue.place(2);
    queue.delete(2, place).story.answer(2, Outcome::Cancelled);
    check(&queue, "H1", "times in one `take`");
}

#[test]
fn one_that_leaves_the_line_wakes_one() {
    let mut queue = empty(&PLAIN);
    queue.ask(1).look(1).stand(1);
    let first = queue.place(1);
    for who in [2, 3] {
        queue.ask(who).look(who).stand(who);
        queue.story.ask(who, "watch-data", &first).answer_ask(who, None);
    }
    queue.delete(1, first.clone()).story.answer(1, Outcome::Cancelled);
    queue.story.event(2, "deleted", &first);
    check_good(&queue, "one is woken");
    queue.story.event(3, "deleted", &first);
    check(&queue, "H1", "woke 2 contenders");
}
