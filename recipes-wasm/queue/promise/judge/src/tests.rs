//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, Outcome, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::QueueJudge;

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

/// The story of a queue whose items are taken twice at most.
struct Queue {
    story: Story,
    counter: u32,
    /// Data, `czxid` and version of each item.
    items: BTreeMap<u32, (String, i64, i32)>,
    /// The fence of each participant's claim.
    fences: BTreeMap<u32, i64>,
    places: BTreeMap<u32, String>,
}

impl Queue {
    fn new() -> Self {
        let (items, fences, places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Queue { story: Story::new(), counter: 0, items, fences, places }
    }

    fn multi(&mut self, who: u32, paths: Vec<String>, changes: Vec<Change>) -> i64 {
        self.story.ask_all(who, "multi", paths).commit(session(who), changes);
        self.story.answer_ask(who, None);
        self.story.newest_zxid()
    }

    /// An item comes, as part of the call under way. Answers its number.
    fn add(&mut self, who: u32, data: &str) -> u32 {
        let number = self.counter;
        self.counter += 1;
        let stem = format!("{MOUNT}/items/qn-u{number}-item-");
        let path = item(number);
        let change = Change::Created {
            path,
            ephemeral_owner: 0,
            data: Data::from(data.as_bytes().to_vec()),
        };
        let czxid = self.multi(who, vec![stem], vec![change]);
        self.items.insert(number, (data.to_owned(), czxid, 0));
        number
    }

    fn put(&mut self, who: u32, data: &str) -> &mut Self {
        self.story.invoke_with(who, "put", json!({ "data": data }));
        self.add(who, data);
        self.story.answer(who, NOTHING);
        self
    }

    fn ask(&mut self, who: u32) -> &mut Self {
        self.story.invoke(who, "take");
        self
    }

    /// It finds nothing and stands in line.
    fn stand(&mut self, who: u32) -> &mut Self {
        let line = format!("{MOUNT}/consumers");
        let place = format!("{line}/_c_{who}-consumer-{:010}", self.counter);
        self.counter += 1;
        self.story.ask(who, "contend-and-list", &line);
        self.story.commit(session(who), vec![created(&place, session(who))]);
        self.story.answer_ask(who, Some(&place));
        self.places.insert(who, place);
        self
    }

    fn look(&mut self, who: u32) -> &mut Self {
        self.story.ask(who, "pipeline", &format!("{MOUNT}/items")).answer_ask(who, None);
        self
    }

    fn wait(&mut self, who: u32) -> &mut Self {
        self.story.ask_all(who, "wait", Vec::new());
        self
    }

    /// The item is claimed, and its attempt counted; the place in line goes.
    fn claim(&mut self, who: u32, number: u32) -> &mut Self {
        let (data, _, version) = self.items.get_mut(&number).expect("it was put in");
        *version += 1;
        let data = Data::from(data.as_bytes().to_vec());
        let set = Change::DataSet { path: item(number), version: *version, data };
        let mut changes = vec![set, created(&claim(number), session(who))];
        changes.extend(self.places.remove(&who).map(|path| Change::Deleted { path }));
        let fence = self.multi(who, vec![item(number), claim(number)], changes);
        self.fences.insert(who, fence);
        let (path, fence) = (claim(number), fence.unsigned_abs());
        self.story.tell(who, Told::Held { path, fence });
        self
    }

    fn told(&self, who: u32, number: u32) -> Value {
        let (data, czxid, version) = &self.items[&number];
        let path = item(number).trim_start_matches(MOUNT).to_owned();
        json!({
            "path": path, "data": data, "czxid": czxid, "attempt": version, "fence": self.fences[&who],
        })
    }

    fn answer(&mut self, who: u32, value: Value) -> &mut Self {
        self.story.answer(who, Outcome::Ok { value, holds: true });
        self
    }

    fn take(&mut self, who: u32, number: u32) -> &mut Self {
        self.ask(who).look(who).claim(who, number);
        let told = self.told(who, number);
        self.answer(who, told)
    }

    /// The claim goes, and the item with it.
    fn ack(&mut self, who: u32, number: u32) -> &mut Self {
        self.story.invoke(who, "ack").tell(who, Told::Released { path: claim(number) });
        let gone = [item(number), claim(number)];
        self.multi(who, gone.to_vec(), gone.map(|path| Change::Deleted { path }).to_vec());
        self.story.answer(who, NOTHING);
        self
    }

    fn reject(&mut self, who: u32, number: u32) -> &mut Self {
        self.story.invoke(who, "reject").tell(who, Told::Released { path: claim(number) });
        self.delete(who, claim(number));
        self.story.answer(who, NOTHING);
        self
    }

    fn delete(&mut self, who: u32, path: String) -> &mut Self {
        self.multi(who, vec![path.clone()], vec![Change::Deleted { path }]);
        self
    }

    /// It asks for that item, or for the next one, and is told of one as that was before, or of none.
    fn peek(&mut self, who: u32, asked: Option<u32>, told: Option<u32>) -> &mut Self {
        let arguments = asked.map_or(json!({}), |number| json!({ "item": item(number) }));
        self.story.invoke_with(who, "peek", arguments);
        let told = told.map_or(Value::Null, |number| self.shown(number));
        self.story.answer_value(who, told);
        self
    }

    /// What `peek` tells of an item.
    fn shown(&self, number: u32) -> Value {
        let (data, czxid, attempts) = &self.items[&number];
        let path = item(number).trim_start_matches(MOUNT).to_owned();
        json!({ "path": path, "data": data, "czxid": czxid, "attempts": attempts })
    }

    fn length(&mut self, who: u32, items: u32, taken: u32, dead_letters: u32) -> &mut Self {
        self.story.invoke(who, "length");
        let told = json!({ "items": items, "taken": taken, "dead-letters": dead_letters });
        self.story.answer_value(who, told);
        self
    }

    /// It takes at most once.
    fn remove(&mut self, who: u32, number: u32) -> &mut Self {
        self.ask(who).look(who).delete(who, item(number));
        let (data, czxid, version) = &self.items[&number];
        let path = item(number).trim_start_matches(MOUNT).to_owned();
        let attempt = version + 1;
        let value = json!({ "path": path, "data": data, "czxid": czxid, "attempt": attempt });
        self.story.answer(who, Outcome::Ok { value, holds: false });
        self
    }

    fn bury(&mut self, who: u32, number: u32, data: &str) -> &mut Self {
        let (letter, data) = (
            format!("{MOUNT}/dead-letters/{}", name(number)),
            Data::from(data.as_bytes().to_vec()),
        );
        let changes = vec![
            created(&claim(number), session(who)),
            Change::Deleted { path: item(number) },
            Change::Created { path: letter, ephemeral_owner: 0, data },
            Change::Deleted { path: claim(number) },
        ];
        self.multi(who, vec![item(number), claim(number)], changes);
        self
    }

    fn calm(&mut self, ms: u64) -> &mut Self {
        self.story.push(What::Calm).wait(ms).push(What::Calm);
        self
    }
}

fn name(number: u32) -> String {
    format!("qn-u{number}-item-{number:010}")
}

fn item(number: u32) -> String {
    format!("{MOUNT}/items/{}", name(number))
}

fn claim(number: u32) -> String {
    format!("{MOUNT}/claims/{}", name(number))
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    QueueJudge::begin(r#"{"max-attempts":2}"#).unwrap().verdict(history)
}

/// It breaks that, and nothing else.
#[track_caller]
fn check(queue: &Queue, invariant: &str, says: &str) {
    let found = verdict(&queue.story.entries);
    assert_breaks(&found, &[invariant]);
    assert!(found.iter().any(|it| it.sentence.contains(says)), "{says:?} is not in {found:?}");
}

/// Items are taken in their order; one comes back twice and is a dead letter; one is taken at most once;
/// somebody waits, is woken, and somebody else gives up.
fn good() -> Queue {
    let mut queue = Queue::new();
    queue.peek(3, None, None).length(3, 0, 0, 0).put(1, "a").put(1, "b").put(2, "");
    queue.peek(3, None, Some(0)).take(2, 0).peek(3, None, Some(1)).peek(1, Some(0), Some(0));
    queue.length(1, 3, 1, 0).take(3, 1).length(1, 3, 2, 0).ack(3, 1).peek(1, Some(1), None);
    queue.reject(2, 0).take(3, 0).reject(3, 0).ask(2).look(2).bury(2, 0, "a").length(1, 1, 0, 1);
    queue.claim(2, 2);
    let told = queue.told(2, 2);
    queue.answer(2, told).peek(3, None, None).ack(2, 2).ask(2).look(2).stand(2).look(2).wait(2);
    queue.ask(3).look(3).stand(3).wait(3);
    let number = queue.counter;
    queue.put(1, "c").look(2).claim(2, number);
    let told = queue.told(2, number);
    let place = queue.places[&3].clone();
    queue.answer(2, told).ack(2, number).delete(3, place);
    queue.story.answer(3, Outcome::Cancelled);
    let number = queue.counter;
    queue.put(1, "d").remove(3, number).calm(60_000);
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
fn an_acknowledged_put_is_there_once() {
    let mut queue = Queue::new();
    queue.story.invoke_with(1, "put", json!({ "data": "a" })).answer(1, NOTHING);
    check(&queue, "Q1", "put in 0");
    let mut queue = Queue::new();
    queue.story.invoke_with(1, "put", json!({ "data": "a" }));
    queue.add(1, "a");
    queue.add(1, "a");
    queue.story.answer(1, NOTHING);
    check(&queue, "Q1", "put in 2");
}

#[test]
fn a_put_that_is_given_up_is_there_once_or_not_at_all() {
    let mut queue = Queue::new();
    queue.story.invoke_with(1, "put-all", json!({ "items": ["a", "b"] }));
    queue.add(1, "a");
    queue.story.answer(1, Outcome::Cancelled);
    check(&queue, "Q5", "put in 1");
    let mut queue = Queue::new();
    let unknown = Outcome::Err { value: json!("outcome-unknown"), holds: false };
    queue.story.invoke_with(1, "put", json!({ "data": "a" })).answer(1, unknown);
    check(&queue, "Q5", "outcome-unknown");
}

#[test]
fn what_nobody_has_put_in_is_not_taken() {
    let mut queue = Queue::new();
    queue.put(1, "a").ask(2).look(2).claim(2, 0);
    let mut told = queue.told(2, 0);
    told["data"] = json!("b");
    queue.answer(2, told);
    check(&queue, "Q1", "other data");
}

#[test]
fn what_is_removed_at_its_taking_is_told_to_the_one_who_took_it() {
    let mut queue = Queue::new();
    queue.put(1, "a").put(1, "b").ask(2).delete(2, item(0)).delete(2, item(1));
    let (data, czxid) = ("b", queue.items[&1].1);
    let path = format!("/items/{}", name(1));
    let value = json!({ "path": path, "data": data, "czxid": czxid, "attempt": 1 });
    queue.story.answer(2, Outcome::Ok { value, holds: false });
    check(&queue, "Q2", "nobody has it");
}

#[test]
fn what_is_claimed_goes_by_its_consumers_word() {
    // It is removed when it is taken.
    let mut queue = Queue::new();
    queue.put(1, "a").ask(2).look(2).claim(2, 0).delete(2, item(0));
    let told = queue.told(2, 0);
    queue.answer(2, told);
    check(&queue, "Q3", "while somebody had it");
    // It is removed by one who had it before.
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0).reject(2, 0).take(3, 0);
    queue.story.invoke(2, "ack");
    queue.delete(2, item(0)).story.answer(2, NOTHING);
    check(&queue, "Q3", "while somebody had it");
}

#[test]
fn an_item_is_told_with_its_own_claim_and_attempt() {
    for (key, value, says) in [("fence", json!(7), "no claim"), ("attempt", json!(2), "attempt 1")]
    {
        let mut queue = Queue::new();
        queue.put(1, "a").ask(2).look(2).claim(2, 0);
        let mut told = queue.told(2, 0);
        told[key] = value;
        queue.answer(2, told);
        check(&queue, "Q3", says);
    }
}

#[test]
fn the_oldest_is_taken_first() {
    let mut queue = Queue::new();
    queue.put(1, "a").put(1, "b").take(2, 1);
    check(&queue, "Q4", "which is older");
}

#[test]
fn an_item_is_a_dead_letter_in_its_time_and_is_kept() {
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0).reject(2, 0).ask(3).bury(3, 0, "a");
    check(&queue, "Q6", "after 1 attempts");
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0).reject(2, 0).take(2, 0).reject(2, 0).take(3, 0);
    check(&queue, "Q6", "for the time 3");
}

