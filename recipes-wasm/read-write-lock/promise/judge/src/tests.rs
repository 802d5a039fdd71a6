//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, configured, created, session};
use wok_judge::{Judge, Violation};

use crate::ReadWriteLockJudge;

mod revoking;

const READ: &str = "-__READ__";
const WRITE: &str = "-__WRIT__";

fn verdict(history: &[Entry]) -> Vec<Violation> {
    judged_by(&Value::Null, history)
}

/// What is said of a history whose participants all have this config.
fn judged_by(config: &Value, history: &[Entry]) -> Vec<Violation> {
    ReadWriteLockJudge.verdict(&configured(history, config))
}

fn judge(story: &Story) -> Vec<Violation> {
    verdict(&story.entries)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&judge(story), &[expected]);
}

/// What is told of a read-write lock beside what is told of every line.
trait Telling {
    fn reads(&mut self, who: ParticipantId, counter: u32) -> &mut Self;
    fn writes(&mut self, who: ParticipantId, counter: u32) -> &mut Self;
    fn downgrades(&mut self, who: ParticipantId) -> &mut Self;
    fn place_of_a_reader(&self, who: ParticipantId) -> String;
    fn grant(&self, who: ParticipantId) -> Outcome;
    fn told(&mut self, who: ParticipantId) -> &mut Self;
    fn refused(&mut self, who: ParticipantId, operation: &str) -> &mut Self;
}

impl Telling for Story {
    fn reads(&mut self, who: ParticipantId, counter: u32) -> &mut Self {
        self.invoke(who, "acquire-read").stand_as(who, READ, counter)
    }

    fn writes(&mut self, who: ParticipantId, counter: u32) -> &mut Self {
        self.invoke(who, "acquire-write").stand_as(who, WRITE, counter)
    }

    fn downgrades(&mut self, who: ParticipantId) -> &mut Self {
        let (old, new) = (self.contender(who), self.place_of_a_reader(who));
        self.invoke(who, "downgrade").replace(who, &new).event(who, "deleted", &old);
        let grant = self.told(who).grant(who);
        self.answer(who, grant)
    }

    fn place_of_a_reader(&self, who: ParticipantId) -> String {
        self.contender(who).replace(WRITE, READ)
    }

    fn grant(&self, who: ParticipantId) -> Outcome {
        let value = json!({ "path": self.contender(who), "fence": self.fence(who) });
        Outcome::Ok { value, holds: true }
    }

    fn told(&mut self, who: ParticipantId) -> &mut Self {
        let (path, fence) = (self.contender(who), self.fence(who));
        self.tell(who, Told::Held { path, fence })
    }

    fn refused(&mut self, who: ParticipantId, operation: &str) -> &mut Self {
        let value = json!({ "invalid": "it is held to read" });
        self.invoke(who, operation).answer(who, Outcome::Err { value, holds: true })
    }
}

/// Everything that can go right: readers together, writers alone, a downgrade with others behind, an
/// upgrade that is refused, a session that is lost, a wait that is withdrawn.
fn good() -> Story {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).writes(3, 2).watch(3, 2);
    story.refused(1, "acquire-write").refused(2, "try-acquire-write");
    let second = story.contender(2);
    story.give_up(2, "release").event(3, "deleted", &second).watch(3, 1);
    // A reader that comes later waits for the writer that waits, and gives up.
    story.reads(2, 3).watch(2, 3);
    let call = story.call(2);
    story.push(What::Withdrawn { participant: 2, call }).delete(2).answer(2, Outcome::Cancelled);
    let first = story.contender(1);
    story.give_up(1, "release").event(3, "deleted", &first).win(3).write(3, true);
    // Two readers and a writer behind a writer that downgrades.
    story.reads(1, 4).watch(1, 3).writes(2, 5).watch(2, 1);
    let writer = story.contender(3);
    story.downgrades(3).event(1, "deleted", &writer).win(1);
    story.refused(3, "acquire-write").invoke(3, "downgrade");
    let grant = story.grant(3);
    story.answer(3, grant);
    let (reader, downgraded) = (story.contender(1), story.contender(3));
    story.give_up(1, "release").event(2, "deleted", &reader).watch(2, 3);
    story.give_up(3, "release").event(2, "deleted", &downgraded).win(2).write(2, true);
    // The writer is stopped for longer than its session lasts.
    story.fault(FaultKind::Pause, 2).wait(TIMEOUT_MS + 2000).expire(2).reads(1, 6).win(1);
    story.reads(3, 7).win(3).heal(FaultKind::Pause, 2).lose(2).push(What::Calm);
    story.give_up(1, "release").give_up(3, "release").leave(1).leave(3);
    story.wait(60_000).end(None, Vec::new(), 0);
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
fn readers_hold_together_in_kazoos_format_and_across_the_wrap() {
    let mut story = Story::new();
    story.invoke(1, "acquire-read").stand_as(1, "__rlock__", 2_147_483_647).win(1);
    let path = format!("{MOUNT}/_c_2__rlock__-2147483648");
    story.invoke(2, "acquire-read").commit(session(2), vec![created(&path, session(2))]);
    let fence = story.fence(1) + 2;
    story.tell(2, Told::Held { path, fence });
    assert_eq!(judge(&story), []);
}

