//! Elections: one leads, the first in line does, and an observer is told the truth.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::ElectionJudge;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    ElectionJudge.verdict(history)
}

fn judge(story: &Story) -> Vec<Violation> {
    verdict(&story.entries)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&judge(story), &[expected]);
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good_election(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn e1_two_leaders_are_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 5).hold(1).volunteer(2, 3).hold(2);
    check(&story, "E1");
}

#[test]
fn e1_a_term_that_comes_again_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).hold(1);
    check(&story, "E1");
}

#[test]
fn e2_a_leader_that_is_told_only_after_the_next_leads_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).expire(1).hold(2).wait(500).lose(1);
    check(&story, "E2");
}

#[test]
fn e2_a_leader_that_leads_again_without_being_told_that_it_lost_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).volunteer(1, 1).hold(1);
    check(&story, "E2");
}

#[test]
fn e3_a_candidate_who_could_lead_and_does_not_is_rejected() {
    let mut story = Story::new();
    story.push(What::Calm).volunteer(1, 0).wait(2 * TIMEOUT_MS + 6000).volunteer(2, 1);
    check(&story, "E3");
}

#[test]
fn e3_a_leader_who_stays_though_its_znode_is_gone_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).wait(3 * TIMEOUT_MS).lose(1);
    check(&story, "E3");
}

#[test]
fn e4_an_observer_that_goes_back_to_an_earlier_term_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    check(story.news(3, two).news(3, one), "E4");
}

#[test]
fn e4_a_term_that_is_news_twice_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let fence = story.fence(1);
    check(story.news(3, fence).news(3, fence), "E4");
}

#[test]
fn e4_what_observe_answered_is_no_news() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).invoke(3, "observe");
    let fence = story.fence(1);
    story.answer(3, Outcome::Ok { value: json!({ "fence": fence }), holds: false });
    check(story.news(3, fence), "E4");
}

#[test]
fn e4_an_answer_older_than_what_was_known_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    story.news(3, two).invoke(3, "leader");
    story.answer(3, Outcome::Ok { value: json!({ "fence": one }), holds: false });
    check(&story, "E4");
}

#[test]
fn e4_a_leader_that_never_was_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1);
    let fence = story.fence(2);
    check(story.news(3, fence).give_up(1, "resign").hold(2), "E4");
}

/// What `leader` tells of a participant.
fn term(story: &Story, who: ParticipantId) -> Value {
    let path = story.contender(who).replace(MOUNT, "");
    json!({ "path": path, "fence": story.fence(who), "owner": "", "announcement": null })
}

/// One leads, and another one stands behind it.
fn led() -> Story {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).watch(2, 1);
    story
}

#[test]
fn e4_who_led_at_a_moment_that_a_server_behind_may_show_is_answered_and_nobody_else() {
    for operation in ["leader", "observe"] {
        let mut story = led();
        let leader = term(&story, 1);
        story.invoke(3, operation).answer_value(3, leader);
        assert_eq!(judge(&story), []);
        // A server that is behind has no candidate yet.
        let mut story = led();
        story.invoke(3, operation).answer_value(3, Value::Null);
        assert_eq!(judge(&story), []);
        let mut story = led();
        let next = term(&story, 2);
        story.invoke(3, operation).answer_value(3, next);
        check(&story, "E4");
    }
}

#[test]
fn e4_nobody_and_a_leader_of_before_are_not_answered_once_the_own_session_has_written_since() {
    let mut story = led();
    story.invoke(2, "leader").answer_value(2, Value::Null);
    check(&story, "E4");
    let mut story = led();
    let before = term(&story, 1);
    story.give_up(1, "resign").hold(2).volunteer(3, 2).watch(3, 2);
    story.invoke(3, "leader").answer_value(3, before);
    check(&story, "E4");
}

#[test]
fn e4_a_leader_by_another_path_or_owner_is_rejected() {
    for key in ["path", "owner"] {
        let mut story = led();
        let mut leader = term(&story, 1);
        leader[key] = json!("somebody");
        story.invoke(3, "leader").answer_value(3, leader);
        check(&story, "E4");
        let mut story = led();
        let fence = ("fence".to_owned(), story.fence(1).to_string());
        let detail = BTreeMap::from([fence, (key.to_owned(), "somebody".to_owned())]);
        story.tell(3, Told::Emitted { event: "leader-changed".to_owned(), detail });
        check(&story, "E4");
    }
}

/// The end of a story in which nothing more is told.
fn later(story: &mut Story) -> &mut Story {
    story.wait(TIMEOUT_MS + 3000).push(What::Woken { participant: 3, tags: Vec::new() })
}

