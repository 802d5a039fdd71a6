//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::MembershipJudge;

/// Longer than anything may take that nothing disturbs.
const LONG_MS: u64 = 2000;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    MembershipJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

#[track_caller]
fn check_good(story: &Story) {
    assert_eq!(verdict(&story.entries), []);
}

fn path(name: &str) -> String {
    format!("{MOUNT}/{name}")
}

fn view(revision: i64, members: &[(&str, &str, i64)]) -> Value {
    let members: Vec<_> = members
        .iter()
        .map(|(name, data, fence)| json!({ "name": name, "data": data, "fence": fence }))
        .collect();
    json!({ "revision": revision, "members": members })
}

/// What may happen to a group, in the words of these tests.
trait Gathering {
    /// The directory comes into being, or a member's znode; it is deleted; a member says something.
    fn make(&mut self) -> &mut Self;
    fn come(&mut self, who: ParticipantId, name: &str, data: &str) -> &mut Self;
    fn go(&mut self, who: ParticipantId, name: &str) -> &mut Self;
    fn say(&mut self, who: ParticipantId, name: &str, data: &str) -> &mut Self;
    /// It asks.
    fn ask_to_join(&mut self, who: ParticipantId, name: &str) -> &mut Self;
    fn joined(&mut self, who: ParticipantId, name: &str) -> &mut Self;
    /// It is told of a revision; of none if that is 0.
    fn hear(&mut self, who: ParticipantId, revision: i64) -> &mut Self;
}

impl Gathering for Story {
    fn make(&mut self) -> &mut Self {
        let (path, data) = (MOUNT.to_owned(), Data::default());
        self.commit(session(1), vec![Change::Created { path, ephemeral_owner: 0, data }])
    }

    fn come(&mut self, who: ParticipantId, name: &str, data: &str) -> &mut Self {
        let (path, data) = (path(name), Data::from(data.as_bytes().to_vec()));
        let ephemeral_owner = session(who);
        self.commit(session(who), vec![Change::Created { path, ephemeral_owner, data }])
    }

    fn go(&mut self, who: ParticipantId, name: &str) -> &mut Self {
        self.commit(session(who), vec![Change::Deleted { path: path(name) }])
    }

    fn say(&mut self, who: ParticipantId, name: &str, data: &str) -> &mut Self {
        let set = |path: String, data: &str| {
            let data = Data::from(data.as_bytes().to_vec());
            Change::DataSet { path, version: 1, data }
        };
        self.commit(session(who), vec![set(path(name), data), set(MOUNT.to_owned(), name)])
    }

    fn ask_to_join(&mut self, who: ParticipantId, name: &str) -> &mut Self {
        self.invoke_with(who, "join", json!({ "name": name, "data": "x" }))
    }

    fn joined(&mut self, who: ParticipantId, name: &str) -> &mut Self {
        let fence = self.newest_zxid();
        let value = json!({ "path": format!("/{name}"), "fence": fence });
        self.answer(who, Outcome::Ok { value, holds: true })
    }

    fn hear(&mut self, who: ParticipantId, revision: i64) -> &mut Self {
        let told = (revision > 0).then(|| ("revision".to_owned(), revision.to_string()));
        let detail: BTreeMap<_, _> = told.into_iter().collect();
        self.tell(who, Told::Emitted { event: "members-changed".to_owned(), detail })
    }
}

/// A group of one, called a.
fn one() -> Story {
    let mut story = Story::new();
    story.make().ask_to_join(1, "a").come(1, "a", "x").joined(1, "a");
    story
}

