//! Requests to give way: told, heeded by consent, and forced only as agreed.

use wok_judge::history::{Data, ParticipantId};

use super::*;

fn forced() -> Value {
    json!({ "revocable": true, "force-after-ms": 1000 })
}

fn unforced() -> Value {
    json!({ "revocable": true })
}

fn by_release() -> Value {
    json!({ "revocable": true, "consent": "by-release" })
}

/// What is told of requests beside what is told of every line.
trait Telling {
    fn asked(&mut self, by: ParticipantId, whom: ParticipantId, data: &str) -> &mut Self;
    fn told(&mut self, who: ParticipantId) -> &mut Self;
    fn struck(&mut self, by: ParticipantId, whom: ParticipantId) -> &mut Self;
}

impl Telling for Story {
    fn asked(&mut self, by: ParticipantId, whom: ParticipantId, data: &str) -> &mut Self {
        let path = self.contender(whom);
        let data = Data::from(data.as_bytes().to_vec());
        self.invoke_with(by, "revoke", json!({ "path": path.rsplit('/').next() }));
        self.commit(session(by), vec![Change::DataSet { path, version: 1, data }])
    }

    fn told(&mut self, who: ParticipantId) -> &mut Self {
        let path = self.contender(who).replace(MOUNT, "");
        let detail = [("path".to_owned(), path)].into();
        self.tell(who, Told::Emitted { event: "revoke-requested".to_owned(), detail })
    }

    fn struck(&mut self, by: ParticipantId, whom: ParticipantId) -> &mut Self {
        let path = self.contender(whom);
        self.ask(by, "delete", &path).commit(session(by), vec![Change::Deleted { path }]);
        self.answer_ask(by, None)
    }
}

#[track_caller]
fn check_by(config: &Value, story: &Story, expected: &[&str]) {
    assert_breaks(&judged_by(config, &story.entries), expected);
}

fn lost() -> Told {
    Told::Lost { reason: "znode-deleted".to_owned() }
}

/// Asked in line and told with the grant; asked as a holder, told, and back in line; forced in time.
fn good() -> Story {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).watch(2, 1);
    let first = story.contender(1);
    story.asked(3, 2, "__REVOKE__").answer(3, NOTHING).asked(3, 1, "__REVOKE__").answer(3, NOTHING);
    story.told(1).give_up(1, "release").event(2, "deleted", &first).win(2).told(2);
    let second = story.contender(2);
    story.give_up(2, "release").acquire(1, 2).win(1).asked(3, 1, "__REVOKE__").told(1).wait(1000);
    story.struck(3, 1).event(1, "deleted", &second).tell(1, lost()).answer(3, NOTHING);
    story.push(What::Calm).leave(3).leave(2).wait(60_000).end(None, Vec::new(), 0);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    let verdict = |history: &[Entry]| judged_by(&forced(), history);
    assert_good_wherever_cut_off(&good(), verdict);
    assert_judged_without_beginning(&good(), verdict);
}

#[test]
fn v1_what_is_deleted_unasked_or_where_nobody_may_be_forced_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).invoke(3, "revoke").wait(2000).struck(3, 1).tell(1, lost());
    check_by(&forced(), &story, &["V1"]);
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").told(1).wait(2000);
    story.struck(3, 1).tell(1, lost());
    check_by(&unforced(), &story, &["V1"]);
    check_by(&forced(), &story, &[]);
}

#[test]
fn v1_who_strikes_the_next_one_in_the_place_of_the_one_it_asked_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).watch(2, 1).asked(3, 1, "__REVOKE__").told(1);
    let first = story.contender(1);
    story.give_up(1, "release").event(2, "deleted", &first).win(2).wait(2000);
    check_by(&forced(), story.struck(3, 2).tell(2, lost()), &["V1"]);
}

#[test]
fn v1_a_deletion_by_another_session_is_rejected_however_it_is_done() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1);
    let path = story.contender(1);
    story.commit(session(3), vec![Change::Deleted { path }]).tell(1, lost());
    check_by(&forced(), &story, &["V1"]);
}

#[test]
fn v2_a_holder_that_is_not_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").push(What::Calm);
    story.wait(TIMEOUT_MS + 3000).write(1, true);
    check_by(&unforced(), &story, &["V2"]);
    // Nobody listens for requests where the lock is not revocable.
    check_by(&Value::Null, &story, &[]);
}

#[test]
fn each_participant_is_judged_by_its_own_config() {
    // Participant 1 does not listen, and participant 3 may force nobody.
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").push(What::Calm);
    story.wait(TIMEOUT_MS + 3000).write(1, true);
    let among = |story: &Story, listens: u32, forces: u32| {
        let mut history = story.entries.clone();
        for entry in &mut history {
            if let What::Joined { participant, config, .. } = &mut entry.what {
                *config = json!({ "revocable": *participant == listens });
                if *participant == forces {
                    config["force-after-ms"] = json!(1000);
                }
            }
        }
        LockJudge.verdict(&history)
    };
    assert_breaks(&among(&story, 2, 2), &[]);
    assert_breaks(&among(&story, 1, 2), &["V2"]);
    story.struck(3, 1).tell(1, lost());
    assert_breaks(&among(&story, 2, 3), &[]);
    assert_breaks(&among(&story, 2, 1), &["V1"]);
}