#[test]
fn m1_a_fence_that_is_not_the_czxid_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0);
    let (path, fence) = (story.contender(1), story.fence(1) - 1);
    story.tell(1, Told::Held { path, fence });
    check(&story, "M1");
}

#[test]
fn r1_a_counter_that_goes_back_puts_a_writer_beside_a_reader() {
    let mut story = Story::new();
    story.reads(1, 5).win(1).writes(2, 3);
    check(&story, "R1");

    let mut story = Story::new();
    story.writes(1, 5).win(1).reads(2, 3);
    check(&story, "R1");

    let mut story = Story::new();
    story.reads(1, 5).win(1).reads(2, 3).win(2);
    assert_eq!(judge(&story), [], "two readers");
}

#[test]
fn r1_a_writer_that_believes_beside_the_next_reader_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).reads(2, 1).expire(1).win(2).wait(500).lose(1);
    check(&story, "R1");
}

#[test]
fn r1_a_reader_that_believes_beside_the_next_writer_is_rejected_and_beside_a_reader_is_not() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).writes(2, 1).expire(1).win(2).wait(500).lose(1);
    check(&story, "R1");

    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).expire(1).win(2).wait(500).lose(1);
    assert_eq!(judge(&story), []);
}

#[test]
fn r1_a_downgrade_whose_end_is_not_told_is_a_writer_that_goes_on() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).reads(2, 1).watch(2, 1);
    let (old, new) = (story.contender(1), story.place_of_a_reader(1));
    story.invoke(1, "downgrade").replace(1, &new).answer(1, Outcome::Cancelled);
    story.event(2, "deleted", &old).win(2);
    let so_far = story.entries.len();
    story.wait(2 * TIMEOUT_MS).write(1, true);
    assert_eq!(verdict(&story.entries[..so_far]), []);
    let found = judge(&story);
    assert!(found.iter().any(|violation| violation.invariant == "R1"), "{found:#?}");
}

#[test]
fn r1_a_writer_whose_downgrade_is_not_answered_is_beside_readers_while_its_new_place_is_there() {
    // The downgrade is done, its reply is lost, and the next reader is let in.
    let unanswered = || {
        let mut story = Story::new();
        story.writes(1, 0).win(1).reads(2, 1).watch(2, 1);
        let (old, new) = (story.contender(1), story.place_of_a_reader(1));
        story.invoke(1, "downgrade").replace(1, &new).event(2, "deleted", &old).win(2);
        story
    };
    let mut story = unanswered();
    story.wait(2 * TIMEOUT_MS).lose(1).answer(1, Outcome::Ended).expire(1);
    assert_eq!(judge(&story), []);

    let mut story = unanswered();
    story.expire(1).wait(TIMEOUT_MS).lose(1).answer(1, Outcome::Ended);
    check(&story, "R1");
}

#[test]
fn r2_an_upgrade_that_is_granted_or_stands_in_line_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).invoke(1, "acquire-write");
    let grant = story.grant(1);
    check(story.answer(1, grant), "R2");

    let mut story = Story::new();
    story.reads(1, 0).win(1).writes(1, 1);
    check(&story, "R2");

    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "try-acquire-read");
    check(story.answer(1, Outcome::Ok { value: Value::Null, holds: true }), "R2");
}