/// Everything that can go right with a group.
fn good() -> Story {
    let mut story = Story::new();
    story.invoke(3, "members").answer_value(3, view(0, &[]));
    story.invoke(3, "observe").answer_value(3, json!(0));
    story.make().ask_to_join(1, "a").come(1, "a", "x").joined(1, "a");
    let first = story.newest_zxid();
    story.hear(3, first);
    // One waits for the name, and another one's place is its own.
    story
        .ask_to_join(2, "a")
        .invoke(3, "members")
        .answer_value(3, view(first, &[("a", "x", first)]));
    let data = json!({ "data": "y" });
    story.invoke_with(1, "update", data).say(1, "a", "y");
    let second = story.newest_zxid();
    story.answer_value(1, json!(second)).hear(3, second);
    story.invoke(3, "members").answer_value(3, view(second, &[("a", "y", first)]));
    story.invoke_with(3, "wait", json!({ "after": second }));
    story.invoke(1, "leave").go(1, "a");
    let third = story.newest_zxid();
    story.answer_value(1, Value::Null).answer_value(3, json!(third)).hear(3, third);
    story.come(2, "a", "x").joined(2, "a");
    let fourth = story.newest_zxid();
    story.hear(3, fourth).invoke(1, "leave");
    story.answer(1, Outcome::Err { value: json!({ "invalid": "no member" }), holds: false });
    // One gives up, and its znode goes after it; another one's host is cut off, and hears later.
    story.ask_to_join(1, "b").come(1, "b", "x").answer(1, Outcome::Cancelled).go(1, "b");
    story.fault(FaultKind::LostBefore, 3).wait(TIMEOUT_MS);
    let fifth = story.newest_zxid();
    story.hear(3, fifth).push(What::Calm).invoke(2, "leave").go(2, "a");
    let sixth = story.newest_zxid();
    story.answer_value(2, Value::Null).hear(3, sixth);
    story.commit(0, vec![Change::Deleted { path: MOUNT.to_owned() }]).hear(3, 0);
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
fn g1_the_directory_may_have_been_there_before() {
    let mut story = Story::new();
    story.invoke(3, "members").answer_value(3, view(1, &[]));
    story.invoke_with(3, "wait", json!({ "after": 1 })).wait(LONG_MS).push(What::Calm);
    check_good(&story);
    let fence = story.newest_zxid() + 1;
    story.come(1, "a", "x").answer_value(3, json!(fence));
    check_good(&story);
    check(story.invoke(3, "members").answer_value(3, view(1, &[])), "G1");
}

#[test]
fn g1_a_view_of_before_the_call_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(1, "leave").go(1, "a").answer_value(1, Value::Null);
    story.invoke(3, "members").answer_value(3, view(first, &[("a", "x", first)]));
    check(&story, "G1");
}

#[test]
fn g1_a_view_that_lacks_a_member_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    check(story.invoke(3, "members").answer_value(3, view(first, &[])), "G1");
}

#[test]
fn g1_what_a_member_says_is_a_part_of_the_revision() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(3, "members").say(1, "a", "y");
    check(story.answer_value(3, view(first, &[("a", "y", first)])), "G1");
}

#[test]
fn g1_a_revision_that_never_was_or_is_older_than_one_told_before_is_rejected() {
    let mut story = one();
    check(story.hear(3, 7), "G1");
    let mut story = one();
    let first = story.newest_zxid();
    story.say(1, "a", "y");
    let second = story.newest_zxid();
    check(story.hear(3, second).hear(3, first), "G1");
}

#[test]
fn g1_a_revision_that_is_news_twice_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(3, "observe").answer_value(3, json!(first));
    check(story.hear(3, first), "G1");
}

#[test]
fn what_comes_while_a_call_is_under_way_may_overtake_its_answer() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(3, "observe").say(1, "a", "y");
    let second = story.newest_zxid();
    check_good(story.hear(3, second).answer_value(3, json!(first)));
    // Not one that was known before.
    check(story.invoke(3, "observe").answer_value(3, json!(first)), "G1");
}

#[test]
fn g2_a_member_that_outlives_its_session_is_rejected() {
    let dead = || {
        let mut story = one();
        story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS);
        story
    };
    let mut story = dead();
    check_good(story.go(1, "a").wait(LONG_MS + 1000).push(What::Calm));
    let mut story = dead();
    check(story.wait(LONG_MS + 1000).push(What::Calm), "G2");
}

#[test]
fn g3_an_observer_that_is_not_told_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke(3, "observe").answer_value(3, json!(first)).say(1, "a", "y");
    check_good(&story);
    check(story.wait(LONG_MS).push(What::Calm), "G3");
}

