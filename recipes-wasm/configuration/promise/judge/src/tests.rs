//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, session};
use wok_judge::{Judge, Violation};

use crate::ConfigurationJudge;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    ConfigurationJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

fn path(key: &str) -> String {
    format!("{MOUNT}/{key}")
}

fn set_data(path: &str, version: i32, data: &str) -> Change {
    Change::DataSet { path: path.to_owned(), version, data: data.as_bytes().to_vec().into() }
}

/// The root is written with the key's name. Nobody looks at its version.
fn root(key: &str) -> Change {
    set_data(MOUNT, 1, key)
}

fn first(key: &str, data: &str) -> Change {
    let data = data.as_bytes().to_vec().into();
    Change::Created { path: path(key), ephemeral_owner: 0, data }
}

/// What may happen to a configuration, in the words of these tests.
trait Configuring {
    fn ask_to_set(
        &mut self,
        who: ParticipantId,
        key: &str,
        data: &str,
        expected: Value,
    ) -> &mut Self;
    /// The ensemble commits these for that participant, along with the root.
    fn becomes(&mut self, who: ParticipantId, key: &str, change: Change) -> &mut Self;
    /// A value that is answered with the revision of the newest transaction.
    fn set(&mut self, who: ParticipantId, key: &str, version: i32, data: &str) -> &mut Self;
    fn remove(&mut self, who: ParticipantId, key: &str) -> &mut Self;
    fn ok(&mut self, who: ParticipantId, value: Value) -> &mut Self;
    fn get(&mut self, who: ParticipantId, key: &str, value: Value) -> &mut Self;
    fn snapshot(&mut self, who: ParticipantId, revision: i64, entries: Value) -> &mut Self;
    fn observe(&mut self, who: ParticipantId, revision: i64) -> &mut Self;
    fn ask_to_wait(&mut self, who: ParticipantId, after: i64) -> &mut Self;
    /// It reads the root by itself, and tells what it has found.
    fn hear(&mut self, who: ParticipantId, revision: i64, key: Option<&str>) -> &mut Self;
}

impl Configuring for Story {
    fn ask_to_set(
        &mut self,
        who: ParticipantId,
        key: &str,
        data: &str,
        expected: Value,
    ) -> &mut Self {
        self.invoke_with(who, "set", json!({ "key": key, "data": data, "expected": expected }))
    }

    fn becomes(&mut self, who: ParticipantId, key: &str, change: Change) -> &mut Self {
        let marker = set_data(&path(".writer-1-0"), 1, "me");
        self.commit(session(who), vec![change, root(key), marker])
    }

    fn set(&mut self, who: ParticipantId, key: &str, version: i32, data: &str) -> &mut Self {
        let change = match version {
            0 => first(key, data),
            _ => set_data(&path(key), version, data),
        };
        let expected = match version {
            0 => json!("absent"),
            _ => json!({ "version": version - 1 }),
        };
        self.ask_to_set(who, key, data, expected).becomes(who, key, change);
        let revision = self.newest_zxid();
        self.ok(who, json!({ "version": version, "revision": revision }))
    }

    fn remove(&mut self, who: ParticipantId, key: &str) -> &mut Self {
        self.invoke_with(who, "remove", json!({ "key": key, "expected": "any" }));
        self.becomes(who, key, Change::Deleted { path: path(key) });
        let revision = self.newest_zxid();
        self.ok(who, json!(revision))
    }

    fn ok(&mut self, who: ParticipantId, value: Value) -> &mut Self {
        self.answer_value(who, value)
    }

    fn get(&mut self, who: ParticipantId, key: &str, value: Value) -> &mut Self {
        self.invoke_with(who, "get", json!({ "key": key })).ok(who, value)
    }

    fn snapshot(&mut self, who: ParticipantId, revision: i64, entries: Value) -> &mut Self {
        self.invoke(who, "snapshot");
        self.ok(who, json!({ "revision": revision, "entries": entries }))
    }

