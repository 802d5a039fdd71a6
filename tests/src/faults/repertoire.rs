//! All plays.

use serde_json::{Value, json};

use super::asking::Asking;
use super::claiming::{Forcing, plain};
use super::gathering;
use super::judging::whole;
use super::party::{Operation, Recipe};
use super::plays::Play;
use super::transacting;

/// Each operation of each recipe: `tests/tests/recipes/faults.rs` looks whether one is missing.
pub(super) fn plays() -> Vec<Play> {
    let mut plays = Vec::new();
    of_locks(&mut plays);
    of_several_locks(&mut plays);
    of_the_semaphore(&mut plays);
    of_queues(&mut plays);
    of_the_election(&mut plays);
    of_those_who_gather(&mut plays);
    of_the_counter(&mut plays);
    of_the_configuration(&mut plays);
    of_transactions(&mut plays);
    of_those_who_are_there(&mut plays);
    plays
}

/// With a time after which what was asked for is deleted.
fn forceful(recipe: &Recipe) -> Recipe {
    Recipe { config: with(&recipe.config, "force-after-ms", json!(1000)), ..*recipe }
}

/// An object with one field more.
fn with(object: &Value, field: &str, value: Value) -> Value {
    let fields = object.as_object().cloned().unwrap_or_default();
    Value::Object(fields.into_iter().chain([(field.to_owned(), value)]).collect())
}

/// What another one has come to hold is asked for.
fn revoking(recipe: &Recipe) -> Asking {
    Asking::about(recipe, Forcing::OPERATION, |held| json!({ "path": held["path"] }))
}

fn of_locks(plays: &mut Vec<Play>) {
    let revocable = json!({ "revocable": true, "consent": "by-release" });
    let lock = Recipe { name: "lock", config: revocable.clone() };
    let acquire = || plain("acquire");
    plays.push(Play::holding(&lock, acquire(), None, acquire()));
    for meanwhile in ["release", "contenders"] {
        plays.push(Play::holding(&lock, acquire(), Some(plain(meanwhile)), acquire()));
    }
    plays.push(Play::waiting(&lock, acquire(), acquire()));
    plays.push(Asking::of(&lock, acquire()).after(vec![acquire()]).into());
    for asking in [Asking::of(&lock, plain("try-acquire")), revoking(&lock)] {
        plays.push(asking.before(vec![acquire()]).after(vec![acquire()]).into());
    }
    plays.push(Play::forcing(&forceful(&lock), acquire(), acquire()));
    let lock = Recipe { name: "read-write-lock", config: revocable };
    let (read, write) = (|| plain("acquire-read"), || plain("acquire-write"));
    for (one, other) in [(read(), write()), (write(), read()), (write(), write())] {
        plays.push(Play::holding(&lock, one.clone(), None, other.clone()));
        plays.push(Play::waiting(&lock, one, other));
    }
    for meanwhile in ["downgrade", "release", "contenders"] {
        plays.push(Play::holding(&lock, write(), Some(plain(meanwhile)), write()));
    }
    let [read_now, write_now] =
        ["try-acquire-read", "try-acquire-write"].map(|name| Asking::of(&lock, plain(name)));
    for asking in [read_now, write_now, revoking(&lock)] {
        plays.push(asking.before(vec![write()]).after(vec![write(), read()]).into());
    }
    plays.push(Play::forcing(&forceful(&lock), write(), read()));
}

fn of_several_locks(plays: &mut Vec<Play>) {
    let locks = Recipe { name: "multi-lock", config: json!({}) };
    let both = || ("acquire", json!({ "names": ["a", "b"] }));
    let other_way = || ("acquire", json!({ "names": ["b", "a"] }));
    let contenders = || ("contenders", json!({ "name": "a" }));
    for meanwhile in [None, Some(plain("release")), Some(contenders())] {
        plays.push(Play::holding(&locks, both(), meanwhile, other_way()));
    }
    // The other one holds but the second: the place in the first line is taken meanwhile.
    let second = ("acquire", json!({ "names": ["b"] }));
    plays.push(Play::waiting(&locks, second, both()));
    let at_once = ("try-acquire", json!({ "names": ["a", "b"] }));
    for asks in [both(), at_once] {
        let asking = Asking::of(&locks, asks).before(vec![contenders()]);
        plays.push(asking.after(vec![other_way()]).into());
    }
}

