//! All plays.

use serde_json::{Value, json};

use super::asking::Asking;
use super::claiming::{Forcing, plain};
use super::gathering;
use super::party::{Operation, Recipe};
use super::plays::Play;
use super::transacting;

/// Each operation of each recipe: `tests/tests/faults.rs` looks whether one is missing.
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
    let mut forceful = recipe.clone();
    forceful.config["force-after-ms"] = json!(1000);
    forceful
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
    let asking = Asking::of(&resized, resize(2)).before(vec![resize(1)]);
    plays.push(asking.after(vec![resize(2), acquire()]).into());
}

/// Both kinds of queues.
fn of_queues(plays: &mut Vec<Play>) {
    let put = ("put", json!({ "data": "d" }));
    let put_all = ("put-all", json!({ "items": ["d", "e"] }));
    let urgent = |(name, mut arguments): Operation| {
        arguments["priority"] = json!(-1);
        (name, arguments)
    };
    of_a_queue(plays, "priority-queue", [put.clone(), put_all.clone()].map(urgent));
    of_a_queue(plays, "queue", [put, put_all]);
}

/// Three items are in the queue before, so that it is never empty.
fn of_a_queue(plays: &mut Vec<Play>, name: &'static str, [put, put_all]: [Operation; 2]) {
    let queue = Recipe { name, config: json!({}) };
    let once = Recipe { name, config: json!({ "delivery": "at-most-once" }) };
    let three = || vec![("put-all", json!({ "items": ["a", "b", "c"] }))];
    let two = || ("take-many", json!({ "max": 2 }));
    let goes_on = || vec![put.clone(), plain("take")];
    let asking = |recipe, asks| Asking::of(recipe, asks).before(three()).after(goes_on());
    for asks in [put.clone(), put_all, plain("take"), two(), plain("length"), plain("peek")] {
        plays.push(asking(&queue, asks).into());
    }
    for asks in [plain("take"), two()] {
        plays.push(asking(&once, asks).into());
    }
    for asks in ["ack", "reject"] {
        for taking in [plain("take"), two()] {
            plays.push(asking(&queue, plain(asks)).own(vec![taking]).into());
        }
    }
    // For another one, which has taken it: as the command of `wok hold` does.
    let item = |taken: &Value| json!({ "item": taken["path"], "fence": taken["fence"] });
    let before = [three(), vec![plain("take")]].concat();
    plays.push(Asking::about(&queue, "ack-item", item).before(before).after(goes_on()).into());
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
    plays.push(remaining.after(vec![count("second"), plain("wait")]).into());
    plays.push(Play::new("double-barrier", "enter", gathering::entering));
    plays.push(Play::new("double-barrier", "leave", gathering::leaving));
}

fn of_the_counter(plays: &mut Vec<Play>) {
    plays.push(Play::new("counter", "add", gathering::adding));
    let counter = Recipe { name: "counter", config: json!({}) };
    let add = || ("add", json!({ "by": 1 }));
    let swap = ("compare-and-set", json!({ "expected": 1, "value": 2 }));
    for asks in [add(), swap, plain("get")] {
        let asking = Asking::of(&counter, asks).before(vec![add()]);
        plays.push(asking.after(vec![add(), plain("get")]).into());
    }
}

fn of_the_configuration(plays: &mut Vec<Play>) {
    let settings = Recipe { name: "configuration", config: json!({}) };
    let set = |data: &str| ("set", json!({ "key": "a", "data": data, "expected": "any" }));
    let get = || ("get", json!({ "key": "a" }));
    let remove = || ("remove", json!({ "key": "a", "expected": "any" }));
    let wait = || ("wait", json!({ "after": 0 }));
    let all = || vec![set("three"), get(), plain("snapshot"), plain("observe"), wait(), remove()];
    for asks in [set("two"), get(), remove(), plain("snapshot"), plain("observe"), wait()] {
        plays.push(Asking::of(&settings, asks).before(vec![set("one")]).after(all()).into());
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
