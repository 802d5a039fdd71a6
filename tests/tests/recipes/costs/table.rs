//! What each operation may cost: a row for each of them.

use serde_json::{Value, json};
use wok_tests::frames::Opcode::{
    self, Create2 as Create, Delete, Exists, GetChildren2 as List, GetData as Read, Multi,
    RemoveWatches, SetData, Sync,
};

/// Stand in arguments for what a participant was answered last, or a field of that.
pub(super) const ANSWERS: [(&str, Who, &str); 3] = [
    (ITS_PATH, Who::Other, "/path"),
    (ITS_FENCE, Who::Other, "/fence"),
    (OWN_ANSWER, Who::Counted, ""),
];
const ITS_PATH: &str = "its path";
const ITS_FENCE: &str = "its fence";
const OWN_ANSWER: &str = "what the counted one was answered, if that was something";

/// Who calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// The participant whose operation is counted.
    Counted,
    /// Another one, on the same session.
    Other,
}

/// An operation that comes before.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) who: Who,
    pub(super) operation: &'static str,
    pub(super) arguments: Value,
}

/// What an operation costs.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) recipe: &'static str,
    pub(super) config: Value,
    /// What is done first: the directory is there, and the counted one holds what it gives back.
    pub(super) before: Vec<Call>,
    pub(super) operation: &'static str,
    pub(super) arguments: Value,
    /// What the caller waits for: each trip's requests go together, and the next trip's need a reply.
    pub(super) trips: Vec<&'static [Opcode]>,
    /// What goes behind the answer, for which nobody waits, in any order.
    pub(super) behind: &'static [Opcode],
    /// Whether the data of a claimed znode change: then those who watch it read it, once or more.
    pub(super) changes_a_claim: bool,
}