    fn observe(&mut self, who: ParticipantId, revision: i64) -> &mut Self {
        self.invoke(who, "observe").ok(who, json!(revision))
    }

    fn ask_to_wait(&mut self, who: ParticipantId, after: i64) -> &mut Self {
        self.invoke_with(who, "wait", json!({ "after": after }))
    }

    fn hear(&mut self, who: ParticipantId, revision: i64, key: Option<&str>) -> &mut Self {
        self.ask(who, "watch-data", MOUNT).answer_ask(who, None);
        let revision = ("revision".to_owned(), revision.to_string());
        let key = key.map(|key| ("key".to_owned(), key.to_owned()));
        let detail: BTreeMap<_, _> = [revision].into_iter().chain(key).collect();
        self.tell(who, Told::Emitted { event: "changed".to_owned(), detail })
    }
}

fn value(data: &str, version: i32) -> Value {
    json!({ "data": data, "version": version })
}

fn entry(key: &str, data: &str, version: i32) -> Value {
    json!({ "key": key, "data": data, "version": version })
}

/// A configuration whose root is there.
fn begun() -> Story {
    let mut story = Story::new();
    story.commit(session(1), vec![created(MOUNT, 0)]);
    story
}

/// Everything that can go right with a configuration.
fn good() -> Story {
    let mut story = Story::new();
    story.get(2, "a", Value::Null).snapshot(2, 0, json!([])).observe(3, 0);
    story.commit(session(1), vec![created(MOUNT, 0)]);
    let begun = story.newest_zxid();
    story.hear(3, begun, None).set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("a")).get(2, "a", value("one", 0));
    story.set(2, "b", 0, "two").set(1, "a", 1, "three");
    let newest = story.newest_zxid();
    let both = json!([entry("a", "three", 1), entry("b", "two", 0)]);
    story.hear(3, newest, None).snapshot(2, newest, both);

    // One waits for what comes next, and one for what has been.
    story.ask_to_wait(2, newest).set(1, "b", 1, "four");
    let newest = story.newest_zxid();
    story.ok(2, json!(newest)).hear(3, newest, Some("b")).ask_to_wait(2, 1).ok(2, json!(newest));

    // Who expects what is over is refused.
    story.ask_to_set(2, "a", "four", json!({ "version": 0 })).answer_error(2, json!("bad-version"));
    story.ask_to_set(2, "a", "four", json!("absent")).answer_error(2, json!("node-exists"));
    story.ask_to_set(2, "c", "four", json!({ "version": 0 })).answer_error(2, json!("no-node"));
    story.remove(1, "b");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("b"));

    // A caller withdraws, and its value is written after all; another's reply is lost, and the key
    // is written again before it is told.
    story.ask_to_set(2, "a", "four", json!("any"));
    let call = story.call(2);
    story.push(What::Withdrawn { participant: 2, call }).answer(2, Outcome::Cancelled);
    story.becomes(2, "a", set_data(&path("a"), 2, "four"));
    story.ask_to_set(2, "a", "five", json!("any")).becomes(2, "a", set_data(&path("a"), 3, "five"));
    let revision = story.newest_zxid();
    story.set(1, "a", 4, "six").ok(2, json!({ "version": null, "revision": revision }));
    let newest = story.newest_zxid();
    story.hear(3, newest, None).refuse(1);

    // A reader at a leader that has lost the others.
    let cut = FaultKind::LeaderCut;
    story.push(What::Fault { fault: cut, host: None, struck: Vec::new(), cut: None });
    story.set(1, "a", 5, "seven").get(2, "a", value("six", 4));
    story.push(What::Healed { fault: cut, host: None });
    story.fault(FaultKind::HalfOpen, 2).ask_to_set(2, "a", "x", json!("any"));
    story.answer_error(2, json!({ "other": "it had no time" })).heal(FaultKind::HalfOpen, 2);
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("a")).push(What::Calm).wait(3 * TIMEOUT_MS);
    story.get(2, "a", value("seven", 5)).leave(3);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    assert_judged_without_beginning(&good(), verdict);
}

