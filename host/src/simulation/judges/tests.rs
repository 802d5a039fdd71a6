//! Each judge accepts what is good, and alone rejects what breaks its promise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::stories::{MOUNT, Story, TIMEOUT_MS, good_election, good_lock, session};
use super::*;
use crate::simulation::history::{Change, FaultKind, Outcome, Told, What};

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

#[track_caller]
fn check(story: &Story, interface: Interface, expected: &str) {
    let found = judge(&story.entries, interface);
    let broken: BTreeSet<_> = found.iter().map(|violation| violation.invariant).collect();
    assert_eq!(broken, BTreeSet::from([expected]), "{found:#?}");
    assert!(found.is_sorted_by_key(|violation| violation.at));
}

#[track_caller]
fn check_lock(story: &Story, expected: &str) {
    check(story, Interface::Lock, expected);
}

#[track_caller]
fn check_election(story: &Story, expected: &str) {
    check(story, Interface::LeaderElection, expected);
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    for (story, interface) in
        [(good_lock(), Interface::Lock), (good_election(), Interface::LeaderElection)]
    {
        for length in 0..=story.entries.len() {
            for interface in [interface, Interface::Unknown] {
                let found = judge(&story.entries[..length], interface);
                assert_eq!(found, [], "the first {length} entries as {interface:?}");
            }
        }
    }
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judges() {
    for story in [good_lock(), good_election()] {
        for from in 0..story.entries.len() {
            for interface in [Interface::Lock, Interface::LeaderElection, Interface::Unknown] {
                judge(&story.entries[from..], interface);
            }
        }
    }
}

#[test]
fn an_interface_is_known_by_its_own_name() {
    for (name, expected) in [
        ("wok:lock/lock@0.1.0", Interface::Lock),
        ("my:fork/lock", Interface::Lock),
        ("wok:leader-election/leader-election@0.1.0", Interface::LeaderElection),
        ("wok:lock/semaphore@0.1.0", Interface::Unknown),
        ("", Interface::Unknown),
    ] {
        assert_eq!(Interface::of(name), expected, "{name}");
    }
}

#[test]
fn what_comes_in_one_instant_may_be_taken_down_in_either_order() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
    let (path, fence) = (story.contender(1), story.fence(1));
    story.answer(1, Outcome::Ok { value, holds: true });
    story.at_once().write(1, true).at_once().tell(1, Told::Held { path, fence });
    story.give_up(1, "release").invoke(1, "contenders").leave(1).at_once().answer(1, NOTHING);
    story.invoke(1, "contenders").answer(1, Outcome::Ended);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn a_sentence_says_who_when_and_against_whom() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).expire(1).win(2).wait(20_000).lose(1);
    let found = judge(&story.entries, Interface::Lock);
    let [violation] = found.as_slice() else { panic!("{found:#?}") };
    let (one, two) = (story.fence(1), story.fence(2));
    let sentence = format!(
        "participant 1 still believed to have the lock with fence {one} when it was participant \
         2's with fence {two}"
    );
    assert_eq!(violation.sentence, sentence);
    assert_eq!(violation.participants, [1, 2]);
    let What::Txn { changes, .. } = &story.entries[violation.at].what else { panic!() };
    assert!(changes.contains(&Change::SessionClosed { session: session(1) }));
}

#[test]
fn m1_a_fence_that_is_not_the_czxid_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let (path, fence) = (story.contender(1), story.fence(1) - 1);
    story.tell(1, Told::Held { path, fence });
    check_lock(&story, "M1");
}

#[test]
fn m1_a_grant_of_somebody_elses_contender_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).invoke(2, "acquire");
    let (path, fence) = (story.contender(1), story.fence(1));
    story.tell(2, Told::Held { path, fence });
    check_lock(&story, "M1");
}

#[test]
fn m1_a_grant_of_another_clients_contender_is_rejected() {
    let mut story = Story::new();
    let (path, ephemeral_owner) = (format!("{MOUNT}/_c_x-lock-0000000000"), 99);
    story.commit(99, vec![Change::Created { path: path.clone(), ephemeral_owner }]);
    story.invoke(1, "acquire").tell(1, Told::Held { path, fence: 104 });
    check_lock(&story, "M1");
}