#[test]
fn a_claim_goes_with_what_ends_it() {
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0);
    queue.story.invoke(2, "reject").tell(2, Told::Released { path: claim(0) }).answer(2, NOTHING);
    queue.calm(TIMEOUT_MS + 3000);
    check(&queue, "M7", "still there");
}

#[test]
fn what_is_acknowledged_and_stays_is_rejected() {
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0);
    queue.story.invoke(2, "ack").tell(2, Told::Released { path: claim(0) });
    queue.delete(2, claim(0)).story.answer(2, NOTHING);
    check(&queue, "Q3", "still there");
    let mut queue = Queue::new();
    queue.put(1, "a").take(2, 0);
    queue.story.invoke_with(3, "ack-item", json!({ "item": item(0), "fence": 1 }));
    queue.story.answer(3, NOTHING);
    check(&queue, "Q3", "still there");
}

#[test]
fn what_peek_answers_could_be_taken_and_is_the_oldest() {
    let two = || {
        let mut queue = Queue::new();
        // What the one that looks has written itself is known to the server that it asks.
        queue.put(1, "a").put(3, "b");
        queue
    };
    check(two().peek(3, None, None), "Q7", "was there to take all the while");
    check(two().peek(3, None, Some(1)), "Q7", "which is older");
    // Its server may be behind.
    assert_eq!(verdict(&two().peek(2, None, None).story.entries), []);
    check(two().take(2, 0).take(3, 1).peek(3, None, Some(1)), "Q7", "nobody could take it");
    let mut queue = two();
    queue.story.invoke(3, "peek");
    queue.take(2, 0);
    let told = queue.shown(1);
    queue.story.answer_value(3, told);
    assert_eq!(verdict(&queue.story.entries), [], "the first was taken meanwhile");
}

