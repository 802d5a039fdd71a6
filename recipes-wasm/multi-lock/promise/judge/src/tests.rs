//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Entry, FaultKind, Outcome, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::MultiLockJudge;

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

/// The story of some locks.
struct Locks {
    story: Story,
    counter: u32,
    /// The place that each has or had last in the line of a lock, and its fence.
    places: BTreeMap<(u32, &'static str), (String, u64)>,
}

impl Locks {
    fn new() -> Self {
        Locks { story: Story::new(), counter: 0, places: BTreeMap::new() }
    }

    /// It asks for those locks, by that operation.
    fn ask_by(&mut self, operation: &str, who: u32, names: &[&str]) -> &mut Self {
        self.story.invoke_with(who, operation, json!({ "names": names }));
        self
    }

    fn ask(&mut self, who: u32, names: &[&str]) -> &mut Self {
        self.ask_by("acquire", who, names)
    }

    /// It goes to the end of the line of a lock.
    fn stand(&mut self, who: u32, name: &'static str) -> &mut Self {
        let directory = format!("{MOUNT}/{name}");
        let place = format!("{directory}/_c_{who}-{0}-lock-{0:010}", self.counter);
        self.counter += 1;
        self.story.ask(who, "contend-and-list", &directory);
        self.story.commit(session(who), vec![created(&place, session(who))]);
        let fence = self.story.newest_zxid().unsigned_abs();
        self.story.answer_ask(who, Some(&place));
        self.story.tell(who, Told::Waiting { path: place.clone() });
        self.places.insert((who, name), (place, fence));
        self
    }

    fn path(&self, who: u32, name: &'static str) -> String {
        self.places[&(who, name)].0.clone()
    }

    /// What stands for a place in an answer.
    fn record(&self, who: u32, name: &'static str) -> Value {
        let (path, fence) = &self.places[&(who, name)];
        json!({ "name": name, "path": path.strip_prefix(MOUNT), "fence": fence })
    }

    /// It claims those places as one, and is told that it holds the first.
    fn claim(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        let paths: Vec<String> = names.iter().map(|name| self.path(who, name)).collect();
        let (path, fence) = self.places[&(who, names[0])].clone();
        self.story.ask_all(who, "claim-all", paths).answer_ask(who, None);
        self.story.tell(who, Told::Held { path, fence });
        self
    }

    fn granted(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        let value = names.iter().map(|name| self.record(who, name)).collect();
        self.story.answer(who, Outcome::Ok { value, holds: true });
        self
    }

    /// It gets them, as it should.
    fn win(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        self.claim(who, names).granted(who, names)
    }

    /// It asks for locks that are free.
    fn take(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        self.ask(who, names);
        for name in names {
            self.stand(who, name);
        }
        self.win(who, names)
    }

    /// Its places go, in one txn.
    fn go(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        let gone = names.iter().map(|name| Change::Deleted { path: self.path(who, name) });
        let gone = gone.collect();
        self.story.commit(session(who), gone);
        self
    }

    /// It calls `release`, and is told that it gives up what that place stands for.
    fn let_go(&mut self, who: u32, first: &'static str) -> &mut Self {
        let path = self.path(who, first);
        self.story.invoke(who, "release").tell(who, Told::Released { path });
        self
    }