#[test]
fn m1_a_grant_of_a_neighbours_contender_in_the_same_session_is_rejected() {
    let mut story = Story::new();
    let (host, session, mount) = (1, session(1), MOUNT.to_owned());
    story.acquire(1, 0).push(What::Joined { participant: 4, host, session, mount });
    let (path, fence) = (story.contender(1), story.fence(1));
    story.tell(4, Told::Held { path, fence });
    check_lock(&story, "M1");
}

#[test]
fn m1_a_grant_of_a_contender_that_went_before_the_call_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).delete(1).answer(1, Outcome::Cancelled).invoke(1, "acquire").hold(1);
    check_lock(&story, "M1");
}

#[test]
fn m1_an_answer_of_a_grant_that_was_given_up_before_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").invoke(1, "acquire");
    let value = json!({ "path": story.contender(1), "fence": story.fence(1) });
    check_lock(story.answer(1, Outcome::Ok { value, holds: false }), "M1");
}

#[test]
fn m2_a_counter_that_goes_back_makes_two_owners() {
    let mut story = Story::new();
    story.acquire(1, 5).acquire(2, 3);
    check_lock(&story, "M2");
}

#[test]
fn m2_a_counter_that_wraps_does_not() {
    let mut story = Story::new();
    story.acquire(1, 2_147_483_647).win(1).invoke(2, "acquire");
    let path = format!("{MOUNT}/_c_2-lock--2147483648");
    let ephemeral_owner = session(2);
    story.commit(ephemeral_owner, vec![Change::Created { path, ephemeral_owner }]);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn m3_a_resource_that_takes_a_lower_fence_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).fault(FaultKind::Expiry, 1).expire(1);
    story.win(2).write(2, true).write(1, true).lose(1);
    check_lock(&story, "M3");
}

#[test]
fn m3_a_resource_that_refuses_the_highest_fence_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).write(1, false);
    check_lock(&story, "M3");
}

#[test]
fn m3_a_write_with_a_fence_of_nobodys_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).push(What::Wrote { participant: 1, fence: 7, accepted: true });
    check_lock(&story, "M3");
}

#[test]
fn m4_a_fence_that_is_granted_twice_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1);
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).hold(1);
    check_lock(&story, "M4");
}

#[test]
fn m4_a_claim_that_is_told_again_while_it_lasts_is_no_other_grant() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).hold(1).write(1, true).give_up(1, "release");
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn m5_a_belief_that_outlives_the_session_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).expire(1).win(2).wait(500).lose(1);
    check_lock(&story, "M5");
}

#[test]
fn m5_a_write_under_a_claim_that_is_lost_is_rejected_even_after_a_pause() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).fault(FaultKind::Pause, 1).wait(TIMEOUT_MS).expire(1);
    story.heal(FaultKind::Pause, 1).write(1, true).lose(1);
    check_lock(&story, "M5");
}

#[test]
fn m5_a_host_that_does_not_notice_after_a_pause_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).fault(FaultKind::Pause, 1).wait(TIMEOUT_MS);
    story.expire(1).win(2).heal(FaultKind::Pause, 1).wait(500).lose(1);
    check_lock(&story, "M5");
}

#[test]
fn m5_a_write_after_the_loss_was_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").write(1, true);
    check_lock(&story, "M5");

    let mut story = Story::new();
    story.acquire(1, 0).win(1).tell(1, Told::Lost { reason: "session".to_owned() });
    check_lock(story.write(1, true), "M5");
}

#[test]
fn m5_a_grant_that_is_told_when_the_next_has_it_is_rejected_there() {
    let mut story = Story::new();
    story.acquire(1, 0).acquire(2, 1).expire(1).win(2).hold(1);
    check_lock(&story, "M5");
    let told = story.entries.len() - 1;
    assert_eq!(judge(&story.entries, Interface::Lock)[0].at, told);
}

#[test]
fn m6_a_grant_before_one_who_came_earlier_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 5).win(1).acquire(2, 7).acquire(3, 6).give_up(1, "release").win(3);
    check_lock(&story, "M6");
}

#[test]
fn m7_a_contender_that_outlives_its_call_is_rejected() {
    let failed = Outcome::Err { value: json!("no-node"), holds: false };
    for outcome in [Outcome::Cancelled, failed, NOTHING] {
        let mut story = Story::new();
        story.fault(FaultKind::LostBefore, 1).push(What::Calm);
        story.invoke(1, "try-acquire").refuse(1).stand(1, 0).answer(1, outcome);
        story.wait(4 * TIMEOUT_MS).refuse(1);
        check_lock(&story, "M7");
    }
}