#[test]
fn what_is_no_key_is_none_of_the_configuration() {
    let mut story = begun();
    story.commit(session(1), vec![created(&path(".writer-1-0"), session(1))]);
    story.commit(session(2), vec![created(&path("a/below"), 0), created("/mounts/b", 0)]);
    let newest = 104;
    story.snapshot(2, newest, json!([]));
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn k1_what_was_acknowledged_and_not_made_is_rejected() {
    let mut story = begun();
    story.ask_to_set(1, "a", "one", json!("any")).ok(1, json!({ "version": 0, "revision": 999 }));
    check(&story, "K1");

    // Of another key, or another value.
    for change in [first("b", "one"), first("a", "two")] {
        let mut story = begun();
        story.ask_to_set(1, "a", "one", json!("any")).becomes(1, "a", change);
        let revision = story.newest_zxid();
        story.ok(1, json!({ "version": 0, "revision": revision }));
        check(&story, "K1");
    }
}

#[test]
fn k1_what_was_not_as_expected_and_made_is_rejected() {
    let mut story = begun();
    story.set(1, "a", 0, "one").set(1, "a", 1, "two").ask_to_set(
        2,
        "a",
        "three",
        json!({ "version": 0 }),
    );
    story.becomes(2, "a", set_data(&path("a"), 2, "three"));
    let revision = story.newest_zxid();
    story.ok(2, json!({ "version": 2, "revision": revision }));
    check(&story, "K1");

    // Also where nobody was told.
    let mut story = begun();
    story.set(1, "a", 0, "one").ask_to_set(2, "a", "two", json!("absent"));
    story.becomes(2, "a", set_data(&path("a"), 1, "two")).answer(2, Outcome::Ended);
    check(&story, "K1");
}

#[test]
fn k1_what_was_made_twice_or_unasked_is_rejected() {
    let mut story = begun();
    story.ask_to_set(1, "a", "one", json!("any")).becomes(1, "a", first("a", "one"));
    story.becomes(1, "a", set_data(&path("a"), 1, "one"));
    let revision = story.newest_zxid();
    story.ok(1, json!({ "version": 1, "revision": revision }));
    check(&story, "K1");

    let mut story = begun();
    story.becomes(1, "a", first("a", "one")).get(2, "a", value("one", 0));
    check(&story, "K1");

    // It was refused.
    let mut story = begun();
    story.fault(FaultKind::Delay, 1).ask_to_set(1, "a", "one", json!("any"));
    story.becomes(1, "a", first("a", "one")).answer_error(1, json!({ "other": "no" }));
    check(&story, "K1");
}

#[test]
fn k1_a_version_that_is_not_that_of_the_value_is_rejected() {
    let mut story = begun();
    story.ask_to_set(1, "a", "one", json!("any")).becomes(1, "a", first("a", "one"));
    let revision = story.newest_zxid();
    story.ok(1, json!({ "version": 7, "revision": revision }));
    check(&story, "K1");
}

#[test]
fn k1_a_refusal_of_what_was_as_expected_is_rejected() {
    for (expected, error) in [
        (json!({ "version": 0 }), "bad-version"),
        (json!({ "version": 0 }), "no-node"),
        (json!("any"), "bad-version"),
    ] {
        let mut story = begun();
        story
            .set(1, "a", 0, "one")
            .ask_to_set(2, "a", "two", expected)
            .answer_error(2, json!(error));
        check(&story, "K1");
    }
    let mut story = begun();
    story.ask_to_set(2, "a", "two", json!("absent")).answer_error(2, json!("node-exists"));
    check(&story, "K1");
}

#[test]
fn k1_a_snapshot_of_two_revisions_is_rejected() {
    let mut story = begun();
    story.set(1, "a", 0, "one").set(1, "b", 0, "one").invoke(2, "snapshot");
    let old = story.newest_zxid();
    story.set(1, "a", 1, "two").set(1, "b", 1, "two");
    let torn = json!([entry("a", "one", 0), entry("b", "two", 1)]);
    story.ok(2, json!({ "revision": old, "entries": torn }));
    check(&story, "K1");
}

#[test]
fn k2_an_observer_that_is_not_told_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.observe(3, begun).set(1, "a", 0, "one").push(What::Calm).wait(3 * TIMEOUT_MS);
    story.get(2, "a", value("one", 0));
    check(&story, "K2");

    // It was told of the one before.
    let mut story = self::begun();
    story.observe(3, begun).set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("a")).set(1, "a", 1, "two").push(What::Calm).wait(3 * TIMEOUT_MS);
    story.get(2, "a", value("two", 1));
    check(&story, "K2");

    // The key was written and the root was not.
    let mut story = self::begun();
    story.observe(3, begun).ask_to_set(1, "a", "one", json!("any"));
    story.commit(session(1), vec![first("a", "one")]);
    let revision = story.newest_zxid();
    story.ok(1, json!({ "version": 0, "revision": revision }));
    story.push(What::Calm).wait(3 * TIMEOUT_MS).get(2, "a", value("one", 0));
    check(&story, "K2");
}

