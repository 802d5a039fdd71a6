//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::NamesJudge;

/// Longer than anything may take that nothing disturbs.
const LONG_MS: u64 = 2000;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    NamesJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

#[track_caller]
fn check_good(story: &Story) {
    assert_eq!(verdict(&story.entries), []);
}

fn view(revision: i64, instances: &[(&str, &str, i64)]) -> Value {
    let instances: Vec<_> = instances
        .iter()
        .map(|(id, address, fence)| {
            json!({ "id": id, "address": address, "metadata": [["zone", "b"]], "fence": fence })
        })
        .collect();
    json!({ "revision": revision, "instances": instances })
}

/// What may happen to the name `web`, in the words of these tests.
trait Naming {
    /// Its directory comes into being, or an instance; it is deleted.
    fn make(&mut self) -> &mut Self;
    fn come(&mut self, who: ParticipantId, id: &str) -> &mut Self;
    fn go(&mut self, who: ParticipantId, id: &str) -> &mut Self;
    /// It asks.
    fn register(&mut self, who: ParticipantId) -> &mut Self;
    fn registered(&mut self, who: ParticipantId, id: &str) -> &mut Self;
    fn ask_web(&mut self, who: ParticipantId, operation: &str) -> &mut Self;
    fn await_web(&mut self, who: ParticipantId, after: i64) -> &mut Self;
    /// It is told of a revision; of none if that is 0.
    fn hear(&mut self, who: ParticipantId, revision: i64) -> &mut Self;
}

impl Naming for Story {
    fn make(&mut self) -> &mut Self {
        let (path, data) = (format!("{MOUNT}/web"), Data::default());
        self.commit(session(1), vec![Change::Created { path, ephemeral_owner: 0, data }])
    }

    fn come(&mut self, who: ParticipantId, id: &str) -> &mut Self {
        let data = Data::from(format!("host-{who}:80\nzone=b\n").into_bytes());
        let (path, ephemeral_owner) = (format!("{MOUNT}/web/{id}"), session(who));
        self.commit(session(who), vec![Change::Created { path, ephemeral_owner, data }])
    }

    fn go(&mut self, who: ParticipantId, id: &str) -> &mut Self {
        let path = format!("{MOUNT}/web/{id}");
        self.commit(session(who), vec![Change::Deleted { path }])
    }

    fn register(&mut self, who: ParticipantId) -> &mut Self {
        let address = format!("host-{who}:80");
        let pairs = json!([["zone", "b"]]);
        let arguments = json!({ "name": "web", "address": address, "metadata": pairs });
        self.invoke_with(who, "register", arguments)
    }

    fn registered(&mut self, who: ParticipantId, id: &str) -> &mut Self {
        let value = json!({ "path": format!("/web/{id}"), "fence": self.newest_zxid() });
        self.answer(who, Outcome::Ok { value, holds: true })
    }

    fn ask_web(&mut self, who: ParticipantId, operation: &str) -> &mut Self {
        self.invoke_with(who, operation, json!({ "name": "web" }))
    }

    fn await_web(&mut self, who: ParticipantId, after: i64) -> &mut Self {
        self.invoke_with(who, "wait", json!({ "name": "web", "after": after }))
    }

    fn hear(&mut self, who: ParticipantId, revision: i64) -> &mut Self {
        let mut detail = BTreeMap::from([("name".to_owned(), "web".to_owned())]);
        if revision > 0 {
            detail.insert("revision".to_owned(), revision.to_string());
        }
        self.tell(who, Told::Emitted { event: "changed".to_owned(), detail })
    }
}

/// One instance of web, called a.
fn one() -> Story {
    let mut story = Story::new();
    story.make().register(1).come(1, "a").registered(1, "a");
    story
}

/// Everything that can go right with a name.
fn good() -> Story {
    let mut story = Story::new();
    story.ask_web(3, "resolve").answer_value(3, view(0, &[]));
    story.invoke(3, "list").answer_value(3, json!([]));
    story.ask_web(3, "observe").answer_value(3, json!(0));
    story.make().register(1).come(1, "a").registered(1, "a");
    let first = story.newest_zxid();
    story.hear(3, first).register(2).come(2, "b").registered(2, "b");
    let second = story.newest_zxid();
    story.hear(3, second).ask_web(3, "resolve");
    story.answer_value(3, view(second, &[("a", "host-1:80", first), ("b", "host-2:80", second)]));
    story.invoke(3, "list").answer_value(3, json!(["web"]));
    story.await_web(3, second).invoke(1, "deregister").go(1, "a");
    let third = story.newest_zxid();
    story.answer_value(1, Value::Null).answer_value(3, json!(third)).hear(3, third);
    story.invoke(1, "deregister");
    story.answer(1, Outcome::Err { value: json!({ "invalid": "none" }), holds: false });
    // One gives up, and its znode goes after it; another one's host is cut off, and hears later.
    story.register(1).come(1, "c").answer(1, Outcome::Cancelled).go(1, "c");
    story.fault(FaultKind::LostBefore, 3).wait(TIMEOUT_MS);
    let fourth = story.newest_zxid();
    story.hear(3, fourth).push(What::Calm).invoke(2, "deregister").go(2, "b");
    let fifth = story.newest_zxid();
    story.answer_value(2, Value::Null).hear(3, fifth);
    story.invoke(3, "list").answer_value(3, json!([]));
    story.commit(0, vec![Change::Deleted { path: format!("{MOUNT}/web") }]).hear(3, 0);
    story.wait(3 * TIMEOUT_MS).leave(1).leave(2).leave(3);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn n1_an_instance_that_was_gone_before_the_call_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(1, "deregister").go(1, "a").answer_value(1, Value::Null);
    story.ask_web(3, "resolve").answer_value(3, view(first, &[("a", "host-1:80", first)]));
    check(&story, "N1");
}