fn of_the_semaphore(plays: &mut Vec<Play>) {
    let semaphore = Recipe { name: "semaphore", config: json!({ "permits": 1 }) };
    let acquire = || plain("acquire");
    plays.push(Play::holding(&semaphore, acquire(), None, acquire()));
    for meanwhile in ["release", "available", "contenders"] {
        plays.push(Play::holding(&semaphore, acquire(), Some(plain(meanwhile)), acquire()));
    }
    plays.push(Play::waiting(&semaphore, acquire(), acquire()));
    plays.push(Asking::of(&semaphore, acquire()).after(vec![acquire()]).into());
    // Without the number in their settings: it changes.
    let resized = Recipe { name: "semaphore", config: json!({}) };
    let resize = |permits: u32| ("resize", json!({ "permits": permits }));
    let free = [1, 2].map(|count| json!({ "permits": count, "available": count }));
    let asking = Asking::of(&resized, resize(2)).before(vec![resize(1)]);
    let asking = asking.changes(plain("available"), whole, free);
    plays.push(asking.after(vec![resize(2), acquire()]).into());
}

/// Both kinds of queues, and what is in each of them once its operations have put something in.
fn of_queues(plays: &mut Vec<Play>) {
    let put = ("put", json!({ "data": "d" }));
    let put_all = ("put-all", json!({ "items": ["d", "e"] }));
    let urgent = |(name, arguments): Operation| (name, with(&arguments, "priority", json!(-1)));
    let puts = [
        (urgent(put.clone()), json!(["d", "a", "b", "c"])),
        (urgent(put_all.clone()), json!(["d", "e", "a", "b", "c"])),
    ];
    of_a_queue(plays, "priority-queue", puts);
    let puts = [(put, json!(["a", "b", "c", "d"])), (put_all, json!(["a", "b", "c", "d", "e"]))];
    of_a_queue(plays, "queue", puts);
}

/// What was put in, of one item that was taken or of several.
fn data(taken: &Value) -> Value {
    match taken {
        Value::Array(all) => all.iter().map(data).collect(),
        one => one["data"].clone(),
    }
}

/// Three items are in the queue before. What is in it afterwards, a consumer says that takes all of it:
/// what is lost is not there, and what came in twice or was taken and came back is there too often.
fn of_a_queue(plays: &mut Vec<Play>, name: &'static str, puts: [(Operation, Value); 2]) {
    let queue = Recipe { name, config: json!({}) };
    let once = Recipe { name, config: json!({ "delivery": "at-most-once" }) };
    let three = || vec![("put-all", json!({ "items": ["a", "b", "c"] }))];
    let two = || ("take-many", json!({ "max": 2 }));
    let ask = |recipe: &Recipe, asks: Operation| Asking::of(recipe, asks).before(three());
    let mut play = |asking: Asking, left: Value| {
        let asking = asking.changes(plain("take-many"), data, [json!(["a", "b", "c"]), left]);
        let goes_on = vec![("put", json!({ "data": "f" })), plain("take")];
        plays.push(asking.after(goes_on).into());
    };
    let all = || json!(["a", "b", "c"]);
    for (asks, left) in puts {
        play(ask(&queue, asks), left);
    }
    // What is claimed comes back.
    play(ask(&queue, plain("take")).answers(data, json!("a")), all());
    play(ask(&queue, two()).answers(data, json!(["a", "b"])), all());
    play(ask(&queue, plain("reject")).own(vec![plain("take")]), all());
    play(ask(&queue, plain("reject")).own(vec![two()]), all());
    play(ask(&queue, plain("length")).answers(|told| told["items"].clone(), json!(3)), all());
    play(ask(&queue, plain("peek")).answers(data, json!("a")), all());
    // What is acknowledged, or taken at most once, does not.
    play(ask(&queue, plain("ack")).own(vec![plain("take")]), json!(["b", "c"]));
    play(ask(&queue, plain("ack")).own(vec![two()]), json!(["c"]));
    play(ask(&once, plain("take")).answers(data, json!("a")), json!(["b", "c"]));
    play(ask(&once, two()).answers(data, json!(["a", "b"])), json!(["c"]));
    // For another one, which has taken it: as the command of `wok hold` does.
    let item = |taken: &Value| json!({ "item": taken["path"], "fence": taken["fence"] });
    let before = [three(), vec![plain("take")]].concat();
    play(Asking::about(&queue, "ack-item", item).before(before), json!(["b", "c"]));
}

fn of_the_election(plays: &mut Vec<Play>) {
    let election = Recipe { name: "leader-election", config: json!({}) };
    let volunteer = || plain("volunteer");
    let announce = || ("announce", json!({ "data": "here" }));
    for meanwhile in [None, Some(plain("resign")), Some(announce()), Some(plain("leader"))] {
        plays.push(Play::holding(&election, volunteer(), meanwhile, volunteer()));
    }
    plays.push(Play::waiting(&election, volunteer(), volunteer()));
    for asks in [plain("observe"), volunteer()] {
        let asking = Asking::of(&election, asks).before(vec![volunteer()]);
        plays.push(asking.after(vec![volunteer()]).into());
    }
}