    /// It gives them back, as it should.
    fn give_back(&mut self, who: u32, names: &[&'static str]) -> &mut Self {
        self.let_go(who, names[0]).go(who, names).answer(who, NOTHING)
    }

    fn answer(&mut self, who: u32, outcome: Outcome) -> &mut Self {
        self.story.answer(who, outcome);
        self
    }

    fn busy(&mut self, who: u32, name: &str) -> &mut Self {
        self.answer(who, Outcome::Ok { value: json!({ "busy": name }), holds: false })
    }

    fn later(&mut self, ms: u64) -> &mut Self {
        self.story.wait(ms).push(What::Woken { participant: 3, tags: Vec::new() });
        self
    }

    fn calm(&mut self) -> &mut Self {
        self.story.push(What::Calm);
        self
    }
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    MultiLockJudge.verdict(history)
}

#[track_caller]
fn check(locks: &Locks, expected: &str) {
    assert_breaks(&verdict(&locks.story.entries), &[expected]);
}

#[track_caller]
fn check_good(locks: &Locks) {
    assert_eq!(verdict(&locks.story.entries), []);
}

/// Locks that go from one to the next in parts, a wait that is given up, attempts, a holder that dies.
fn good() -> Locks {
    let mut it = Locks::new();
    it.take(1, &["a", "b", "c"]).ask(2, &["c", "b"]).stand(2, "b");
    it.ask_by("try-acquire", 3, &["a", "c"]).stand(3, "a").go(3, &["a"]).busy(3, "a");
    it.give_back(1, &["a", "b", "c"]).stand(2, "c").win(2, &["b", "c"]);
    it.ask(1, &["a", "c"]).stand(1, "a").stand(1, "c").go(1, &["a", "c"]);
    it.answer(1, Outcome::Cancelled);
    it.ask_by("try-acquire", 3, &["a"]).stand(3, "a").claim(3, &["a"]);
    let value = json!({ "granted": [it.record(3, "a")] });
    it.answer(3, Outcome::Ok { value, holds: true });
    it.ask(3, &["b"]).answer(3, refusal()).ask(3, &["a"]).granted(3, &["a"]);
    it.ask(1, &["a", "a"])
        .answer(1, Outcome::Err { value: json!({ "invalid": "x" }), holds: false });
    it.ask(1, &["a", "b"]).stand(1, "a").give_back(3, &["a"]).stand(1, "b");
    it.story.fault(FaultKind::HostKill, 2).wait(TIMEOUT_MS);
    let gone = ["b", "c"].map(|name| Change::Deleted { path: it.path(2, name) });
    let gone = gone.into_iter().chain([Change::SessionClosed { session: session(2) }]).collect();
    it.story.commit(session(2), gone);
    it.win(1, &["a", "b"]).calm().give_back(1, &["a", "b"]).later(60_000);
    it
}

fn refusal() -> Outcome {
    Outcome::Err { value: json!({ "invalid": "it holds others" }), holds: true }
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good().story, verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good().story] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn a1_holding_some_while_waiting_for_more_is_rejected() {
    let mut it = Locks::new();
    it.take(2, &["b"]).ask(1, &["a", "b"]).stand(1, "a").claim(1, &["a"]);
    check(&it, "A1");
}

#[test]
fn a1_claiming_one_after_the_other_is_rejected() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").stand(1, "b");
    it.claim(1, &["a"]).claim(1, &["b"]).granted(1, &["a", "b"]);
    check(&it, "A1");
}

#[test]
fn a1_an_answer_without_a_lock_that_was_asked_for_is_rejected() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").stand(1, "b").claim(1, &["a", "b"]).granted(1, &["a"]);
    check(&it, "A1");
}

#[test]
fn a1_a_lock_that_was_named_twice_is_not_granted() {
    let mut it = Locks::new();
    it.ask(1, &["a", "a"]).stand(1, "a").win(1, &["a"]);
    check(&it, "A1");
}

#[test]
fn a2_locks_that_are_given_back_one_by_one_are_rejected() {
    let mut it = Locks::new();
    it.take(1, &["a", "b"]).let_go(1, "a").go(1, &["a"]).go(1, &["b"]).answer(1, NOTHING);
    check(&it, "A2");
}

#[test]
fn a2_a_fault_excuses_that() {
    let mut it = Locks::new();
    it.take(1, &["a", "b"]).let_go(1, "a").story.fault(FaultKind::LostBefore, 1);
    it.go(1, &["a"]).go(1, &["b"]).answer(1, NOTHING);
    check_good(&it);
}

#[test]
fn d1_two_who_wait_for_each_other_are_rejected_at_once() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").ask(2, &["b", "a"]).stand(2, "b").stand(1, "b");
    check_good(&it);
    it.stand(2, "a");
    check(&it, "D1");
}

#[test]
fn d1_a_ring_of_three_is_rejected() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").ask(2, &["b", "c"]).stand(2, "b");
    it.ask(3, &["c", "a"]).stand(3, "c").stand(1, "b").stand(2, "c").stand(3, "a");
    check(&it, "D1");
}