/// Its followers hear of a release later than its component.
#[test]
fn r2_who_has_released_stands_in_line_before_it_is_told_to_followers() {
    for is_answered in [true, false] {
        let mut story = Story::new();
        story.reads(1, 0).win(1);
        let path = story.contender(1);
        story.ask(1, "release", &path).delete(1).invoke(1, "acquire-write");
        if is_answered {
            story.answer_ask(1, None);
        }
        story.ask(1, "contend-and-list", MOUNT).tell(1, Told::Released { path });
        if is_answered {
            assert_eq!(verdict(&story.entries), []);
        } else {
            check(&story, "R2");
        }
    }
}

#[test]
fn r2_a_downgrade_that_gives_its_place_up_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "downgrade");
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).delete(1).stand_as(1, READ, 1).hold(1);
    let grant = story.grant(1);
    check(story.answer(1, grant), "R2");
}

#[test]
fn r2_a_downgrade_that_stays_a_writer_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "downgrade");
    let grant = story.grant(1);
    check(story.answer(1, grant), "R2");
}

#[test]
fn r2_a_downgrade_of_nothing_and_a_reader_that_takes_another_place_are_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).give_up(1, "release").reads(1, 1).win(1);
    story.invoke(1, "downgrade");
    let grant = story.grant(1);
    story.answer(1, grant);
    assert_eq!(judge(&story), [], "the same grant again");
    story.give_up(1, "release").invoke(1, "downgrade");
    let grant = story.grant(1);
    story.answer(1, grant);
    let found = judge(&story);
    assert!(found.iter().any(|violation| violation.invariant == "R2"), "{found:#?}");
}

#[test]
fn r2_a_place_that_is_taken_though_nobody_asked_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1);
    let new = story.place_of_a_reader(1);
    story.replace(1, &new).told(1);
    check(&story, "R2");
}

#[test]
fn r2_a_downgrade_may_be_done_after_it_was_withdrawn() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "downgrade");
    let new = story.place_of_a_reader(1);
    story.answer(1, Outcome::Cancelled).replace(1, &new);
    assert_eq!(judge(&story), []);
}

#[test]
fn m3_a_resource_that_takes_a_lower_fence_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).writes(2, 1).fault(FaultKind::Expiry, 1).expire(1);
    story.win(2).write(2, true).write(1, true).lose(1);
    check(&story, "M3");
}

#[test]
fn m4_a_fence_that_is_granted_twice_is_rejected() {
    for kind in [READ, WRITE] {
        let mut story = Story::new();
        story.invoke(1, "acquire-read").stand_as(1, kind, 0).win(1);
        let path = story.contender(1);
        story.tell(1, Told::Released { path }).hold(1);
        check(&story, "M4");
    }
}

#[test]
fn m4_readers_are_told_in_any_order_and_a_downgraded_one_is_younger_than_its_place() {
    let mut story = Story::new();
    story.reads(1, 0).reads(2, 1).win(2).win(1);
    assert_eq!(judge(&story), []);

    let mut story = Story::new();
    story.writes(1, 0).win(1).writes(2, 1).watch(2, 1).downgrades(1);
    assert!(story.fence(1) > story.fence(2));
    assert_eq!(judge(story.watch(2, 1).give_up(1, "release").win(2)), []);
}

#[test]
fn m5_a_belief_that_outlives_its_znode_for_long_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).expire(1).wait(2 * TIMEOUT_MS).lose(1);
    check(&story, "M5");
}

#[test]
fn m6_a_reader_that_overtakes_a_waiting_writer_is_rejected() {
    // By the counter it stands before the writer, and it came later.
    let mut story = Story::new();
    story.reads(1, 5).win(1).writes(2, 7).reads(3, 6).win(3);
    check(&story, "M6");
}

#[test]
fn m7_a_contender_that_outlives_its_call_is_rejected() {
    let mut story = Story::new();
    story.fault(FaultKind::LostBefore, 1).push(What::Calm);
    story.invoke(1, "try-acquire-write").stand_as(1, WRITE, 0);
    story.answer(1, Outcome::Ok { value: Value::Null, holds: false });
    story.wait(4 * TIMEOUT_MS).refuse(1);
    check(&story, "M7");
}

#[test]
fn w1_a_reader_that_waits_for_a_younger_writer_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).writes(3, 2).push(What::Calm).watch(2, 3);
    story.wait(5 * TIMEOUT_MS).refuse(1);
    let found = judge(&story);
    assert!(found.iter().all(|violation| violation.invariant == "W1"), "{found:#?}");
    assert_eq!(found.len(), 1, "the writer waits in its turn: {found:#?}");
    assert_eq!(found[0].participants, [2]);
}