#[test]
fn what_peek_tells_of_an_item_is_so() {
    let told = |key: &str, value: Value| {
        let mut queue = Queue::new();
        queue.put(3, "a").story.invoke(3, "peek");
        let mut told = queue.shown(0);
        told[key] = value;
        queue.story.answer_value(3, told);
        queue
    };
    check(&told("data", json!("b")), "Q7", "other data");
    check(&told("czxid", json!(7)), "Q7", "another czxid");
    check(&told("attempts", json!(1)), "Q7", "so many attempts");
    check(&told("path", json!("/items/qn-x-item-0000000009")), "Q7", "nobody had put that in");
}

#[test]
fn an_item_that_peek_is_asked_for_is_answered_taken_or_not_as_long_as_it_is_there() {
    let mut queue = Queue::new();
    check(queue.put(1, "a").put(1, "b").take(3, 0).peek(3, Some(0), None), "Q7", "all the while");
    let mut queue = Queue::new();
    check(queue.put(1, "a").put(1, "b").peek(3, Some(0), Some(1)), "Q7", "another item");
}

#[test]
fn length_counts_what_was_there_at_a_moment_of_the_call() {
    let three = || {
        let mut queue = Queue::new();
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
        let fence = queue.fences[&2];
        queue.story.invoke_with(3, "ack-item", json!({ "item": item(0), "fence": fence }));
        queue.delete(3, item(0)).story.answer(3, NOTHING);
        queue
    };
    assert_eq!(verdict(&acknowledged().length(3, 2, 0, 0).story.entries), []);
    check(acknowledged().length(3, 2, 1, 0), "Q8", "`taken` was from 0 to 0");
    // One goes while another one comes.
    for taken in [0, 1, 2] {
        let mut queue = three();
        queue.story.invoke(3, "length");
        queue.take(1, 1).reject(2, 0);
        let told = json!({ "items": 3, "taken": taken, "dead-letters": 0 });
        queue.story.answer_value(3, told);
        assert_eq!(verdict(&queue.story.entries), [], "{taken}");
    }
}