#[test]
fn m7_a_fault_gives_the_host_more_time_to_clean_up() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled);
    story.fault(FaultKind::HalfOpen, 2).wait(8000).heal(FaultKind::HalfOpen, 2).wait(8000);
    story.write(1, true).delete(2).wait(TIMEOUT_MS).write(1, true);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn m7_calm_ends_every_fault() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled);
    story.fault(FaultKind::HalfOpen, 2).push(What::Calm).wait(TIMEOUT_MS + 3000).write(1, true);
    check_lock(&story, "M7");
}

#[test]
fn m7_a_contender_goes_with_a_session_that_is_lost() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).answer(2, Outcome::Cancelled).lose(2);
    story.wait(TIMEOUT_MS + 3000).expire(2);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn m7_a_candidate_that_outlives_its_participant_is_rejected() {
    let mut story = Story::new();
    story.push(What::Calm).volunteer(1, 0).leave(1).wait(4 * TIMEOUT_MS).leave(2);
    check_election(&story, "M7");
}

#[test]
fn m7_a_contender_that_nobody_was_told_of_is_rejected_when_its_participant_has_ended() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).ask(2, "contend", MOUNT);
    let (path, ephemeral_owner) = (format!("{MOUNT}/_c_2-lock-0000000001"), session(2));
    story.commit(ephemeral_owner, vec![Change::Created { path, ephemeral_owner }]);
    story.leave(2).wait(TIMEOUT_MS + 3000).write(1, true);
    check(&story, Interface::Unknown, "M7");
}

#[test]
fn m7_a_request_with_two_contenders_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "acquire").stand(1, 0).stand(1, 1);
    check_lock(&story, "M7");

    let mut story = Story::new();
    story.invoke(1, "acquire").stand(1, 0).delete(1).stand(1, 1);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn m7_an_ephemeral_znode_that_is_left_in_the_end_is_rejected() {
    let mut story = Story::new();
    story.leave(1).leave(2).leave(3);
    story.end(Some(("/mounts/a/announcement", session(2))), Vec::new(), 0);
    check_election(&story, "M7");
}

#[test]
fn m8_a_release_by_somebody_who_has_nothing_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).invoke(2, "release").answer(2, NOTHING);
    check_lock(&story, "M8");

    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").invoke(1, "release").answer(1, NOTHING);
    check_lock(&story, "M8");
}

#[test]
fn w1_a_waiter_whose_turn_it_is_and_who_is_not_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).push(What::Calm).wait(2 * TIMEOUT_MS + 6000).acquire(2, 1);
    check_lock(&story, "W1");
}

#[test]
fn w1_time_counts_from_the_last_fault() {
    let mut story = Story::new();
    story.acquire(1, 0).wait(6 * TIMEOUT_MS).push(What::Calm).wait(TIMEOUT_MS).win(1);
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn w1_a_call_that_is_never_answered_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "enter");
    let blocked = vec![story.call(1)];
    check(story.end(None, blocked, 0), Interface::Unknown, "W1");
}

#[test]
fn w1_who_is_turned_away_without_a_fault_is_rejected() {
    let refused = || Outcome::Err { value: json!("over-limit"), holds: false };
    let mut story = Story::new();
    story.invoke(1, "acquire").answer(1, refused());
    check_lock(&story, "W1");

    let mut story = Story::new();
    story.invoke(1, "acquire").fault(FaultKind::LostAfter, 1).answer(1, refused());
    story.invoke(2, "release").answer(2, refused());
    assert_eq!(judge(&story.entries, Interface::Lock), []);
}

#[test]
fn w2_a_grant_while_the_predecessor_lives_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).acquire(2, 1).win(2).give_up(2, "release");
    check_lock(&story, "W2");
}

#[test]
fn w2_an_acquire_that_answers_what_is_none_of_its_own_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).hold(1);
    let value = json!({ "path": story.contender(1), "fence": 0 });
    story.answer(1, Outcome::Ok { value, holds: true });
    check_lock(&story, "W2");
}