#[test]
fn k2_a_revision_that_never_was_or_is_no_news_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.observe(3, begun).set(1, "a", 0, "one").hear(3, 999, None);
    check(&story, "K2");

    let mut story = self::begun();
    story.set(1, "a", 0, "one").set(1, "a", 1, "two");
    let newest = story.newest_zxid();
    story.observe(3, newest).set(1, "a", 2, "three").hear(3, newest, None);
    check(&story, "K2");
}

#[test]
fn what_comes_while_a_call_is_under_way_may_overtake_its_answer() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.invoke(3, "observe").set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("a")).ok(3, json!(begun));
    assert_eq!(verdict(&story.entries), []);
    // Not one that was known before.
    check(story.observe(3, begun), "K2");
}

#[test]
fn k2_a_key_that_is_not_the_only_one_that_changed_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.observe(3, begun).set(1, "a", 0, "one").set(1, "b", 0, "one");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("b"));
    check(&story, "K2");

    let mut story = self::begun();
    story.observe(3, begun).set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.hear(3, newest, Some("b"));
    check(&story, "K2");
}

#[test]
fn k2_one_change_that_is_told_without_its_key_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.observe(3, begun).set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    check(story.hear(3, newest, None), "K2");

    // Two changes are told without one, and so is one that names another key.
    let mut story = self::begun();
    story.observe(3, begun).set(1, "a", 0, "one").set(1, "a", 1, "two");
    let newest = story.newest_zxid();
    story.hear(3, newest, None);
    assert_eq!(verdict(&story.entries), []);
    story.commit(session(9), vec![set_data(&path("a"), 2, "three"), root("")]);
    let newest = story.newest_zxid();
    story.hear(3, newest, None);
    assert!(verdict(&story.entries).iter().all(|found| found.invariant != "K2"));
}

#[test]
fn k2_a_wait_that_is_answered_too_early_or_not_at_all_is_rejected() {
    for after in [102, 103] {
        let mut story = begun();
        story.set(1, "a", 0, "one").ask_to_wait(2, 999).ok(2, json!(after));
        check(&story, "K2");
    }

    let mut story = begun();
    let begun = story.newest_zxid();
    story.ask_to_wait(2, begun).set(1, "a", 0, "one").push(What::Calm).wait(3 * TIMEOUT_MS);
    story.get(1, "a", value("one", 0));
    check(&story, "K2");
}

#[test]
fn k2_a_wait_that_goes_on_for_too_long_is_rejected_however_it_ends() {
    for (rest_ms, is_good) in [(500, true), (2_000, false)] {
        let mut story = begun();
        let newest = story.newest_zxid();
        let call = story.ask_to_wait(2, newest).call(2);
        story.set(1, "a", 0, "one").wait(rest_ms).push(What::Withdrawn { participant: 2, call });
        story.answer(2, Outcome::Cancelled);
        match is_good {
            true => assert_good_wherever_cut_off(&story, verdict),
            false => check(&story, "K2"),
        }
    }
}