fn nobody_leads() -> Told {
    Told::Emitted { event: "leader-changed".to_owned(), detail: BTreeMap::new() }
}

#[test]
fn e4_an_observer_that_is_not_told_who_leads_is_rejected() {
    for (is_told, expected) in [(true, &[][..]), (false, &["E4"])] {
        let mut story = Story::new();
        story.invoke(3, "observe").answer_value(3, Value::Null);
        story.volunteer(1, 0).hold(1).volunteer(2, 1).watch(2, 1);
        if is_told {
            let fence = story.fence(1);
            story.news(3, fence);
        }
        assert_breaks(&judge(later(&mut story)), expected);
    }
}

/// Participant 3 observes, and the last candidate goes.
fn vacated() -> Story {
    let mut story = led();
    let leader = term(&story, 1);
    story.invoke(3, "observe").answer_value(3, leader);
    story.give_up(2, "resign").give_up(1, "resign");
    story
}

#[test]
fn e4_an_observer_that_is_not_told_that_nobody_leads_is_rejected() {
    check(later(&mut vacated()), "E4");
    let mut story = vacated();
    assert_eq!(judge(later(story.tell(3, nobody_leads()))), []);
    // A time without a leader may be left out where it is short.
    let mut story = vacated();
    story.wait(500).volunteer(1, 2).hold(1);
    let fence = story.fence(1);
    assert_eq!(judge(later(story.news(3, fence))), []);
}

#[test]
fn e4_who_cannot_hear_or_has_left_or_observes_anew_need_not_be_told() {
    let mut story = vacated();
    assert_eq!(judge(later(story.fault(FaultKind::HostCut, 3))), []);
    let mut story = vacated();
    assert_eq!(judge(later(story.leave(3))), []);
    let mut story = vacated();
    story.invoke(3, "observe").answer_value(3, Value::Null);
    assert_eq!(judge(later(&mut story)), []);
    // Its component is busy.
    let mut story = vacated();
    assert_eq!(judge(later(story.invoke(3, "announce"))), []);
}

#[test]
fn e4_an_event_may_come_before_the_answer_of_the_call_before_it() {
    let mut story = led();
    let leader = term(&story, 1);
    story.invoke(3, "observe").give_up(2, "resign").give_up(1, "resign");
    story.tell(3, nobody_leads()).answer_value(3, leader);
    assert_eq!(judge(later(&mut story)), []);
}

/// The data of an announcement of a participant's.
fn announcement(story: &Story, who: ParticipantId, text: &str) -> Change {
    let path = format!("{MOUNT}/announcement");
    let name = story.contender(who).replace(&format!("{MOUNT}/"), "");
    let data = Data::from(format!("{name}\n{text}").into_bytes());
    Change::Created { path, ephemeral_owner: session(who), data }
}

/// It announces, and is answered.
fn announce(story: &mut Story, who: ParticipantId, text: &str) {
    let made = announcement(story, who, text);
    story.invoke_with(who, "announce", json!({ "data": text }));
    story
        .commit(session(who), vec![made])
        .answer(who, Outcome::Ok { value: Value::Null, holds: true });
}

#[test]
fn e5_an_announcement_is_told_of_the_term_that_it_was_made_in() {
    for (told, expected) in [
        (json!("here"), &[][..]),
        // A server that is behind does not have it yet.
        (Value::Null, &[]),
        (json!("there"), &["E5"]),
    ] {
        let mut story = led();
        announce(&mut story, 1, "here");
        let mut leader = term(&story, 1);
        leader["announcement"] = told.clone();
        story.invoke(3, "leader").answer_value(3, leader);
        assert_breaks(&judge(&story), expected);
        // That of the leader before is still there.
        let mut story = led();
        announce(&mut story, 1, "here");
        story.give_up(1, "resign").hold(2);
        let mut leader = term(&story, 2);
        leader["announcement"] = told.clone();
        story.invoke(3, "leader").answer_value(3, leader);
        assert_breaks(&judge(&story), if told.is_null() { &[] } else { &["E5"] });
    }
}

#[test]
fn e5_what_is_not_announced_is_not_answered_so() {
    let mut story = led();
    story.invoke_with(1, "announce", json!({ "data": "here" }));
    story.answer(1, Outcome::Ok { value: Value::Null, holds: true });
    check(&story, "E5");
    let mut story = led();
    announce(&mut story, 1, "here");
    story.invoke_with(1, "announce", json!({ "data": "there" }));
    story.answer(1, Outcome::Ok { value: Value::Null, holds: true });
    check(&story, "E5");
}

