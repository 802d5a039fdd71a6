//! All plays.

use serde_json::{Value, json};

use super::asking::ITS_PATH;
use super::claiming::plain;
use super::gathering;
use super::party::Recipe;
use super::plays::Play;
use super::transacting;

/// Each operation of each recipe.
pub(super) fn plays() -> Vec<Play> {
    let mut plays = Vec::new();
    of_locks(&mut plays);
    of_several_locks(&mut plays);
    of_the_semaphore(&mut plays);
    of_the_queue(&mut plays);
    of_the_election(&mut plays);
    of_those_who_gather(&mut plays);
    of_the_configuration(&mut plays);
    of_transactions(&mut plays);
    of_those_who_are_there(&mut plays);
    plays
}

fn of_locks(plays: &mut Vec<Play>) {
    let revocable = json!({ "revocable": true, "consent": "by-release" });
    let revoke = || ("revoke", json!({ "path": ITS_PATH }));
    let lock = Recipe { name: "lock", config: revocable.clone() };
    let acquire = || plain("acquire");
    plays.push(Play::holding(&lock, acquire(), None, acquire()));
    for meanwhile in ["release", "contenders"] {
        plays.push(Play::holding(&lock, acquire(), Some(plain(meanwhile)), acquire()));
    }
    plays.push(Play::waiting(&lock, acquire(), acquire()));
    plays.push(Play::asking(&lock, vec![], acquire(), vec![acquire()]));
    for asks in [plain("try-acquire"), revoke()] {
        plays.push(Play::asking(&lock, vec![acquire()], asks, vec![acquire()]));
    }
    let lock = Recipe { name: "read-write-lock", config: revocable };
    let (read, write) = (|| plain("acquire-read"), || plain("acquire-write"));
    for (one, other) in [(read(), write()), (write(), read()), (write(), write())] {
        plays.push(Play::holding(&lock, one.clone(), None, other.clone()));
        plays.push(Play::waiting(&lock, one, other));
    }
    for meanwhile in ["downgrade", "release"] {
        plays.push(Play::holding(&lock, write(), Some(plain(meanwhile)), write()));
    }
    for asks in [plain("try-acquire-read"), plain("try-acquire-write"), revoke()] {
        plays.push(Play::asking(&lock, vec![write()], asks, vec![write(), read()]));
    }
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
        plays.push(Play::asking(&locks, vec![contenders()], asks, vec![other_way()]));
    }
}

fn of_the_semaphore(plays: &mut Vec<Play>) {
    let semaphore = Recipe { name: "semaphore", config: json!({ "permits": 1 }) };
    let acquire = || plain("acquire");
    for meanwhile in [None, Some(plain("release")), Some(plain("available"))] {
        plays.push(Play::holding(&semaphore, acquire(), meanwhile, acquire()));
    }
    plays.push(Play::waiting(&semaphore, acquire(), acquire()));
    plays.push(Play::asking(&semaphore, vec![], acquire(), vec![acquire()]));
    // Without the number in their settings: it changes.
    let resized = Recipe { name: "semaphore", config: json!({}) };
    let resize = || ("resize", json!({ "permits": 2 }));
    let first = vec![("resize", json!({ "permits": 1 }))];
    plays.push(Play::asking(&resized, first, resize(), vec![resize(), acquire()]));
}

fn of_the_queue(plays: &mut Vec<Play>) {
    let queue = Recipe { name: "queue", config: json!({}) };
    let put = || ("put", json!({ "data": "an item" }));
    let both = || ("put-all", json!({ "items": ["an item", "another"] }));
    plays.push(Play::asking(&queue, vec![], put(), vec![put(), plain("take")]));
    plays.push(Play::asking(&queue, vec![put()], both(), vec![plain("take")]));
    for asks in [plain("take"), plain("take-many"), plain("length"), plain("peek")] {
        plays.push(Play::asking(&queue, vec![put()], asks, vec![plain("take")]));
    }
    let once = Recipe { name: "queue", config: json!({ "delivery": "at-most-once" }) };
    for asks in [plain("take"), plain("take-many")] {
        plays.push(Play::asking(&once, vec![both()], asks, vec![put(), plain("take")]));
    }
    let urgent = Recipe { name: "priority-queue", config: json!({}) };
    let hurry = || ("put", json!({ "data": "an item", "priority": -1 }));
    plays.push(Play::asking(&urgent, vec![put()], hurry(), vec![hurry(), plain("take")]));
    plays.push(Play::asking(&urgent, vec![put()], plain("take"), vec![plain("take")]));
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
        plays.push(Play::asking(&election, vec![volunteer()], asks, vec![volunteer()]));
    }
}