#[test]
fn w1_who_is_turned_away_without_a_fault_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "acquire-write");
    check(story.answer(1, Outcome::Err { value: json!("no-node"), holds: false }), "W1");
}

#[test]
fn w2_a_writer_that_is_granted_beside_readers_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).writes(3, 2).win(3);
    check(&story, "W2");
}

#[test]
fn w2_a_reader_that_is_granted_behind_a_writer_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).writes(2, 1).reads(3, 2).win(3);
    check(&story, "W2");
}

#[test]
fn w2_a_writer_that_takes_the_place_of_a_downgrade_is_rejected() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).writes(2, 1).watch(2, 1).downgrades(1).win(2);
    check(&story, "W2");
}

#[test]
fn h1_readers_wake_together_and_writers_do_not() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).reads(2, 1).watch(2, 1).reads(3, 2).watch(3, 1);
    let path = story.contender(1);
    story.give_up(1, "release").event(2, "deleted", &path).event(3, "deleted", &path);
    assert_eq!(judge(&story), []);

    let mut story = Story::new();
    story.reads(1, 0).win(1).writes(2, 1).watch(2, 1).writes(3, 2).watch(3, 1);
    let path = story.contender(1);
    story.give_up(1, "release").event(2, "deleted", &path).event(3, "deleted", &path);
    check(&story, "H1");
}

#[test]
fn c1_readers_beside_each_other_are_told_as_holders_and_a_writer_behind_them_is_not() {
    for (of_reader, of_writer, expected) in
        [(true, false, &[][..]), (false, false, &["C1"]), (true, true, &["C1"])]
    {
        let mut story = Story::new();
        story.reads(1, 0).reads(2, 1).writes(3, 2);
        let told = [(1, "read", true), (2, "read", of_reader), (3, "write", of_writer)];
        let told = told.map(|(who, mode, is_holder)| {
            let path = story.contender(who).replace(MOUNT, "");
            json!({ "path": path, "owner": "", "mode": mode, "is-holder": is_holder })
        });
        story.join(4, 1).invoke(4, "contenders").answer_value(4, json!(told));
        assert_breaks(&judge(&story), expected);
    }
}

#[test]
fn c1_what_each_of_a_line_wants_is_told() {
    for (mode, expected) in [("write", &[][..]), ("read", &["C1"])] {
        let mut story = Story::new();
        story.reads(1, 0).writes(2, 1);
        let told = [(1, "read", true), (2, mode, false)].map(|(who, mode, is_holder)| {
            let path = story.contender(who).replace(MOUNT, "");
            json!({ "path": path, "owner": "", "mode": mode, "is-holder": is_holder })
        });
        story.invoke(3, "contenders").answer_value(3, json!(told));
        assert_breaks(&judge(&story), expected);
    }
}

#[test]
fn r2_a_grant_says_what_was_asked_for_and_what_its_contender_is_for() {
    for (asked, kind, mode, expected) in [
        ("acquire-read", READ, "read", &[][..]),
        ("acquire-write", WRITE, "write", &[]),
        ("acquire-read", READ, "write", &["R2"]),
        ("acquire-read", WRITE, "read", &["R2"]),
        ("acquire-read", WRITE, "write", &["R2"]),
    ] {
        let mut story = Story::new();
        story.invoke(1, asked).stand_as(1, kind, 0).told(1);
        let (path, fence) = (story.contender(1).replace(MOUNT, ""), story.fence(1));
        let value = json!({ "path": path, "fence": fence, "mode": mode });
        story.answer(1, Outcome::Ok { value, holds: true });
        assert_breaks(&judge(&story), expected);
    }
}

#[test]
fn c1_a_request_that_came_along_with_a_downgrade_is_no_part_of_the_owner() {
    for (owner, expected) in [("me", &[][..]), ("me\n__REVOKE__", &["C1"])] {
        let mut story = Story::new();
        story.reads(1, 0);
        for entry in &mut story.entries {
            let What::Txn { changes, .. } = &mut entry.what else { continue };
            if let [Change::Created { data, .. }] = changes.as_mut_slice() {
                *data = Data::from(b"me\n__REVOKE__".to_vec());
            }
        }
        let path = story.contender(1).replace(MOUNT, "");
        let told = json!([{ "path": path, "owner": owner, "mode": "read", "is-holder": true }]);
        story.invoke(2, "contenders").answer_value(2, told);
        assert_breaks(&judge(&story), expected);
    }
}