#[test]
fn w2_an_acquire_that_is_answered_before_its_turn_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1);
    let value = json!({ "path": story.contender(2), "fence": story.fence(2) });
    check_lock(story.answer(2, Outcome::Ok { value, holds: false }), "W2");
}

#[test]
fn w2_a_volunteer_that_is_answered_what_it_does_not_hold_is_rejected() {
    let mut story = Story::new();
    story.invoke(1, "volunteer").stand(1, 0).hold(1);
    let value = json!({ "path": story.contender(1), "fence": 0 });
    story.answer(1, Outcome::Ok { value, holds: true });
    check_election(&story, "W2");
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
    assert_eq!(judge(&story.entries, Interface::LeaderElection), []);
    story.tell(1, elected(0));
    check_election(&story, "W2");
}

#[test]
fn h1_a_release_that_wakes_two_waiters_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).watch(2, 1).acquire(3, 2).watch(3, 1);
    let path = story.contender(1);
    story.give_up(1, "release").event(2, "deleted", &path).event(3, "deleted", &path);
    for interface in [Interface::Lock, Interface::Unknown] {
        check(&story, interface, "H1");
    }
}

#[test]
fn h1_a_waiter_that_watches_the_whole_line_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).ask(2, "watch-children", MOUNT).answer_ask(2, None);
    story.acquire(3, 2).event(2, "children-changed", MOUNT);
    check_lock(&story, "H1");
}

#[test]
fn h1_a_candidate_that_observes_too_is_no_herd() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).watch(2, 1).volunteer(3, 2).watch(3, 2);
    story.invoke(3, "observe").watch(3, 1).answer(3, NOTHING);
    let path = story.contender(1);
    story.give_up(1, "resign").event(2, "deleted", &path).event(3, "deleted", &path);
    assert_eq!(judge(&story.entries, Interface::LeaderElection), []);
}

#[test]
fn h1_a_waiter_that_asks_again_and_again_is_rejected() {
    let polls = |fault: Option<FaultKind>| {
        let mut story = Story::new();
        story.acquire(1, 0).win(1).acquire(2, 1);
        if let Some(fault) = fault {
            story.fault(fault, 2);
        }
        for _ in 0..9 {
            story.ask(2, "get-children", MOUNT).answer_ask(2, None);
        }
        story
    };
    for interface in [Interface::Lock, Interface::Unknown] {
        check(&polls(None), interface, "H1");
        assert_eq!(judge(&polls(Some(FaultKind::LostBefore)).entries, interface), []);
    }
    let mut story = polls(None);
    story.acquire(3, 2);
    assert_eq!(judge(&story.entries, Interface::Lock), [], "there was somebody new to see");
}

#[test]
fn e1_two_leaders_are_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 5).hold(1).volunteer(2, 3).hold(2);
    check_election(&story, "E1");
}

#[test]
fn e1_a_term_that_comes_again_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).hold(1);
    check_election(&story, "E1");
}

#[test]
fn e2_a_leader_that_is_told_only_after_the_next_leads_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).expire(1).hold(2).wait(500).lose(1);
    check_election(&story, "E2");
}

#[test]
fn e2_a_leader_that_leads_again_without_being_told_that_it_lost_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).volunteer(1, 1).hold(1);
    check_election(&story, "E2");
}

#[test]
fn e3_a_candidate_who_could_lead_and_does_not_is_rejected() {
    let mut story = Story::new();
    story.push(What::Calm).volunteer(1, 0).wait(2 * TIMEOUT_MS + 6000).volunteer(2, 1);
    check_election(&story, "E3");
}

#[test]
fn e3_a_leader_who_stays_though_its_znode_is_gone_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).wait(3 * TIMEOUT_MS).lose(1);
    check_election(&story, "E3");
}

#[test]
fn e4_an_observer_that_goes_back_to_an_earlier_term_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    check_election(story.news(3, two).news(3, one), "E4");
}

#[test]
fn e4_a_term_that_is_news_twice_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let fence = story.fence(1);
    check_election(story.news(3, fence).news(3, fence), "E4");
}

#[test]
fn e4_what_observe_answered_is_no_news() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).invoke(3, "observe");
    let fence = story.fence(1);
    story.answer(3, Outcome::Ok { value: json!({ "fence": fence }), holds: false });
    check_election(story.news(3, fence), "E4");
}

