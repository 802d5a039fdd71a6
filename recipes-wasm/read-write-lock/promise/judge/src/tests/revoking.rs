//! Requests to give way, of readers and of a writer that becomes one.

use wok_judge::history::{Change, Data};

use super::*;

fn revocable() -> Value {
    json!({ "revocable": true, "force-after-ms": 1000 })
}

const DONE: Outcome = Outcome::Ok { value: Value::Null, holds: false };

/// What is told of requests beside what is told of every lock.
trait Asking {
    fn asked(&mut self, by: ParticipantId, whom: ParticipantId) -> &mut Self;
    fn told_of_it(&mut self, who: ParticipantId) -> &mut Self;
    fn inherits(&mut self, data: &str) -> &mut Self;
}

impl Asking for Story {
    fn asked(&mut self, by: ParticipantId, whom: ParticipantId) -> &mut Self {
        let (path, data) = (self.contender(whom), Data::from(b"__REVOKE__".to_vec()));
        self.invoke(by, "revoke");
        self.commit(session(by), vec![Change::DataSet { path, version: 1, data }]);
        self.answer(by, DONE)
    }

    fn told_of_it(&mut self, who: ParticipantId) -> &mut Self {
        let path = self.contender(who).replace(MOUNT, "");
        let detail = [("path".to_owned(), path)].into();
        self.tell(who, Told::Emitted { event: "revoke-requested".to_owned(), detail })
    }

    /// What was created last has that data.
    fn inherits(&mut self, asks: &str) -> &mut Self {
        let mut entries = self.entries.iter_mut().rev();
        let made = entries.find_map(|entry| match &mut entry.what {
            What::Txn { changes, .. } => changes.iter_mut().find_map(|change| match change {
                Change::Created { data, .. } => Some(data),
                _ => None,
            }),
            _ => None,
        });
        *made.expect("something was created") = Data::from(asks.as_bytes().to_vec());
        self
    }
}

#[track_caller]
fn check_by(story: &Story, expected: &[&str]) {
    assert_breaks(&judged_by(&revocable(), &story.entries), expected);
}

#[test]
fn readers_that_are_told_and_give_way_are_good() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).asked(3, 1).asked(3, 2).told_of_it(1).told_of_it(2);
    story.give_up(1, "release").give_up(2, "release").push(What::Calm).wait(TIMEOUT_MS + 3000);
    check_by(story.writes(3, 2).win(3).write(3, true), &[]);
}

#[test]
fn who_is_busy_is_told_when_the_operation_is_over() {
    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "contenders").asked(3, 1).push(What::Calm).wait(3000);
    check_by(story.answer(1, DONE).told_of_it(1).give_up(1, "release").wait(3000), &[]);
    let mut story = Story::new();
    story.writes(1, 0).win(1).invoke(1, "contenders").asked(3, 1).push(What::Calm).wait(3000);
    check_by(story.answer(1, DONE).wait(3000).give_up(1, "release"), &["V2"]);
}

#[test]
fn v2_a_reader_that_is_not_told_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).asked(3, 1).asked(3, 2).told_of_it(1);
    story.push(What::Calm).wait(TIMEOUT_MS + 3000).give_up(1, "release");
    check_by(&story, &["V2"]);
}

#[test]
fn v2_a_request_goes_along_in_a_downgrade_or_was_told_before() {
    let downgraded = |asks: &str| {
        let mut story = Story::new();
        story.writes(1, 0).win(1).asked(3, 1).downgrades(1).inherits(asks);
        story
    };
    check_by(&downgraded(""), &["V2"]);
    check_by(&downgraded("__REVOKE__"), &[]);
    let mut story = downgraded("__REVOKE__");
    check_by(story.push(What::Calm).wait(TIMEOUT_MS + 3000).give_up(1, "release"), &["V2"]);
    let mut story = Story::new();
    story.writes(1, 0).win(1).asked(3, 1).told_of_it(1).downgrades(1);
    let by_release = json!({ "revocable": true, "consent": "by-release" });
    assert_breaks(&judged_by(&by_release, &story.entries), &[]);
    // Who consents at once does that first.
    check_by(&story, &["V2"]);
}

#[test]
fn v2_a_reader_that_consents_at_once_and_reads_on_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).asked(3, 1).asked(3, 2).told_of_it(1).told_of_it(2);
    story.give_up(1, "release").wait(4000).push(What::Woken { participant: 3, tags: Vec::new() });
    check_by(&story, &["V2"]);
}

#[test]
fn v1_a_reader_that_is_deleted_unasked_is_rejected() {
    let mut story = Story::new();
    story.reads(1, 0).win(1).reads(2, 1).win(2).asked(3, 1).told_of_it(1).wait(2000);
    let path = story.contender(2);
    story.invoke(3, "revoke").ask(3, "delete", &path);
    story.commit(session(3), vec![Change::Deleted { path }]).answer_ask(3, None);
    let lost = Told::Lost { reason: "znode-deleted".to_owned() };
    check_by(story.tell(2, lost).give_up(1, "release"), &["V1"]);
}

#[test]
fn r1_a_writer_that_is_forced_while_it_downgrades_is_told_within_two_timeouts() {
    let mut at_its_own_time = revocable();
    at_its_own_time["consent"] = "by-release".into();
    // The downgrade is not answered before the session is lost. `is_sent` says whether it was sent when the
    // writer is forced.
    let told_after = |ms, is_sent| {
        let mut story = Story::new();
        story.writes(1, 0).win(1).reads(2, 1).watch(2, 1);
        let (old, new) = (story.contender(1), story.place_of_a_reader(1));
        let (path, data) = (old.clone(), Data::from(b"__REVOKE__".to_vec()));
        story.invoke(3, "revoke");
        story.commit(session(3), vec![Change::DataSet { path, version: 1, data }]);
        story.told_of_it(1).wait(1000);
        story.invoke(1, "downgrade");
        if is_sent {
            story.ask_all(1, "multi", vec![new, old.clone()]);
        }
        let strike = vec![Change::Deleted { path: old.clone() }];
        story.ask(3, "delete", &old).commit(session(3), strike);
        story.event(2, "deleted", &old).win(2).wait(ms).lose(1).answer(1, Outcome::Ended);
        judged_by(&at_its_own_time, &story.entries)
    };
    assert_breaks(&told_after(TIMEOUT_MS * 3 / 2, true), &[]);
    assert_breaks(&told_after(TIMEOUT_MS * 5 / 2, true), &["R1"]);
    assert_breaks(&told_after(TIMEOUT_MS * 3 / 2, false), &["R1"]);
}
