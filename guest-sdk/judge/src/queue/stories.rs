//! The stories of queues, told in a few words each: what the tests of a queue's judge are made of.
#![allow(clippy::indexing_slicing, reason = "used by tests alone")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::history::{Change, Data, Outcome, ParticipantId, Told, What};
use crate::stories::{MOUNT, Story, created, session};

/// The name of an item's znode, by the item's number and its priority.
pub type Naming = fn(u32, Option<i64>) -> String;

/// The story of a queue in the making. Items have numbers, in the order in which they come.
#[derive(Debug)]
pub struct QueueStory {
    /// What happened so far.
    pub story: Story,
    naming: Naming,
    /// The priority of what is put in next.
    priority: Option<i64>,
    /// The next number of an item, or of a place in line.
    next: u32,
    items: BTreeMap<u32, Item>,
    /// The fence of each participant's newest claim.
    fences: BTreeMap<ParticipantId, i64>,
    /// Each participant's place in line.
    places: BTreeMap<ParticipantId, String>,
}

/// What the story knows of an item.
#[derive(Debug)]
struct Item {
    name: String,
    priority: Option<i64>,
    data: String,
    czxid: i64,
    version: i32,
}

impl QueueStory {
    /// An empty queue whose items have names of that form, and that priority unless
    /// [`prioritise`](Self::prioritise) says another one.
    pub fn new(naming: Naming, priority: Option<i64>) -> Self {
        QueueStory {
            story: Story::new(),
            naming,
            priority,
            next: 0,
            items: BTreeMap::new(),
            fences: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// The number of the item that is put in next.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// The path of an item.
    pub fn item(&self, number: u32) -> String {
        format!("{MOUNT}/items/{}", self.items[&number].name)
    }

    /// The path of an item's claim.
    pub fn claim_of(&self, number: u32) -> String {
        format!("{MOUNT}/claims/{}", self.items[&number].name)
    }

    /// The fence of the participant's newest claim.
    pub fn fence(&self, who: ParticipantId) -> i64 {
        self.fences[&who]
    }

    /// The path of the participant's place in line.
    pub fn place(&self, who: ParticipantId) -> String {
        self.places[&who].clone()
    }

    fn multi(&mut self, who: ParticipantId, paths: Vec<String>, changes: Vec<Change>) -> i64 {
        self.story.ask_all(who, "multi", paths).commit(session(who), changes);
        self.story.answer_ask(who, None);
        self.story.newest_zxid()
    }

    /// What is put in from here on has that priority.
    pub fn prioritise(&mut self, priority: i64) -> &mut Self {
        self.priority = Some(priority);
        self
    }

    /// An item comes, as part of the call under way.
    pub fn add(&mut self, who: ParticipantId, data: &str) -> &mut Self {
        let (number, priority) = (self.next, self.priority);
        self.next += 1;
        let name = (self.naming)(number, priority);
        let path = format!("{MOUNT}/items/{name}");
        let stem = path.trim_end_matches(|digit: char| digit.is_ascii_digit()).to_owned();
        let change = Change::Created { path, ephemeral_owner: 0, data: bytes(data) };
        let czxid = self.multi(who, vec![stem], vec![change]);
        let item = Item { name, priority, data: data.to_owned(), czxid, version: 0 };
        self.items.insert(number, item);
        self
    }

    /// It puts an item in.
    pub fn put(&mut self, who: ParticipantId, data: &str) -> &mut Self {
        let arguments = with_priority(json!({ "data": data }), self.priority);
        self.story.invoke_with(who, "put", arguments);
        self.add(who, data).story.answer_value(who, Value::Null);
        self
    }

    /// It asks for an item.
    pub fn ask(&mut self, who: ParticipantId) -> &mut Self {
        self.story.invoke(who, "take");
        self
    }

    /// It has found nothing and stands in line.
    pub fn stand(&mut self, who: ParticipantId) -> &mut Self {
        let line = format!("{MOUNT}/consumers");
        let place = format!("{line}/_c_{who}-consumer-{:010}", self.next);
        self.next += 1;
        self.story.ask(who, "contend-and-list", &line);
        self.story.commit(session(who), vec![created(&place, session(who))]);
        self.story.answer_ask(who, Some(&place));
        self.places.insert(who, place);
        self
    }

    /// It lists the items.
    pub fn look(&mut self, who: ParticipantId) -> &mut Self {
        self.story.ask(who, "pipeline", &format!("{MOUNT}/items")).answer_ask(who, None);
        self
    }

    /// It waits for something to happen.
    pub fn wait(&mut self, who: ParticipantId) -> &mut Self {
        self.story.ask_all(who, "wait", Vec::new());
        self
    }

    /// It claims an item, whose attempt is counted, and its place in line goes.
    pub fn claim(&mut self, who: ParticipantId, number: u32) -> &mut Self {
        self.claim_all(who, &[number])
    }

    /// The same of several items, in one txn.
    pub fn claim_all(&mut self, who: ParticipantId, numbers: &[u32]) -> &mut Self {
        let (mut paths, mut changes) = (Vec::new(), Vec::new());
        for &number in numbers {
            let (item, claim) = (self.item(number), self.claim_of(number));
            let stored = self.items.get_mut(&number).expect("it was put in");
            stored.version += 1;
            let (path, version) = (item.clone(), stored.version);
            changes.push(Change::DataSet { path, version, data: bytes(&stored.data) });
            changes.push(created(&claim, session(who)));
            paths.extend([item, claim]);
        }
        changes.extend(self.places.remove(&who).map(|path| Change::Deleted { path }));
        let fence = self.multi(who, paths, changes);
        self.fences.insert(who, fence);
        // Several claims are one, and told by the first.
        let (path, fence) = (self.claim_of(numbers[0]), fence.unsigned_abs());
        self.story.tell(who, Told::Held { path, fence });
        self
    }

    /// What `take` answers of an item that the participant has claimed.
    pub fn told(&self, who: ParticipantId, number: u32) -> Value {
        let mut told = self.removed(number);
        told["attempt"] = json!(self.items[&number].version);
        told["fence"] = json!(self.fences[&who]);
        told
    }

    /// What `take` answers of an item that is removed at its taking.
    pub fn removed(&self, number: u32) -> Value {
        self.described(number, "attempt", self.items[&number].version + 1)
    }

    /// What `peek` answers of an item.
    pub fn shown(&self, number: u32) -> Value {
        self.described(number, "attempts", self.items[&number].version)
    }

    fn described(&self, number: u32, counted: &str, attempts: i32) -> Value {
        let Item { name, priority, data, czxid, .. } = &self.items[&number];
        let path = format!("/items/{name}");
        let value = json!({ "path": path, "data": data, "czxid": czxid, counted: attempts });
        with_priority(value, *priority)
    }

    /// Its call is answered with what it has now.
    pub fn answer(&mut self, who: ParticipantId, value: Value) -> &mut Self {
        self.story.answer(who, Outcome::Ok { value, holds: true });
        self
    }

    /// It takes an item that is there, at least once.
    pub fn take(&mut self, who: ParticipantId, number: u32) -> &mut Self {
        self.ask(who).look(who).claim(who, number);
        let told = self.told(who, number);
        self.answer(who, told)
    }

    /// It takes an item that is there, at most once.
    pub fn remove(&mut self, who: ParticipantId, number: u32) -> &mut Self {
        let (item, told) = (self.item(number), self.removed(number));
        self.ask(who).look(who).delete(who, item);
        self.story.answer_value(who, told);
        self
    }

    /// It has worked on the item: the claim goes, and the item with it.
    pub fn ack(&mut self, who: ParticipantId, number: u32) -> &mut Self {
        let path = self.claim_of(number);
        let gone = [self.item(number), path.clone()];
        self.story.invoke(who, "ack").tell(who, Told::Released { path });
        self.multi(who, gone.to_vec(), gone.map(|path| Change::Deleted { path }).to_vec());
        self.story.answer_value(who, Value::Null);
        self
    }

    /// It gives the item back.
    pub fn reject(&mut self, who: ParticipantId, number: u32) -> &mut Self {
        let path = self.claim_of(number);
        self.story.invoke(who, "reject").tell(who, Told::Released { path: path.clone() });
        self.delete(who, path).story.answer_value(who, Value::Null);
        self
    }

    /// It deletes a znode.
    pub fn delete(&mut self, who: ParticipantId, path: String) -> &mut Self {
        self.multi(who, vec![path.clone()], vec![Change::Deleted { path }]);
        self
    }

    /// It makes a dead letter of an item, with that data.
    pub fn bury(&mut self, who: ParticipantId, number: u32, data: &str) -> &mut Self {
        let (item, claim) = (self.item(number), self.claim_of(number));
        let letter = format!("{MOUNT}/dead-letters/{}", self.items[&number].name);
        let changes = vec![
            created(&claim, session(who)),
            Change::Deleted { path: item.clone() },
            Change::Created { path: letter, ephemeral_owner: 0, data: bytes(data) },
            Change::Deleted { path: claim.clone() },
        ];
        self.multi(who, vec![item, claim], changes);
        self
    }

    /// It looks at that item, or at the next one, and is told of an item as that was before, or of none.
    pub fn peek(&mut self, who: ParticipantId, asked: Option<u32>, told: Option<u32>) -> &mut Self {
        let arguments = asked.map_or(json!({}), |number| json!({ "item": self.item(number) }));
        self.story.invoke_with(who, "peek", arguments);
        let told = told.map_or(Value::Null, |number| self.shown(number));
        self.story.answer_value(who, told);
        self
    }

    /// It asks how much there is, and is told this.
    pub fn length(
        &mut self,
        who: ParticipantId,
        items: u32,
        taken: u32,
        dead_letters: u32,
    ) -> &mut Self {
        self.story.invoke(who, "length");
        let told = json!({ "items": items, "taken": taken, "dead-letters": dead_letters });
        self.story.answer_value(who, told);
        self
    }

    /// Nothing happens for so long, and no fault is in the way of anything.
    pub fn calm(&mut self, ms: u64) -> &mut Self {
        self.story.push(What::Calm).wait(ms).push(What::Calm);
        self
    }
}

fn bytes(data: &str) -> Data {
    Data::from(data.as_bytes().to_vec())
}

fn with_priority(mut value: Value, priority: Option<i64>) -> Value {
    if let Some(priority) = priority {
        value["priority"] = json!(priority);
    }
    value
}

/// Everything that can go right with a queue whose items are taken twice at most: items are taken in their
/// order; one comes back twice and is a dead letter; one is taken at most once; somebody waits and is woken,
/// and somebody else gives up.
pub fn good_queue(naming: Naming, priority: Option<i64>) -> QueueStory {
    let mut queue = QueueStory::new(naming, priority);
    queue.peek(3, None, None).length(3, 0, 0, 0).put(1, "a").put(1, "b").put(2, "");
    queue.peek(3, None, Some(0)).take(2, 0).peek(3, None, Some(1)).peek(1, Some(0), Some(0));
    queue.length(1, 3, 1, 0).take(3, 1).length(1, 3, 2, 0).ack(3, 1).peek(1, Some(1), None);
    queue.reject(2, 0).take(3, 0).reject(3, 0).ask(2).look(2).bury(2, 0, "a").length(1, 1, 0, 1);
    queue.claim(2, 2);
    let told = queue.told(2, 2);
    queue.answer(2, told).peek(3, None, None).ack(2, 2).ask(2).look(2).stand(2).look(2).wait(2);
    queue.ask(3).look(3).stand(3).wait(3);
    let number = queue.next_number();
    queue.put(1, "c").look(2).claim(2, number);
    let told = queue.told(2, number);
    let place = queue.place(3);
    queue.answer(2, told).ack(2, number).delete(3, place);
    queue.story.answer(3, Outcome::Cancelled);
    let number = queue.next_number();
    queue.put(1, "d").remove(3, number).calm(60_000);
    queue
}