#[test]
fn e4_an_answer_older_than_what_was_known_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    story.news(3, two).invoke(3, "leader");
    story.answer(3, Outcome::Ok { value: json!({ "fence": one }), holds: false });
    check_election(&story, "E4");
}

#[test]
fn e4_a_leader_that_never_was_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1);
    let fence = story.fence(2);
    check_election(story.news(3, fence).give_up(1, "resign").hold(2), "E4");
}

#[test]
fn v1_a_contender_that_another_session_deletes_is_rejected() {
    let mut story = Story::new();
    story.stand(1, 0);
    let path = story.contender(1);
    story.commit(session(2), vec![Change::Deleted { path }]);
    check(&story, Interface::Unknown, "V1");
}

#[test]
fn l1_a_component_that_fails_by_itself_is_rejected() {
    let ends = |how: &str, fault: &str| {
        let (how, fault) = (how.to_owned(), Some(fault.to_owned()));
        let mut story = Story::new();
        story.tell(1, Told::Ended { how, fault });
        story
    };
    for how in ["failed", "lost"] {
        check(&ends(how, "acquire trapped: unreachable"), Interface::Unknown, "L1");
    }
    let killed = format!("acquire trapped: {}", crate::guest::KILLED);
    for story in [ends("failed", &killed), ends("refused", "the session is over")] {
        assert_eq!(judge(&story.entries, Interface::Unknown), []);
    }
}

#[test]
fn l1_a_component_that_does_not_end_is_rejected_unless_its_host_was_disturbed() {
    let overdue = || Told::Ended {
        how: "failed".to_owned(),
        fault: Some("the module did not return within 1s of being cancelled".to_owned()),
    };
    let mut story = Story::new();
    check(story.tell(1, overdue()), Interface::Unknown, "L1");
    let mut story = Story::new();
    story.fault(FaultKind::Pause, 1).heal(FaultKind::Pause, 1).tell(1, overdue());
    assert_eq!(judge(&story.entries, Interface::Unknown), []);
}

#[test]
fn x1_a_call_outside_the_mount_is_rejected() {
    let mut story = Story::new();
    check(story.ask(1, "get-data", "/mounts/a-evil"), Interface::Unknown, "X1");
}

#[test]
fn x2_a_participant_that_goes_on_after_its_end_is_rejected() {
    let mut story = Story::new();
    check(story.leave(1).ask(1, "exists", MOUNT), Interface::Unknown, "X2");
}

#[test]
fn x2_a_watch_that_is_left_is_rejected() {
    let mut story = Story::new();
    check(story.leave(1).end(None, Vec::new(), 1), Interface::Unknown, "X2");
}

#[test]
fn s1_an_event_without_a_cause_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let path = story.contender(1);
    check_lock(story.event(2, "deleted", &path), "S1");
}

#[test]
fn s1_an_event_that_comes_twice_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).delete(1).answer(1, Outcome::Cancelled);
    let path = story.contender(1);
    check_lock(story.event(2, "deleted", &path).event(2, "deleted", &path), "S1");
}

/// The second change is told before the first, `fault` or not.
fn out_of_order(fault: Option<FaultKind>) -> Story {
    let mut story = Story::new();
    let paths = [format!("{MOUNT}/x"), format!("{MOUNT}/y")];
    for path in &paths {
        let (path, ephemeral_owner) = (path.clone(), 0);
        story.commit(0, vec![Change::Created { path, ephemeral_owner }]);
    }
    if let Some(fault) = fault {
        story.fault(fault, 1);
    }
    for path in &paths {
        story.commit(0, vec![Change::Deleted { path: path.clone() }]);
    }
    for path in paths.iter().rev() {
        story.event(1, "deleted", path);
    }
    story
}

#[test]
fn s1_events_in_the_wrong_order_are_rejected_unless_the_connection_was_lost() {
    check(&out_of_order(None), Interface::Unknown, "S1");
    let story = out_of_order(Some(FaultKind::LostBefore));
    assert_eq!(judge(&story.entries, Interface::Unknown), []);
}

#[test]
fn of_each_invariant_a_few_violations_are_told() {
    let mut story = Story::new();
    for _ in 0..10 {
        story.ask(1, "get-data", "/elsewhere");
    }
    let found = judge(&story.entries, Interface::Lock);
    assert_eq!(found.len(), MOST_OF_A_KIND);
}