fn of_those_who_gather(plays: &mut Vec<Play>) {
    plays.push(Play::new("barrier", "wait", gathering::barrier));
    let barrier = Recipe { name: "barrier", config: json!({}) };
    let all = || vec![plain("raise"), plain("lower"), plain("wait")];
    plays.push(Asking::of(&barrier, plain("raise")).after(all()).into());
    let lowering = Asking::of(&barrier, plain("lower")).before(vec![plain("raise")]);
    plays.push(lowering.after(all()).into());
    plays.push(Play::new("count-down-latch", "wait", gathering::latch));
    plays.push(Play::new("count-down-latch", "count-down", gathering::counting_down));
    let latch = Recipe { name: "count-down-latch", config: json!({ "count": 2 }) };
    let count = |id: &str| ("count-down", json!({ "id": id }));
    let remaining = Asking::of(&latch, plain("remaining")).before(vec![count("first")]);
    let remaining = remaining.answers(whole, json!(1)).keeps(plain("remaining"), whole, json!(1));
    plays.push(remaining.after(vec![count("second"), plain("wait")]).into());
    plays.push(Play::new("double-barrier", "enter", gathering::entering));
    plays.push(Play::new("double-barrier", "leave", gathering::leaving));
}

fn of_the_counter(plays: &mut Vec<Play>) {
    plays.push(Play::new("counter", "add", gathering::adding));
    let counter = Recipe { name: "counter", config: json!({}) };
    let (add, get) = (|| ("add", json!({ "by": 1 })), || plain("get"));
    let swap = ("compare-and-set", json!({ "expected": 1, "value": 2 }));
    for (asks, answer, value) in
        [(add(), json!(2), 2), (swap, json!("set"), 2), (get(), json!(1), 1)]
    {
        let asking = Asking::of(&counter, asks).before(vec![add()]).answers(whole, answer);
        let asking = asking.changes(get(), whole, [json!(1), json!(value)]);
        plays.push(asking.after(vec![add(), get()]).into());
    }
}

/// The version of a value says how often it was written.
fn of_the_configuration(plays: &mut Vec<Play>) {
    let settings = Recipe { name: "configuration", config: json!({}) };
    let set = |data: &str| ("set", json!({ "key": "a", "data": data, "expected": "any" }));
    let get = || ("get", json!({ "key": "a" }));
    let remove = || ("remove", json!({ "key": "a", "expected": "any" }));
    let wait = || ("wait", json!({ "after": 0 }));
    let all = || vec![set("three"), get(), plain("snapshot"), plain("observe"), wait(), remove()];
    let first = || json!({ "data": "one", "version": 0 });
    let second = json!({ "data": "two", "version": 1 });
    let entries = json!([{ "key": "a", "data": "one", "version": 0 }]);
    let ask = |asks: Operation| Asking::of(&settings, asks).before(vec![set("one")]);
    for (asking, found) in [
        (ask(set("two")).answers(|told| told["version"].clone(), json!(1)), second),
        (ask(remove()), Value::Null),
        (ask(get()).answers(whole, first()), first()),
        (ask(plain("snapshot")).answers(|told| told["entries"].clone(), entries), first()),
        (ask(plain("observe")), first()),
        (ask(wait()), first()),
    ] {
        let asking = asking.changes(get(), whole, [first(), found]);
        plays.push(asking.after(all()).into());
    }
}

fn of_transactions(plays: &mut Vec<Play>) {
    let recipe = "two-phase-commit";
    plays.push(Play::new(recipe, "vote", transacting::voting));
    plays.push(Play::new(recipe, "outcome", transacting::awaiting));
    for operation in ["begin", "transactions", "register", "status", "forget"] {
        let play = move |stage| transacting::asking(stage, operation);
        plays.push(Play::new(recipe, operation, play));
    }
}

fn of_those_who_are_there(plays: &mut Vec<Play>) {
    let group = Recipe { name: "group-membership", config: json!({}) };
    let join = |name: &str| ("join", json!({ "name": name, "data": "here" }));
    let wait = || ("wait", json!({ "after": 0 }));
    let after = || vec![join("a"), join("b"), plain("members")];
    for asks in [join("b"), wait(), plain("observe"), plain("members")] {
        plays.push(Asking::of(&group, asks).before(vec![join("a")]).after(after()).into());
    }
    for asks in [("update", json!({ "data": "there" })), plain("leave")] {
        plays.push(Asking::of(&group, asks).own(vec![join("b")]).after(after()).into());
    }
    let names = Recipe { name: "name-service", config: json!({}) };
    let web = || json!({ "name": "web" });
    let register = || {
        ("register", json!({ "name": "web", "address": "here:80", "metadata": [["zone", "b"]] }))
    };
    let wait = || ("wait", json!({ "name": "web", "after": 0 }));
    let after = || vec![register(), ("resolve", web()), plain("list")];
    for asks in [register(), wait(), ("observe", web()), ("resolve", web()), plain("list")] {
        plays.push(Asking::of(&names, asks).before(vec![register()]).after(after()).into());
    }
    let deregister = Asking::of(&names, plain("deregister")).own(vec![register()]);
    plays.push(deregister.after(after()).into());
}