#[test]
fn a_place_goes_with_its_wait() {
    let mut queue = Queue::new();
    queue.ask(2).look(2).stand(2).story.answer(2, Outcome::Cancelled);
    queue.calm(TIMEOUT_MS + 3000);
    check(&queue, "M7", "still there");
}

#[test]
fn nobody_waits_while_there_is_an_item() {
    let mut queue = Queue::new();
    queue.ask(2).look(2).stand(2).look(2).wait(2).put(1, "a").calm(TIMEOUT_MS + 5000);
    check(&queue, "W1", "for anybody to take");
}

#[test]
fn nobody_is_turned_away_where_there_is_no_item() {
    let mut queue = Queue::new();
    let nothing = json!({ "other": "nothing was taken" });
    queue.ask(2).look(2).story.answer(2, Outcome::Err { value: nothing, holds: false });
    check(&queue, "W1", "no fault was in its way");
    let mut queue = Queue::new();
    queue.story.invoke_with(2, "take-many", json!({ "max": 3 }));
    queue.look(2).answer(2, json!([]));
    check(&queue, "W1", "was answered no item");
    // It asks for what nobody may have.
    let mut queue = Queue::new();
    queue.story.invoke_with(2, "take-many", json!({ "max": 65 }));
    let invalid = json!({ "invalid": "take-many: 65 is not from 1 to 64" });
    queue.story.answer(2, Outcome::Err { value: invalid, holds: false });
    assert_eq!(verdict(&queue.story.entries), []);
}

#[test]
fn only_the_first_in_line_watches_and_nobody_waits_without_a_place() {
    let mut queue = Queue::new();
    queue.ask(2).look(2).wait(2);
    check(&queue, "H1", "without a place");
    let mut queue = Queue::new();
    queue.ask(2).look(2).stand(2).look(2).wait(2).ask(3).look(3).stand(3).look(3);
    check(&queue, "H1", "ahead of it");
}

#[test]
fn one_that_waits_does_not_ask_again_and_again() {
    let mut queue = Queue::new();
    queue.ask(2).look(2).stand(2);
    for _ in 0..60 {
        queue.look(2);
    }
    let place = queue.places[&2].clone();
    queue.delete(2, place).story.answer(2, Outcome::Cancelled);
    check(&queue, "H1", "times in one `take`");
}