#[test]
fn d1_one_that_does_not_wait_any_more_closes_no_ring() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").ask(2, &["b"]).stand(2, "b").stand(1, "b");
    // Its place is still on its way out.
    it.answer(2, Outcome::Cancelled).ask(2, &["a"]).stand(2, "a").go(2, &["b"]);
    check_good(&it);
    // A request of its wait before was carried out late.
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").answer(1, Outcome::Cancelled).ask(1, &["a", "b"]);
    let late = format!("{MOUNT}/a/_c_1-late-lock-0000000001");
    it.story.ask(1, "contend-and-list", &format!("{MOUNT}/a"));
    it.story.commit(session(1), vec![created(&late, session(1))]).answer_ask(1, None);
    it.counter = 2;
    it.stand(1, "a");
    check_good(&it);
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").ask_by("try-acquire", 2, &["a", "b"]);
    it.stand(2, "b").stand(1, "b").stand(2, "a").go(2, &["a", "b"]).busy(2, "a");
    check_good(&it);
}

#[test]
fn m1_the_fence_of_another_lock_is_rejected() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").stand(1, "b").claim(1, &["a", "b"]);
    let (a, mut b) = (it.record(1, "a"), it.record(1, "b"));
    b["fence"] = a["fence"].clone();
    let answered = json!([a, b]);
    it.answer(1, Outcome::Ok { value: answered, holds: true });
    // What is answered as a fence of this lock is none of its contenders' there.
    assert_breaks(&verdict(&it.story.entries), &["M1", "W2"]);
}

#[test]
fn m1_the_path_of_another_lock_is_rejected() {
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").stand(1, "b").claim(1, &["a", "b"]);
    let (a, mut b) = (it.record(1, "a"), it.record(1, "b"));
    b["path"] = a["path"].clone();
    let answered = json!([a, b]);
    it.answer(1, Outcome::Ok { value: answered, holds: true });
    check(&it, "M1");
}

#[test]
fn m4_and_m2_are_asked_of_each_lock_by_itself() {
    // The fence of the second grant is lower for `a` than that of the first for `b`.
    let mut it = Locks::new();
    it.ask(1, &["a", "b"]).stand(1, "a").take(2, &["b"]).give_back(2, &["b"]).stand(1, "b");
    it.win(1, &["a", "b"]);
    check_good(&it);
}

#[test]
fn m5_a_belief_in_a_lock_that_has_gone_to_the_next_is_rejected_for_each_of_them() {
    for name in ["a", "b"] {
        let mut it = Locks::new();
        it.take(1, &["a", "b"]);
        it.ask(2, &[name]).stand(2, name);
        // Somebody else deletes one of the znodes, and nobody is told.
        it.go(1, &[name]).win(2, &[name]).later(3 * TIMEOUT_MS);
        check(&it, "M5");
    }
}

#[test]
fn m6_a_grant_before_one_who_came_earlier_is_rejected() {
    let mut it = Locks::new();
    it.take(1, &["a"]);
    it.counter = 7;
    it.ask(2, &["a", "b"]).stand(2, "a");
    it.counter = 6;
    it.ask(3, &["a", "b"]).stand(3, "a").give_back(1, &["a"]).stand(3, "b").win(3, &["a", "b"]);
    check(&it, "M6");
}

#[test]
fn m7_a_place_that_outlives_its_wait_is_rejected() {
    let mut it = Locks::new();
    it.take(2, &["b"]).ask_by("try-acquire", 1, &["a", "b"]).stand(1, "a").stand(1, "b");
    it.go(1, &["b"]).busy(1, "b").later(2 * TIMEOUT_MS);
    check(&it, "M7");
}

#[test]
fn m7_a_place_that_outlives_its_grant_is_rejected() {
    let mut it = Locks::new();
    it.take(1, &["a", "b"]).story.fault(FaultKind::LostBefore, 1);
    it.let_go(1, "a").go(1, &["a"]).answer(1, NOTHING).later(3 * TIMEOUT_MS);
    check(&it, "M7");
}

#[test]
fn w1_one_that_nobody_is_ahead_of_goes_on() {
    for names in [&["a"][..], &["a", "b"]] {
        let mut it = Locks::new();
        it.ask(1, names).stand(1, "a").calm().later(4 * TIMEOUT_MS);
        check(&it, "W1");
    }
    let mut it = Locks::new();
    it.take(2, &["b"]).ask(1, &["a", "b"]).stand(1, "a").stand(1, "b").calm();
    it.later(4 * TIMEOUT_MS);
    check_good(&it);
}