#[test]
fn n1_an_instance_that_is_missing_or_has_another_address_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    check(story.ask_web(3, "resolve").answer_value(3, view(first, &[])), "N1");
    let mut story = one();
    story.ask_web(3, "resolve").answer_value(3, view(first, &[("a", "host-2:80", first)]));
    check(&story, "N1");
}

#[test]
fn n1_a_name_without_instances_is_not_listed_and_one_with_some_is() {
    let mut story = one();
    check(story.invoke(3, "list").answer_value(3, json!([])), "N1");
    let mut story = one();
    story.go(1, "a").invoke(3, "list").answer_value(3, json!(["web"]));
    check(&story, "N1");
    let mut story = one();
    story.invoke(3, "list").go(1, "a").answer_value(3, json!(["web"]));
    check_good(&story);
    // A list tells a name that has nothing but what another program has left there; nobody resolves that.
    let path = format!("{MOUNT}/web/left");
    let left = Change::Created { path, ephemeral_owner: 0, data: Data::default() };
    let mut story = one();
    story.go(1, "a").commit(1, vec![left]).invoke(3, "list").answer_value(3, json!(["web"]));
    check_good(&story);
    story.invoke(3, "list").answer_value(3, json!([]));
    check(&story, "N1");
}

#[test]
fn n2_a_revision_that_never_was_or_is_older_than_one_told_before_is_rejected() {
    let mut story = one();
    check(story.hear(3, 7), "N2");
    let mut story = one();
    let first = story.newest_zxid();
    story.come(2, "b");
    let second = story.newest_zxid();
    check(story.hear(3, second).hear(3, first), "N2");
    let mut story = one();
    story.ask_web(3, "observe").answer_value(3, json!(first));
    check(story.hear(3, first), "N2");
}

#[test]
fn what_comes_while_a_call_is_under_way_may_overtake_its_answer() {
    let mut story = one();
    let first = story.newest_zxid();
    story.ask_web(3, "observe").come(2, "b");
    let second = story.newest_zxid();
    check_good(story.hear(3, second).answer_value(3, json!(first)));
    // Not one that was known before.
    check(story.ask_web(3, "observe").answer_value(3, json!(first)), "N2");
}

#[test]
fn n3_an_observer_that_is_not_told_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.ask_web(3, "observe").answer_value(3, json!(first)).come(2, "b");
    check_good(&story);
    check(story.wait(LONG_MS).push(What::Calm), "N3");
}

#[test]
fn n3_one_that_is_busy_or_cut_off_is_told_later() {
    for is_busy in [true, false] {
        let mut story = one();
        let first = story.newest_zxid();
        story.ask_web(3, "observe").answer_value(3, json!(first));
        if is_busy {
            story.await_web(3, first + 1000);
        } else {
            story.fault(FaultKind::LostBefore, 3);
        }
        story.come(2, "b").wait(LONG_MS).push(What::Calm);
        check_good(&story);
    }
}

#[test]
fn n3_a_wait_that_goes_on_or_ends_for_nothing_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.await_web(3, first).come(2, "b");
    check(story.wait(LONG_MS).push(What::Calm), "N3");
    for answer in [first, 0] {
        let mut story = one();
        check(story.await_web(3, first).answer_value(3, json!(answer)), "N3");
    }
}

#[test]
fn n4_who_takes_anothers_instance_for_its_own_is_rejected() {
    let mut story = one();
    check(story.register(2).registered(2, "a"), "N4");
}

#[test]
fn n4_who_deregisters_and_is_still_there_is_rejected() {
    let mut story = one();
    check(story.invoke(1, "deregister").answer_value(1, Value::Null), "N4");
}

#[test]
fn n4_a_deregistration_that_was_withdrawn_may_be_done_later_and_not_never() {
    let mut story = one();
    let call = story.invoke(1, "deregister").call(1);
    story.push(What::Withdrawn { participant: 1, call }).answer_value(1, Value::Null);
    check_good(&story);
    check(story.wait(2 * TIMEOUT_MS).push(What::Calm), "N4");
}

#[test]
fn n3_a_directory_that_came_and_went_is_none_to_wait_for() {
    let mut story = Story::new();
    story.make().commit(0, vec![Change::Deleted { path: format!("{MOUNT}/web") }]);
    story.await_web(3, 0).wait(LONG_MS).push(What::Calm);
    check_good(&story);
    check(story.make().wait(LONG_MS).push(What::Calm), "N3");
}