#[test]
fn h1_a_wait_that_asks_again_and_again_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.ask_to_wait(2, begun);
    for _ in 0..9 {
        story.ask(2, "watch-data", MOUNT).answer_ask(2, None);
    }
    story.set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.ok(2, json!(newest));
    check(&story, "H1");
}

#[test]
fn k3_what_is_over_or_never_was_is_rejected() {
    let mut story = begun();
    story.set(1, "a", 0, "one").set(1, "a", 1, "two").get(2, "a", value("one", 0));
    check(&story, "K3");

    let mut story = begun();
    story.set(1, "a", 0, "one").get(2, "a", value("two", 0));
    check(&story, "K3");

    let mut story = begun();
    story.set(1, "a", 0, "one");
    let old = story.newest_zxid();
    story.set(1, "a", 1, "two").snapshot(2, old, json!([entry("a", "one", 0)]));
    check(&story, "K3");
}

#[test]
fn k4_who_is_refused_for_nothing_is_rejected() {
    let mut story = begun();
    story.ask_to_set(1, "a", "one", json!("any")).answer_error(1, json!({ "other": "no" }));
    check(&story, "K4");

    let mut story = begun();
    story.invoke(2, "snapshot").answer_error(2, json!({ "other": "the configuration changed" }));
    check(&story, "K4");
}

/// Calls that the interface says are refused.
fn wrong_calls() -> Vec<(&'static str, Value)> {
    let set = |key: &str, data: &str, expected: Value| {
        ("set", json!({ "key": key, "data": data, "expected": expected }))
    };
    vec![
        ("get", json!({ "key": "." })),
        ("get", json!({ "key": "" })),
        ("get", json!({ "key": "x".repeat(129) })),
        set("a/b", "one", json!("any")),
        set("a", &"x".repeat(65_537), json!("any")),
        set("a", "one", json!({ "version": -1 })),
        ("remove", json!({ "key": "a\n", "expected": "any" })),
        ("remove", json!({ "key": "a", "expected": "absent" })),
    ]
}

#[test]
fn k4_who_asks_for_what_is_wrong_is_refused_as_invalid() {
    for (operation, arguments) in wrong_calls() {
        for (error, is_good) in
            [(json!({ "invalid": "it is wrong" }), true), (json!("no-node"), false)]
        {
            let mut story = begun();
            story.invoke_with(2, operation, arguments.clone()).answer_error(2, error);
            match is_good {
                true => assert_eq!(verdict(&story.entries), [], "{operation} {arguments}"),
                false => check(&story, "K4"),
            }
        }
    }
    // What is right is not.
    let mut story = begun();
    story.invoke_with(2, "get", json!({ "key": "a.b" }));
    check(story.answer_error(2, json!({ "invalid": "it is wrong" })), "K4");
    let mut story = begun();
    story.ask_to_set(2, "a", "one", json!("absent"));
    check(story.answer_error(2, json!({ "invalid": "it is wrong" })), "K4");
}

#[test]
fn k4_a_wrong_call_that_is_not_refused_is_rejected() {
    let mut story = begun();
    check(story.get(2, ".", Value::Null), "K4");
}

#[test]
fn h1_an_observer_that_asks_without_a_change_is_rejected() {
    let mut story = begun();
    let begun = story.newest_zxid();
    story.observe(3, begun);
    story.ask(3, "watch-data", MOUNT).answer_ask(3, None);
    check(&story, "H1");

    // Two reads for one change.
    let mut story = self::begun();
    story.observe(3, begun).set(1, "a", 0, "one");
    let newest = story.newest_zxid();
    story.ask(3, "get-data", MOUNT).answer_ask(3, None).hear(3, newest, Some("a"));
    check(&story, "H1");
}