#[test]
fn e5_who_does_not_lead_writes_no_announcement() {
    // One that waits, one that names the leader, and one whose term is over.
    let mut story = led();
    let made = announcement(&story, 2, "here");
    check(story.commit(session(2), vec![made]), "E5");
    let mut story = led();
    let made = announcement(&story, 1, "here");
    check(story.commit(session(2), vec![made]), "E5");
    let mut story = led();
    let made = announcement(&story, 1, "here");
    story.give_up(1, "resign").hold(2);
    check(story.commit(session(1), vec![made]), "E5");
}

#[test]
fn e5_an_announcement_goes_with_its_leader() {
    for (goes_after, expected) in [(500, &[][..]), (3500, &["E5"])] {
        let mut story = led();
        announce(&mut story, 1, "here");
        story.give_up(1, "resign").hold(2).wait(goes_after);
        let path = format!("{MOUNT}/announcement");
        story.commit(session(1), vec![Change::Deleted { path }]);
        assert_breaks(&judge(&story), expected);
    }
    // The next leader's is in its place.
    let mut story = led();
    announce(&mut story, 1, "here");
    story.give_up(1, "resign").hold(2);
    announce(&mut story, 2, "there");
    assert_eq!(judge(later(&mut story)), []);
    // Somebody has deleted the leader's candidate.
    let mut story = led();
    announce(&mut story, 1, "here");
    story.delete(1).tell(1, Told::Lost { reason: "znode-deleted".to_owned() }).hold(2);
    check(later(&mut story), "E5");
}

#[test]
fn w2_a_volunteer_that_leads_is_answered_its_fence() {
    for (is_told, expected) in [(true, &[][..]), (false, &["W2"])] {
        let mut story = Story::new();
        story.invoke(1, "volunteer").stand(1, 0).hold(1);
        let path = story.contender(1).replace(MOUNT, "");
        let fence = is_told.then(|| story.fence(1));
        story
            .answer(1, Outcome::Ok { value: json!({ "path": path, "fence": fence }), holds: true });
        assert_breaks(&judge(&story), expected);
    }
    // It was woken after it had answered, and led before the answer arrived.
    let mut story = Story::new();
    story.invoke(1, "volunteer").stand(1, 0);
    story.push(What::Woken { participant: 1, tags: vec![1] }).hold(1);
    let path = story.contender(1).replace(MOUNT, "");
    story.answer(1, Outcome::Ok { value: json!({ "path": path, "fence": null }), holds: true });
    assert_eq!(judge(&story), []);
    // It leads since before the call.
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).invoke(1, "volunteer");
    let path = story.contender(1).replace(MOUNT, "");
    story.answer(1, Outcome::Ok { value: json!({ "path": path, "fence": null }), holds: true });
    check(&story, "W2");
}

#[test]
fn w2_a_volunteer_that_is_answered_what_it_does_not_hold_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "volunteer").stand(1, 0).hold(1);
    let value = json!({ "path": story.contender(1), "fence": 0 });
    story.answer(1, Outcome::Ok { value, holds: true });
    check(&story, "W2");
}

#[test]
fn w2_a_leader_that_tells_another_fence_than_its_own_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let elected = |fence: u64| {
        let detail = BTreeMap::from([("fence".to_owned(), fence.to_string())]);
        Told::Emitted { event: "elected".to_owned(), detail }
    };
    let fence = story.fence(1);
    story.tell(1, elected(fence));
    assert_eq!(judge(&story), []);
    story.tell(1, elected(0));
    check(&story, "W2");
}

#[test]
fn h1_a_candidate_that_observes_too_is_no_herd() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).watch(2, 1).volunteer(3, 2).watch(3, 2);
    let fence = story.fence(1);
    story.invoke(3, "observe").watch(3, 1).answer_value(3, json!({ "fence": fence }));
    let path = story.contender(1);
    story.give_up(1, "resign").event(2, "deleted", &path).event(3, "deleted", &path);
    assert_eq!(judge(&story), []);
}

#[test]
fn h1_what_a_waiter_is_asked_besides_is_not_what_it_asks_to_wait() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).invoke(2, "leader");
    for _ in 0..9 {
        story.ask(2, "get-children", MOUNT).answer_ask(2, None);
    }
    let fence = story.fence(1);
    story.answer_value(2, json!({ "fence": fence }));
    assert_eq!(judge(&story), []);
}