#[test]
fn g3_one_that_is_busy_or_cut_off_is_told_later() {
    for is_busy in [true, false] {
        let mut story = one();
        let first = story.newest_zxid();
        story.invoke(3, "observe").answer_value(3, json!(first));
        if is_busy {
            story.invoke_with(3, "wait", json!({ "after": first + 1000 }));
        } else {
            story.fault(FaultKind::LostBefore, 3);
        }
        story.say(1, "a", "y").wait(LONG_MS).push(What::Calm);
        check_good(&story);
    }
}

#[test]
fn g3_a_wait_that_goes_on_or_ends_for_nothing_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke_with(3, "wait", json!({ "after": first })).say(1, "a", "y");
    check(story.wait(LONG_MS).push(What::Calm), "G3");
    let mut story = one();
    story.invoke_with(3, "wait", json!({ "after": first }));
    check(story.answer_value(3, json!(first)), "G3");
    let mut story = one();
    story.invoke_with(3, "wait", json!({ "after": first }));
    check(story.answer_value(3, json!(0)), "G3");
}

#[test]
fn g4_who_takes_anothers_znode_for_its_own_is_rejected() {
    let mut story = one();
    check(story.ask_to_join(2, "a").joined(2, "a"), "G4");
}

#[test]
fn g4_the_name_may_have_been_anothers_of_the_same_session_during_the_call() {
    let mut story = Story::new();
    story.make().ask_to_join(1, "a").come(1, "a", "x").go(1, "a");
    story.come(1, "a", "x").joined(1, "a");
    check_good(&story);
}

#[test]
fn g4_who_leaves_and_is_still_there_is_rejected() {
    let mut story = one();
    check(story.invoke(1, "leave").answer_value(1, Value::Null), "G4");
}

#[test]
fn g4_a_leave_that_was_withdrawn_may_be_done_later_and_not_never() {
    let mut story = one();
    let call = story.invoke(1, "leave").call(1);
    story.push(What::Withdrawn { participant: 1, call }).answer_value(1, Value::Null);
    check_good(&story);
    check(story.wait(2 * TIMEOUT_MS).push(What::Calm), "G4");
}

#[test]
fn g3_a_directory_that_came_and_went_is_none_to_wait_for() {
    let mut story = Story::new();
    story.make().commit(0, vec![Change::Deleted { path: MOUNT.to_owned() }]);
    story.invoke_with(3, "wait", json!({ "after": 0 })).wait(LONG_MS).push(What::Calm);
    check_good(&story);
    check(story.make().wait(LONG_MS).push(What::Calm), "G3");
}

#[test]
fn g3_a_directory_that_came_and_went_before_a_look_is_none_to_tell_of() {
    let mut story = Story::new();
    story.invoke(3, "observe").answer_value(3, json!(0));
    story.make().commit(0, vec![Change::Deleted { path: MOUNT.to_owned() }]);
    story.wait(LONG_MS).push(What::Calm);
    check_good(&story);
    check(story.make().wait(LONG_MS).push(What::Calm), "G3");
}

#[test]
fn g4_what_is_left_of_a_join_that_was_given_up_is_rejected() {
    let mut story = Story::new();
    story.make().ask_to_join(1, "a").come(1, "a", "x").answer(1, Outcome::Cancelled);
    check_good(&story);
    check(story.wait(2 * TIMEOUT_MS).push(What::Calm), "G4");
}

#[test]
fn g5_an_update_that_was_not_made_is_rejected() {
    let mut story = one();
    let first = story.newest_zxid();
    story.invoke_with(1, "update", json!({ "data": "y" }));
    check(story.answer_value(1, json!(first)), "G5");
    let mut story = one();
    story.invoke_with(1, "update", json!({ "data": "y" })).say(1, "a", "z");
    let second = story.newest_zxid();
    check(story.answer_value(1, json!(second)), "G5");
}

#[test]
fn g5_an_update_may_find_that_a_withdrawn_one_has_arrived() {
    let mut story = one();
    story.invoke_with(1, "update", json!({ "data": "y" })).answer(1, Outcome::Cancelled);
    story.say(1, "a", "y");
    let arrived = story.newest_zxid();
    story.invoke_with(1, "update", json!({ "data": "y" })).answer_value(1, json!(arrived));
    check_good(&story);
}