impl Cost {
    fn of(recipe: &'static str, operation: &'static str, trips: &[&'static [Opcode]]) -> Cost {
        let (config, before, arguments) = (Value::Null, Vec::new(), Value::Null);
        let (trips, behind, changes_a_claim) = (trips.to_vec(), &[], false);
        Cost { recipe, config, before, operation, arguments, trips, behind, changes_a_claim }
    }

    fn with(self, arguments: Value) -> Cost {
        Cost { arguments, ..self }
    }

    fn config(self, config: Value) -> Cost {
        Cost { config, ..self }
    }

    fn behind(self, behind: &'static [Opcode]) -> Cost {
        Cost { behind, ..self }
    }

    fn changes_a_claim(self) -> Cost {
        Cost { changes_a_claim: true, ..self }
    }

    fn after(mut self, operations: &[&'static str]) -> Cost {
        for operation in operations {
            self.before.push(Call { who: Who::Counted, operation, arguments: Value::Null });
        }
        self
    }

    fn after_call(mut self, who: Who, operation: &'static str, arguments: Value) -> Cost {
        self.before.push(Call { who, operation, arguments });
        self
    }
}

/// All rows.
pub(super) fn all() -> Vec<Cost> {
    let (queue, urgent) = (queue("queue", &[]), queue("priority-queue", &[&[Sync, List, List]]));
    let claimed = [locks(), several_locks(), semaphore(), election()].concat();
    let shared = [counter(), configuration(), queue, urgent].concat();
    [claimed, gathering(), shared, transactions(), members(), instances()].concat()
}

/// The holder keeps its lock when it is asked.
fn revocable() -> Value {
    json!({ "revocable": true, "consent": "by-release" })
}

fn locks() -> Vec<Cost> {
    let mut rows = Vec::new();
    for (recipe, operations) in [
        ("lock", &["acquire", "try-acquire"][..]),
        (
            "read-write-lock",
            &["acquire-read", "acquire-write", "try-acquire-read", "try-acquire-write"],
        ),
    ] {
        let first = operations[0];
        for operation in operations {
            let acquire = Cost::of(recipe, operation, &[&[Create, List]]).behind(&[Read]);
            rows.push(acquire.after(&[first, "release"]));
        }
        rows.push(Cost::of(recipe, "release", &[&[Delete]]).after(&[first]));
        rows.push(Cost::of(recipe, "contenders", &[&[List], &[Read]]).after(&[first]));
        let revoke = Cost::of(recipe, "revoke", &[&[Multi, Read], &[SetData]]).changes_a_claim();
        let revoke = revoke.with(json!({ "path": ITS_PATH })).config(revocable());
        rows.push(revoke.after_call(Who::Other, first, Value::Null));
    }
    let downgrade = Cost::of("read-write-lock", "downgrade", &[&[Multi, Read]]);
    rows.push(downgrade.after(&["acquire-write"]));
    rows
}

fn several_locks() -> Vec<Cost> {
    let both = || json!({ "names": ["a", "b"] });
    let mut rows = Vec::new();
    for operation in ["acquire", "try-acquire"] {
        // The last list has just shown the last znode, which is watched some time after the answer.
        let acquire =
            Cost::of("multi-lock", operation, &[&[Create, List], &[Create, List], &[Read]])
                .behind(&[Read])
                .with(both());
        rows.push(acquire.after_call(Who::Counted, "acquire", both()).after(&["release"]));
    }
    let release = Cost::of("multi-lock", "release", &[&[Multi]]);
    rows.push(release.after_call(Who::Counted, "acquire", both()));
    let contenders = Cost::of("multi-lock", "contenders", &[&[List], &[Read]]);
    rows.push(contenders.with(json!({ "name": "a" })).after_call(Who::Counted, "acquire", both()));
    rows
}

fn semaphore() -> Vec<Cost> {
    let cost =
        |operation, trips| Cost::of("semaphore", operation, trips).config(json!({ "permits": 2 }));
    let warm = ["acquire", "release"];
    let acquire: &[&[Opcode]] = &[&[Create, List], &[Read], &[Multi, Read]];
    vec![
        cost("acquire", acquire).after(&warm),
        cost("release", &[&[Multi]]).after(&["acquire"]),
        cost("available", &[&[Read]]).after(&warm),
        cost("resize", &[&[SetData]]).with(json!({ "permits": 2 })).after(&warm),
        cost("contenders", &[&[List], &[List]]).after(&warm),
    ]
}

fn election() -> Vec<Cost> {
    let cost = |operation, trips| Cost::of("leader-election", operation, trips);
    vec![
        cost("volunteer", &[&[Create, List]]).behind(&[Read]).after(&["volunteer", "resign"]),
        cost("resign", &[&[Delete]]).after(&["volunteer"]),
        cost("leader", &[&[List], &[Read, Read]]).after(&["volunteer"]),
        // Servers do not tell the metadata of what a transaction creates: the host looks at it.
        cost("announce", &[&[Multi, Exists]]).with(json!({ "data": "here" })).after(&["volunteer"]),
        cost("observe", &[&[List], &[Read]]).after_call(Who::Other, "volunteer", Value::Null),
    ]
}

fn counter() -> Vec<Cost> {
    let one = || json!({ "by": 1 });
    let cost = |operation, trips| {
        Cost::of("counter", operation, trips).after_call(Who::Counted, "add", one())
    };
    vec![
        cost("get", &[&[Sync, Read]]),
        cost("add", &[&[Read], &[Multi]]).with(one()),
        cost("compare-and-set", &[&[Read], &[Multi]]).with(json!({ "expected": 1, "value": 2 })),
    ]
}

fn gathering() -> Vec<Cost> {
    let barrier = |operation, trips| Cost::of("barrier", operation, trips);
    let alone = || json!({ "size": 1 });
    let id = |id: &str| json!({ "id": id });
    let latch = |operation, trips| {
        let cost = Cost::of("count-down-latch", operation, trips).config(json!({ "count": 2 }));
        cost.after_call(Who::Other, "count-down", id("a"))
    };
    // Alone in its round, a member comes last and goes last.
    let enter: &[&[Opcode]] = &[&[Read], &[List], &[Multi, Exists], &[Read]];
    vec![
        barrier("raise", &[&[Create]]).after(&["raise", "lower"]),
        barrier("lower", &[&[Multi, Read], &[Delete]]).after(&["raise"]),
        barrier("wait", &[&[Multi, Read]]).after(&["raise", "lower"]),
        Cost::of("double-barrier", "enter", enter).config(alone()).after(&["enter", "leave"]),
        Cost::of("double-barrier", "leave", &[&[Multi]]).config(alone()).after(&["enter"]),
        latch("count-down", &[&[Multi, Read], &[Multi]]).with(id("b")),
        latch("remaining", &[&[Multi, Read]]),
        latch("wait", &[&[Multi, Read]]).after_call(Who::Other, "count-down", id("b")),
    ]
}

fn configuration() -> Vec<Cost> {
    let set = |value: &str| json!({ "key": "a", "data": value, "expected": "any" });
    let after = |operation, trips| {
        let cost = Cost::of("configuration", operation, trips);
        cost.after_call(Who::Counted, "set", set("one"))
    };
    let key = || json!({ "key": "a" });
    vec![
        after("get", &[&[Sync, Read]]).with(key()),
        after("set", &[&[Multi]]).with(set("two")),
        after("remove", &[&[Multi]]).with(json!({ "key": "a", "expected": "any" })),
        // The keys are those that the snapshot before had.
        after("snapshot", &[&[Sync, Read, List, Read, Read]]).after(&["snapshot"]),
        after("observe", &[&[Read]]),
        after("wait", &[&[Read]]).with(json!({ "after": 0 })).behind(&[RemoveWatches]),
    ]
}

/// Of two sites, by the participant that has begun the transaction and is the only one that follows it.
fn transactions() -> Vec<Cost> {
    let begin = || json!({ "sites": ["a", "b"], "payload": "x", "within-ms": 600_000 });
    let vote = |site: &str, choice: &str| json!({ "transaction": OWN_ANSWER, "site": site, "choice": choice });
    let about = || json!({ "transaction": OWN_ANSWER });
    // The transaction, the decision, who has registered, who is there, and a vote of each site.
    const LOOK: &[Opcode] = &[Read, Read, List, List, Read, Read];
    // The transaction, the decision, the two marks of the site, and its vote.
    const BALLOT: &[Opcode] = &[Read, Read, Exists, Exists, Read];
    let cost = |operation, trips: &[&'static [Opcode]]| {
        let cost = Cost::of("two-phase-commit", operation, trips);
        cost.after_call(Who::Counted, "begin", begin())
    };
    let decided = |operation, trips: &[&'static [Opcode]]| {
        let cost = cost(operation, trips).with(about());
        cost.after_call(Who::Counted, "vote", vote("a", "abort"))
    };
    // The coordinator's mark goes, if it is still its own.
    let last = cost("vote", &[BALLOT, &[Multi], LOOK, &[Multi]]).with(vote("b", "commit"));
    let last = last.behind(&[Sync, Exists, Delete, RemoveWatches]);
    vec![
        cost("begin", &[&[Multi, Exists], LOOK]).with(begin()),
        cost("transactions", &[&[Sync, List], &[Read, Read], &[Read, Read]])
            .with(json!({ "site": "a" })),
        cost("register", &[BALLOT, &[Multi, Exists], LOOK])
            .with(json!({ "transaction": OWN_ANSWER, "site": "a" })),
        cost("vote", &[BALLOT, &[Multi], LOOK]).with(vote("a", "commit")),
        last.after_call(Who::Counted, "vote", vote("a", "commit")),
        decided("outcome", &[&[Read], LOOK]).behind(&[RemoveWatches; 2]),
        decided("status", &[&[Read], LOOK]),
        decided("forget", &[&[Read, Read], &[List, List, Exists], &[Multi]]),
    ]
}

/// With `list`, each take lists the queue first; otherwise it goes on with the list of the take before.
fn queue(recipe: &'static str, list: &[&'static [Opcode]]) -> Vec<Cost> {
    let three = || json!({ "items": ["a", "b", "c"] });
    let cost = |operation, trips: &[&'static [Opcode]]| Cost::of(recipe, operation, trips);
    let taking = |operation, trips: &[&'static [Opcode]]| {
        let cost = cost(operation, &[list, trips].concat());
        cost.after_call(Who::Counted, "put-all", three()).after(&["take", "ack"])
    };
    let taken = |operation, trips: &[&'static [Opcode]]| {
        cost(operation, trips).after_call(Who::Counted, "put-all", three()).after(&["take"])
    };
    // Gone with the transaction, so that nothing is watched and nothing has to be acknowledged.
    let once = |operation, trips: &[&'static [Opcode]]| {
        let cost = cost(operation, &[list, trips].concat());
        let cost = cost.config(json!({ "delivery": "at-most-once" }));
        cost.after_call(Who::Counted, "put-all", three()).after(&["take"])
    };
    let one = || json!({ "data": "a" });
    let item = json!({ "item": ITS_PATH, "fence": ITS_FENCE });
    let first: &'static [Opcode] = if list.is_empty() { &[List] } else { &[Sync, List] };
    let peek = cost("peek", &[first, &[List], &[Read]]);
    let ack_item = cost("ack-item", &[&[Multi, Exists, Exists], &[Multi]]).with(item);
    vec![
        cost("put", &[&[Multi]]).with(one()).after_call(Who::Counted, "put", one()),
        cost("put-all", &[&[Multi]]).with(three()).after_call(Who::Counted, "put", one()),
        taking("take", &[&[Read], &[Multi, Read]]),
        taking("take-many", &[&[Exists, Exists], &[Read, Read], &[Multi, Read, Read]]),
        once("take", &[&[Read], &[Multi]]),
        once("take-many", &[&[Exists, Exists], &[Read, Read], &[Multi]]),
        taken("ack", &[&[Multi]]),
        taken("reject", &[&[Multi]]),
        ack_item.after_call(Who::Counted, "put", one()).after_call(Who::Other, "take", json!({})),
        taken("length", &[&[Sync, List, Exists, Exists], &[Exists]]),
        peek.after_call(Who::Counted, "put", one()),
    ]
}

fn members() -> Vec<Cost> {
    let join = |name: &str| json!({ "name": name, "data": "here" });
    let cost = |operation, trips: &[&'static [Opcode]]| {
        let cost = Cost::of("group-membership", operation, trips);
        cost.after_call(Who::Other, "join", join("b"))
    };
    let joined = |operation, trips: &[&'static [Opcode]]| {
        cost(operation, trips).after_call(Who::Counted, "join", join("a"))
    };
    vec![
        cost("join", &[&[Multi, Read]]).with(join("a")),
        joined("update", &[&[Multi]]).with(json!({ "data": "there" })).changes_a_claim(),
        joined("leave", &[&[Delete]]),
        cost("members", &[&[Multi, List], &[Read, Exists]]),
        cost("observe", &[&[Read, List]]),
        cost("wait", &[&[Read, List]]).with(json!({ "after": 0 })).behind(&[RemoveWatches; 2]),
    ]
}

fn instances() -> Vec<Cost> {
    let web = || json!({ "name": "web" });
    let register = || json!({ "name": "web", "address": "here:80", "metadata": [] });
    let cost = |operation, trips: &[&'static [Opcode]]| {
        let cost = Cost::of("name-service", operation, trips);
        cost.after_call(Who::Other, "register", register())
    };
    vec![
        cost("register", &[&[Multi, Read]]).with(register()),
        cost("deregister", &[&[Delete]]).after_call(Who::Counted, "register", register()),
        cost("resolve", &[&[Multi, List], &[Read, Exists]]).with(web()),
        cost("list", &[&[Multi, List], &[List]]),
        cost("observe", &[&[Read, List]]).with(web()),
        cost("wait", &[&[Read, List]])
            .with(json!({ "name": "web", "after": 0 }))
            .behind(&[RemoveWatches; 2]),
    ]
}