#[test]
fn n3_a_directory_that_came_and_went_before_a_look_is_none_to_tell_of() {
    let mut story = Story::new();
    story.ask_web(3, "observe").answer_value(3, json!(0));
    story.make().commit(0, vec![Change::Deleted { path: format!("{MOUNT}/web") }]);
    story.wait(LONG_MS).push(What::Calm);
    check_good(&story);
    check(story.make().wait(LONG_MS).push(What::Calm), "N3");
}

#[test]
fn n4_what_is_left_of_a_registration_that_was_given_up_is_rejected() {
    let mut story = Story::new();
    story.make().register(1).come(1, "a").answer(1, Outcome::Cancelled);
    check_good(&story);
    check(story.wait(2 * TIMEOUT_MS).push(What::Calm), "N4");
}

#[test]
fn n6_an_instance_that_outlives_its_session_is_rejected() {
    let dead = || {
        let mut story = one();
        story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS);
        story
    };
    let mut story = dead();
    check_good(story.go(1, "a").wait(LONG_MS + 1000).push(What::Calm));
    let mut story = dead();
    check(story.wait(LONG_MS + 1000).push(What::Calm), "N6");
}

#[test]
fn n5_a_call_that_is_refused_without_a_fault_is_rejected() {
    for operation in ["register", "resolve", "list", "observe", "wait"] {
        let mut story = Story::new();
        story.ask_web(1, operation);
        story.answer(1, Outcome::Err { value: json!({ "invalid": "so" }), holds: false });
        check(&story, "N5");
    }
}

#[test]
fn n5_instances_that_change_during_each_look_may_be_refused() {
    for (changes, is_good) in [(16, true), (15, false)] {
        let mut story = one();
        story.ask_web(3, "resolve");
        for change in 0..changes {
            match change % 2 {
                0 => story.come(2, "b"),
                _ => story.go(2, "b"),
            };
        }
        story.answer_error(3, json!({ "other": "/web: changed during each of 16 looks" }));
        if is_good { check_good(&story) } else { check(&story, "N5") }
    }
}

fn invalid(story: &mut Story, who: ParticipantId) -> &mut Story {
    story.answer(who, Outcome::Err { value: json!({ "invalid": "so" }), holds: false })
}

#[test]
fn n5_wrong_arguments_are_refused_as_invalid() {
    let register = |address: &str, key: &str, value: &str| {
        let metadata = json!([[key, value]]);
        ("register", json!({ "name": "web", "address": address, "metadata": metadata }))
    };
    let wrong = [
        ("resolve", json!({ "name": "a/b" })),
        ("observe", json!({ "name": "" })),
        ("wait", json!({ "name": ".a", "after": 0 })),
        ("register", json!({ "name": "a\n", "address": "host:80", "metadata": [] })),
        register("", "zone", "b"),
        register("host:80", "", "b"),
        register("host:80", "a=b", "b"),
        register("host:80", "zone", "b\n"),
        register("host:80", "zone", &"x".repeat(16 * 1024)),
    ];
    for (operation, arguments) in wrong {
        let mut story = Story::new();
        story.invoke_with(2, operation, arguments.clone());
        check_good(invalid(&mut story, 2));
        let mut story = Story::new();
        story.invoke_with(2, operation, arguments);
        check(story.answer_error(2, json!("no-node")), "N5");
    }
    let mut story = Story::new();
    story.register(1);
    check(invalid(&mut story, 1), "N5");
}

#[test]
fn n5_a_wrong_name_that_is_not_refused_is_rejected() {
    let mut story = Story::new();
    story.invoke_with(3, "resolve", json!({ "name": ".a" })).answer_value(3, view(0, &[]));
    check(&story, "N5");
}

#[test]
fn n5_who_has_an_instance_registers_none_and_who_has_none_deregisters_none() {
    let mut story = one();
    check_good(invalid(story.register(1), 1));
    let mut story = one();
    check(invalid(story.invoke(1, "deregister"), 1), "N5");
    let mut story = one();
    check_good(invalid(story.invoke(2, "deregister"), 2));
}

#[test]
fn n5_one_follows_no_more_than_sixteen_names() {
    for (names, is_good) in [(16, true), (15, false)] {
        let mut story = Story::new();
        for number in 0..names {
            let name = json!({ "name": format!("name-{number}") });
            story.invoke_with(3, "observe", name).answer_value(3, json!(0));
        }
        story.ask_web(3, "observe").answer_error(3, json!({ "over-limit": "so" }));
        match is_good {
            true => check_good(&story),
            false => check(&story, "N5"),
        }
    }
}

#[test]
fn h1_who_asks_again_and_again_is_rejected() {
    for is_idle in [false, true] {
        let mut story = one();
        story.wait(LONG_MS);
        let first = story.newest_zxid();
        story.await_web(2, first);
        if is_idle {
            story.answer(2, Outcome::Cancelled);
        }
        for _ in 0..8 {
            story.ask(2, "get-data", MOUNT).answer_ask(2, None);
        }
        story.push(What::Calm);
        check(&story, "H1");
    }
}