#[test]
fn g5_an_update_that_was_overwritten_before_it_was_asked_for_is_rejected() {
    let mut story = one();
    story.say(1, "a", "y");
    let overwritten = story.newest_zxid();
    story.say(1, "a", "z").invoke_with(1, "update", json!({ "data": "y" }));
    check(story.answer_value(1, json!(overwritten)), "G5");
}

#[test]
fn g6_who_waits_for_a_name_that_is_free_is_rejected() {
    let mut story = one();
    story.ask_to_join(2, "a").go(1, "a").wait(LONG_MS).push(What::Calm);
    check(&story, "G6");
}

#[test]
fn g6_a_call_that_is_refused_without_a_fault_is_rejected() {
    for operation in ["join", "members", "observe", "wait"] {
        let mut story = Story::new();
        story.invoke(1, operation);
        story.answer(1, Outcome::Err { value: json!({ "invalid": "so" }), holds: false });
        check(&story, "G6");
    }
}

#[test]
fn g6_a_view_may_be_refused_of_a_group_that_changes_during_each_look() {
    for (changes, is_good) in [(16, true), (15, false)] {
        let mut story = one();
        story.invoke(2, "members");
        for _ in 0..changes {
            story.say(1, "a", "y");
        }
        story.answer_error(2, json!({ "other": "/: changed during each of 16 looks" }));
        if is_good { check_good(&story) } else { check(&story, "G6") }
    }
}

fn invalid(story: &mut Story, who: ParticipantId) -> &mut Story {
    story.answer(who, Outcome::Err { value: json!({ "invalid": "so" }), holds: false })
}

#[test]
fn g6_wrong_arguments_are_refused_as_invalid() {
    let join = |name: &str, data: &str| ("join", json!({ "name": name, "data": data }));
    let wrong = [
        join("a/b", "x"),
        join("", "x"),
        join(".a", "x"),
        join(&"x".repeat(129), "x"),
        join("a", &"x".repeat(65_537)),
    ];
    for (operation, arguments) in wrong {
        let mut story = Story::new();
        story.make().invoke_with(2, operation, arguments.clone());
        check_good(invalid(&mut story, 2));
        let mut story = Story::new();
        story.make().invoke_with(2, operation, arguments);
        check(story.answer_error(2, json!("no-node")), "G6");
    }
    let mut story = one();
    story.invoke_with(1, "update", json!({ "data": "x".repeat(65_537) }));
    check_good(invalid(&mut story, 1));
    let mut story = Story::new();
    story.make().ask_to_join(2, "a.b");
    check(invalid(&mut story, 2), "G6");
}

#[test]
fn g6_a_wrong_name_that_is_not_refused_is_rejected() {
    let mut story = Story::new();
    story.make().ask_to_join(2, ".a").come(2, ".a", "x");
    check(story.joined(2, ".a"), "G6");
}

#[test]
fn g6_a_member_does_not_join_and_nobody_else_leaves() {
    let mut story = one();
    story.ask_to_join(1, "b");
    check_good(invalid(&mut story, 1));
    for (operation, arguments) in [("leave", Value::Null), ("update", json!({ "data": "y" }))] {
        // Of a member it is taken, and of somebody who may be one it need not be.
        let mut story = one();
        story.invoke_with(1, operation, arguments.clone());
        check(invalid(&mut story, 1), "G6");
        let mut story = one();
        story.invoke_with(2, operation, arguments.clone());
        check_good(invalid(&mut story, 2));
        let mut story = Story::new();
        story.make().ask_to_join(1, "a").answer(1, Outcome::Cancelled);
        story.invoke_with(1, operation, arguments);
        check_good(invalid(&mut story, 1));
    }
}

#[test]
fn g6_a_name_may_be_a_znode_s_that_goes_with_nobody() {
    let mut story = Story::new();
    let left = Change::Created { path: path("b"), ephemeral_owner: 0, data: Data::default() };
    story.make().commit(session(2), vec![left]).ask_to_join(1, "b");
    check_good(invalid(&mut story, 1));
    story.go(2, "b").ask_to_join(1, "b");
    check(invalid(&mut story, 1), "G6");
}

#[test]
fn h1_who_asks_again_and_again_is_rejected() {
    for is_idle in [false, true] {
        let mut story = one();
        story.wait(LONG_MS);
        story.ask_to_join(2, "a");
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