#[test]
fn w1_a_refusal_without_a_reason_is_rejected() {
    for value in [json!("no-node"), json!({ "invalid": "x" })] {
        let mut it = Locks::new();
        it.ask(1, &["a", "b"]).answer(1, Outcome::Err { value, holds: false });
        check(&it, "W1");
    }
    let mut it = Locks::new();
    it.take(1, &["a", "b"]).ask(1, &["b", "a"]).answer(1, refusal());
    check(&it, "W1");
    let mut it = Locks::new();
    it.take(1, &["a"]).give_back(1, &["a"]).ask(1, &["b"]);
    it.answer(1, Outcome::Err { value: json!({ "invalid": "x" }), holds: false });
    check(&it, "W1");
}

#[test]
fn w2_one_that_was_first_for_one_lock_only_is_rejected() {
    let mut it = Locks::new();
    it.take(2, &["b"]).ask(1, &["a", "b"]).stand(1, "a").stand(1, "b").claim(1, &["a", "b"]);
    check(&it, "W2");
}

#[test]
fn w3_an_attempt_that_waits_is_rejected() {
    let mut it = Locks::new();
    it.take(2, &["a"]).ask_by("try-acquire", 1, &["a"]).stand(1, "a");
    let path = it.path(2, "a");
    it.story.ask(1, "watch-data", &path).answer_ask(1, None);
    it.go(1, &["a"]).busy(1, "a");
    check(&it, "W3");
}

#[test]
fn w3_a_lock_that_nobody_had_was_not_busy() {
    let mut it = Locks::new();
    it.ask_by("try-acquire", 1, &["a"]).stand(1, "a").go(1, &["a"]).busy(1, "a");
    check(&it, "W3");
    let mut it = Locks::new();
    it.take(2, &["b"]).ask_by("try-acquire", 1, &["a", "b"]).stand(1, "a").stand(1, "b");
    it.go(1, &["a", "b"]).busy(1, "a");
    check(&it, "W3");
}

/// Participant 3 is told of those in the line of `a`, the first of them as such.
fn tells(it: &mut Locks, those: &[u32]) {
    let told = those.iter().enumerate().map(|(place, who)| {
        let path = it.path(*who, "a").replace(MOUNT, "");
        json!({ "path": path, "owner": "", "is-first": place == 0 })
    });
    let told: Vec<Value> = told.collect();
    it.story.invoke_with(3, "contenders", json!({ "name": "a" })).answer_value(3, json!(told));
}

#[test]
fn c1_a_line_that_a_lock_had_is_told_and_no_other() {
    for (those, is_so) in
        [(&[][..], true), (&[1], true), (&[1, 2], true), (&[2], false), (&[2, 1], false)]
    {
        let mut it = Locks::new();
        it.take(1, &["a", "b"]).ask(2, &["a"]).stand(2, "a");
        tells(&mut it, those);
        assert_breaks(&verdict(&it.story.entries), if is_so { &[] } else { &["C1"] });
    }
}

#[test]
fn c1_the_line_of_another_lock_another_owner_and_another_one_first_are_rejected() {
    let wrong =
        [("path", "b", json!("")), ("owner", "a", json!("me")), ("is-first", "a", json!(false))];
    for (key, name, value) in wrong {
        let mut it = Locks::new();
        it.take(1, &["a", "b"]);
        let path = it.path(1, name).replace(MOUNT, "");
        let mut told = json!({ "path": path, "owner": "", "is-first": true });
        if key != "path" {
            told[key] = value;
        }
        let asked = json!({ "name": "a" });
        it.story.invoke_with(3, "contenders", asked).answer_value(3, json!([told]));
        check(&it, "C1");
    }
}

#[test]
fn h1_one_that_asks_again_and_again_is_rejected() {
    let mut it = Locks::new();
    it.take(2, &["a"]).ask(1, &["a"]).stand(1, "a");
    let path = it.path(2, "a");
    for _ in 0..20 {
        it.story.ask(1, "exists", &path).answer_ask(1, None);
    }
    it.go(1, &["a"]).answer(1, Outcome::Cancelled);
    check(&it, "H1");
}

#[test]
fn h1_two_who_are_woken_by_one_are_rejected() {
    let mut it = Locks::new();
    it.take(1, &["a"]);
    let path = it.path(1, "a");
    for who in [2, 3] {
        it.ask(who, &["a"]).stand(who, "a");
        it.story.ask(who, "watch-data", &path).answer_ask(who, None);
    }
    it.give_back(1, &["a"]);
    it.story.event(2, "deleted", &path).event(3, "deleted", &path);
    check(&it, "H1");
}