fn of_those_who_gather(plays: &mut Vec<Play>) {
    let name = |name: &str| name.to_owned();
    plays.push(Play::new(name("barrier: wait"), gathering::barrier));
    let barrier = Recipe { name: "barrier", config: Value::Object(serde_json::Map::new()) };
    let all = || vec![plain("raise"), plain("lower"), plain("wait")];
    plays.push(Play::asking(&barrier, vec![], plain("raise"), all()));
    plays.push(Play::asking(&barrier, vec![plain("raise")], plain("lower"), all()));
    plays.push(Play::new(name("count-down-latch: wait"), gathering::latch));
    plays.push(Play::new(name("count-down-latch: count-down"), gathering::counting_down));
    plays.push(Play::new(name("double-barrier: enter"), gathering::entering));
    plays.push(Play::new(name("double-barrier: leave"), gathering::leaving));
    plays.push(Play::new(name("counter: add"), gathering::adding));
    let counter = Recipe { name: "counter", config: json!({}) };
    let swap = || ("compare-and-set", json!({ "expected": 0, "value": 1 }));
    plays.push(Play::asking(&counter, vec![plain("get")], swap(), vec![swap(), plain("get")]));
}

fn of_the_configuration(plays: &mut Vec<Play>) {
    let settings = Recipe { name: "configuration", config: json!({}) };
    let any = |name| (name, json!({ "key": "a", "data": "one", "expected": "any" }));
    let (set, get) = (|| any("set"), || ("get", json!({ "key": "a" })));
    let remove = || ("remove", json!({ "key": "a", "expected": "any" }));
    let wait = |after| ("wait", json!({ "after": after }));
    let all = || vec![set(), get(), plain("snapshot"), plain("observe"), wait(0), remove()];
    for asks in [set(), get(), remove(), plain("snapshot"), plain("observe"), wait(0)] {
        plays.push(Play::asking(&settings, vec![set()], asks, all()));
    }
}

fn of_transactions(plays: &mut Vec<Play>) {
    let name = |operation: &str| format!("two-phase-commit: {operation}");
    plays.push(Play::new(name("vote"), transacting::voting));
    plays.push(Play::new(name("outcome"), transacting::awaiting));
    for operation in ["begin", "transactions", "register", "status", "forget"] {
        let play = move |stage| transacting::asking(stage, operation);
        plays.push(Play::new(name(operation), play));
    }
}

fn of_those_who_are_there(plays: &mut Vec<Play>) {
    let group = Recipe { name: "group-membership", config: json!({}) };
    let join = |name: &str| ("join", json!({ "name": name, "data": "here" }));
    let wait = || ("wait", json!({ "after": 0 }));
    for asks in [join("b"), wait(), plain("observe"), plain("members")] {
        let after = vec![join("a"), join("b"), plain("members")];
        plays.push(Play::asking(&group, vec![join("a")], asks, after));
    }
    let names = Recipe { name: "name-service", config: json!({}) };
    let web = || json!({ "name": "web" });
    let register = || {
        ("register", json!({ "name": "web", "address": "here:80", "metadata": [["zone", "b"]] }))
    };
    let wait = || ("wait", json!({ "name": "web", "after": 0 }));
    for asks in [register(), wait(), ("observe", web()), ("resolve", web()), plain("list")] {
        let after = vec![register(), ("resolve", web()), plain("list")];
        plays.push(Play::asking(&names, vec![register()], asks, after));
    }
}