#[test]
fn v2_a_request_that_came_before_the_grant_is_to_be_told_after_it() {
    let mut story = Story::new();
    story.acquire(1, 0).asked(3, 1, "__REVOKE__").win(1).push(What::Calm);
    story.wait(TIMEOUT_MS + 3000).write(1, true);
    check_by(&unforced(), &story, &["V2"]);
}

#[test]
fn v2_who_has_given_way_or_is_cut_off_need_not_be_told() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").give_up(1, "release");
    story.wait(TIMEOUT_MS + 3000).push(What::Calm);
    check_by(&unforced(), &story, &[]);
    let mut story = Story::new();
    story.acquire(1, 0).win(1).fault(FaultKind::Pause, 1).asked(3, 1, "__REVOKE__");
    story.wait(TIMEOUT_MS + 3000).heal(FaultKind::Pause, 1).write(1, true);
    check_by(&unforced(), &story, &[]);
}

#[test]
fn v2_who_consents_at_once_and_keeps_the_lock_is_rejected() {
    let told = || {
        let mut story = Story::new();
        story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").told(1);
        story
    };
    let mut story = told();
    story.wait(4000).push(What::Woken { participant: 3, tags: Vec::new() });
    check_by(&unforced(), &story, &["V2"]);
    check_by(&by_release(), &story, &[]);
    // Nothing that it asks for reaches the ensemble.
    let mut story = told();
    story.fault(FaultKind::HostCut, 1).wait(4000);
    check_by(&unforced(), story.push(What::Woken { participant: 3, tags: Vec::new() }), &[]);
    // It comes to the next call, and has not given way before.
    let mut story = told();
    let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
    story.invoke(1, "acquire").answer(1, Outcome::Ok { value, holds: true });
    check_by(&unforced(), &story, &["V2"]);
    check_by(&by_release(), &story, &[]);
    // Its application hears of the request when that call is made, and before it is told of the release.
    let mut story = told();
    let path = story.contender(1);
    story.ask(1, "release", &path).invoke(1, "release");
    let refused = json!({ "invalid": "release: the lock is not held" });
    story.delete(1).answer_ask(1, None).tell(1, Told::Released { path }).answer_error(1, refused);
    check_by(&unforced(), &story, &[]);
}

#[test]
fn v3_who_is_forced_before_its_time_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").told(1).wait(900);
    check_by(&forced(), story.struck(3, 1).tell(1, lost()), &["V3"]);
}

#[test]
fn v3_time_begins_anew_for_another_one_that_asks() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(2, 1, "__REVOKE__").answer(2, NOTHING).told(1).wait(2000);
    check_by(&forced(), story.invoke(3, "revoke").struck(3, 1).tell(1, lost()), &["V3"]);
}

#[test]
fn v4_a_request_that_takes_the_place_of_the_owner_is_rejected() {
    for (data, expected) in [("__REVOKE__", &["V4"][..]), ("me\n__REVOKE__", &[]), ("you", &["V4"])]
    {
        let mut story = Story::new();
        story.acquire(1, 0).win(1);
        for entry in &mut story.entries {
            let What::Txn { changes, .. } = &mut entry.what else { continue };
            if let [Change::Created { data, .. }] = changes.as_mut_slice() {
                *data = Data::from(b"me".to_vec());
            }
        }
        check_by(&unforced(), story.asked(3, 1, data), expected);
    }
}

/// Participant 3 has asked participant 1, which holds, and has gone then or not; and is answered that.
fn answered(word: &str, is_asked: bool, is_gone: bool) -> Story {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, if is_asked { "__REVOKE__" } else { "" });
    if is_gone {
        story.give_up(1, "release");
    }
    story.answer_value(3, json!(word));
    story
}

#[test]
fn v5_a_request_that_is_answered_as_standing_stands() {
    check_by(&Value::Null, &answered("asked", true, false), &[]);
    // It has gone meanwhile.
    check_by(&Value::Null, &answered("asked", true, true), &[]);
    check_by(&Value::Null, &answered("asked", false, false), &["V5"]);
}

#[test]
fn v5_who_is_answered_to_be_gone_has_gone() {
    check_by(&Value::Null, &answered("gone", true, true), &[]);
    check_by(&Value::Null, &answered("gone", true, false), &["V5"]);
    let mut story = answered("asked", true, true);
    let path = story.contender(1);
    story.invoke_with(2, "revoke", json!({ "path": path })).answer_error(2, json!("no-node"));
    check_by(&Value::Null, &story, &[]);
    let mut story = answered("asked", true, false);
    story.invoke_with(2, "revoke", json!({ "path": path })).answer_error(2, json!("no-node"));
    check_by(&Value::Null, &story, &["V5"]);
}

#[test]
fn v5_who_is_answered_to_be_forced_was_deleted_by_the_one_that_is_answered() {
    check_by(&Value::Null, &answered("forced", true, true), &["V5"]);
    let mut story = Story::new();
    story.acquire(1, 0).win(1).asked(3, 1, "__REVOKE__").told(1).wait(1000);
    story.struck(3, 1).tell(1, lost()).answer_value(3, json!("forced"));
    check_by(&forced(), &story, &[]);
}
