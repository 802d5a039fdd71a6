//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{
    MOUNT, Story, TIMEOUT_MS, configured, created, good_election, good_lock, session,
};
use wok_judge::{Judge, Violation};

use crate::SemaphoreJudge;

mod line;

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

/// The story of a semaphore whose users all say that it has two permits.
struct Semaphore {
    story: Story,
    counter: u32,
    /// The place that each has or had last.
    places: BTreeMap<u32, String>,
    /// The names of the leases that each has or had last, and their fence.
    leases: BTreeMap<u32, (Vec<String>, u64)>,
}

impl Semaphore {
    /// The number of permits is stored already.
    fn new() -> Self {
        let mut it = Semaphore::unstored();
        it.store(2);
        it
    }

    /// Nobody has said yet how many permits there are.
    fn unstored() -> Self {
        let (places, leases) = (BTreeMap::new(), BTreeMap::new());
        Semaphore { story: Story::new(), counter: 0, places, leases }
    }

    /// The directory comes, and says that there are so many permits.
    fn store(&mut self, permits: u8) -> &mut Self {
        let data = Data::from(vec![0, 0, 0, permits]);
        let path = format!("{MOUNT}/leases");
        self.story.commit(session(1), vec![Change::Created { path, ephemeral_owner: 0, data }]);
        self
    }

    /// It asks for so many permits and stands in the queue.
    fn ask(&mut self, who: u32, permits: u32) -> &mut Self {
        self.story.invoke_with(who, "acquire", json!({ "permits": permits }));
        let queue = format!("{MOUNT}/locks");
        let place = format!("{queue}/_c_{who}-lock-{:010}", self.counter);
        self.counter += 1;
        self.story.ask(who, "contend-and-list", &queue);
        self.story.commit(session(who), vec![created(&place, session(who))]);
        self.story.answer_ask(who, Some(&place));
        self.story.tell(who, Told::Waiting { path: place.clone() });
        self.places.insert(who, place);
        self
    }

    /// Its place goes.
    fn withdraw(&mut self, who: u32) -> &mut Self {
        let path = self.places[&who].clone();
        self.story.commit(session(who), vec![Change::Deleted { path }]);
        self
    }

    fn cancel(&mut self, who: u32) -> &mut Self {
        self.withdraw(who).story.answer(who, Outcome::Cancelled);
        self
    }

    /// So many leases come, in exchange for its place or without it.
    fn take(&mut self, who: u32, count: u32, place: Option<u32>) -> &mut Self {
        let number = self.counter;
        let name = |lease: u32| format!("{lease}-_c_{who}-lease-{number:010}");
        let names: Vec<String> = (1..=count).map(name).collect();
        let path = |name: &String| format!("{MOUNT}/leases/{name}");
        let gone = place.map(|it| Change::Deleted { path: self.places[&it].clone() });
        let leases = names.iter().map(|name| created(&path(name), session(who)));
        let changes: Vec<Change> = gone.into_iter().chain(leases).collect();
        // Of a `multi` the history has all paths.
        let paths = names.iter().map(path).collect();
        self.story.ask_all(who, "multi", paths).commit(session(who), changes);
        let fence = self.story.newest_zxid().unsigned_abs();
        self.story.answer_ask(who, None);
        self.leases.insert(who, (names, fence));
        self
    }

    /// It is told to hold what it took.
    fn hold(&mut self, who: u32) -> &mut Self {
        let (names, fence) = &self.leases[&who];
        let path = format!("{MOUNT}/leases/{}", names[0]);
        self.story.tell(who, Told::Held { path, fence: *fence });
        self
    }

    /// The same, and its call is answered.
    fn hold_all(&mut self, who: u32) -> &mut Self {
        self.hold(who);
        let (names, fence) = &self.leases[&who];
        let paths: Vec<String> = names.iter().map(|name| format!("/leases/{name}")).collect();
        let value = json!({ "paths": paths, "fence": fence });
        self.story.answer(who, Outcome::Ok { value, holds: true });
        self
    }

    /// It gets what it asked for, as it should.
    fn win(&mut self, who: u32, count: u32) -> &mut Self {
        self.take(who, count, Some(who)).hold_all(who)
    }

    /// It gives so many of its leases back.
    fn give_back(&mut self, who: u32, count: usize) -> &mut Self {
        let names = self.leases[&who].0.clone();
        let path = |name: &String| format!("{MOUNT}/leases/{name}");
        self.story.invoke(who, "release");
        self.story.tell(who, Told::Released { path: path(&names[0]) });
        let gone = names.iter().take(count).map(|name| Change::Deleted { path: path(name) });
        self.story.commit(session(who), gone.collect());
        self.story.answer(who, NOTHING);
        self
    }

    /// Somebody says another number of permits, as it should.
    fn resize(&mut self, permits: u8) -> &mut Self {
        self.story.invoke_with(3, "resize", json!({ "permits": permits }));
        self.set(permits).story.answer(3, NOTHING);
        self
    }

    /// Another number of permits is written.
    fn set(&mut self, permits: u8) -> &mut Self {
        let (path, data) = (format!("{MOUNT}/leases"), Data::from(vec![0, 0, 0, permits]));
        self.story.commit(session(3), vec![Change::DataSet { path, version: 1, data }]);
        self
    }

    fn later(&mut self, ms: u64) -> &mut Self {
        self.story.wait(ms).invoke(3, "available");
        self
    }
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    SemaphoreJudge { stated: Some(2) }.verdict(history)
}

fn judge(semaphore: &Semaphore) -> Vec<Violation> {
    verdict(&semaphore.story.entries)
}

#[track_caller]
fn check(semaphore: &Semaphore, expected: &str) {
    assert_breaks(&judge(semaphore), &[expected]);
}

#[track_caller]
fn check_good(semaphore: &Semaphore) {
    assert_eq!(judge(semaphore), []);
}

/// Permits that go from one to the next, a wait that is given up, a number that changes, a holder that
/// dies.
fn good() -> Semaphore {
    let mut it = Semaphore::new();
    it.ask(1, 1).win(1, 1).ask(2, 1).win(2, 1).ask(3, 2).cancel(3).give_back(2, 1);
    it.ask(2, 2).give_back(1, 1).win(2, 2).ask(1, 1).resize(3).win(1, 1).resize(2);
    it.give_back(2, 2).ask(3, 1).win(3, 1).give_back(3, 1);
    it.story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS);
    let path = format!("{MOUNT}/leases/{}", it.leases[&1].0[0]);
    let changes = vec![Change::Deleted { path }, Change::SessionClosed { session: session(1) }];
    it.story.commit(session(1), changes).push(What::Calm);
    it.ask(2, 2).win(2, 2);
    it
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
fn a_judge_knows_the_number_in_the_settings_if_there_is_one() {
    assert_eq!(SemaphoreJudge::begin("{\"permits\": 3}").unwrap().stated, Some(3));
    assert_eq!(SemaphoreJudge::begin("null").unwrap().stated, None);
    assert!(SemaphoreJudge::begin("{").is_err());
}

#[test]
fn p2_more_leases_than_permits_are_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 2).win(1, 2).ask(2, 1).win(2, 1), "P2");
}

#[test]
fn p2_where_there_are_fewer_permits_than_leases_nobody_gets_any() {
    let mut it = Semaphore::new();
    check_good(it.ask(1, 1).win(1, 1).ask(2, 1).win(2, 1).resize(1));
    check(it.give_back(1, 1).ask(1, 1).win(1, 1), "P2");
}

#[test]
fn p2_without_a_number_there_are_no_permits() {
    let mut it = Semaphore::new();
    let path = format!("{MOUNT}/leases");
    it.story.commit(0, vec![Change::Deleted { path }]);
    check(it.ask(1, 1).win(1, 1), "P2");
}

#[test]
fn p2_who_gets_others_than_as_many_as_it_asked_for_is_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 2).win(1, 1), "P2");
    let mut it = Semaphore::new();
    check(it.ask(1, 1).win(1, 2), "P2");
}

#[test]
fn p2_who_asks_again_for_another_number_than_it_holds_is_not_answered_all_of_it() {
    for (permits, expected) in [(2, &[][..]), (1, &["P2"])] {
        let mut it = Semaphore::new();
        it.ask(1, 2).win(1, 2);
        it.story.invoke_with(1, "acquire", json!({ "permits": permits }));
        let (names, fence) = it.leases[&1].clone();
        let paths: Vec<String> = names.iter().map(|name| format!("/leases/{name}")).collect();
        let value = json!({ "paths": paths, "fence": fence });
        it.story.answer(1, Outcome::Ok { value, holds: true });
        assert_breaks(&judge(&it), expected);
    }
}

#[test]
fn p2_leases_that_wait_are_not_granted_before_that_is_told() {
    // As in Curator: the lease comes first, and then the wait for the count.
    let mut it = Semaphore::new();
    it.ask(1, 2).win(1, 2).ask(2, 1).take(2, 1, None);
    check_good(&it);
    it.give_back(1, 2).hold_all(2).withdraw(2);
    check_good(&it);
}

#[test]
fn p2_leases_that_are_told_to_be_granted_while_there_are_too_many_are_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 2).win(1, 2).ask(2, 1).take(2, 1, None).hold_all(2), "P2");
}

#[test]
fn p3_who_is_let_in_with_another_number_in_its_settings_is_rejected() {
    let mut it = Semaphore::new();
    check(it.resize(3).ask(1, 1).win(1, 1), "P3");
}

#[test]
fn p3_a_number_that_changed_since_it_was_compared_is_no_reason() {
    let mut it = Semaphore::new();
    check_good(it.ask(1, 1).win(1, 1).give_back(1, 1).resize(3).ask(1, 1).win(1, 1));
}

/// Its `available` is answered with these numbers.
fn available(semaphore: &mut Semaphore, who: u32, permits: u64, free: u64) {
    let value = json!({ "permits": permits, "available": free });
    semaphore.story.invoke(who, "available").answer_value(who, value);
}

#[test]
fn p4_numbers_that_were_so_are_told_by_a_server_that_is_behind_as_well() {
    let mut it = Semaphore::new();
    it.ask(1, 1).win(1, 1).resize(3);
    for (permits, free) in [(2, 2), (2, 1), (3, 2)] {
        available(&mut it, 2, permits, free);
    }
    // It has resized itself, and so has its server.
    available(&mut it, 3, 3, 2);
    check_good(&it);
}

#[test]
fn p4_numbers_that_never_were_so_together_are_rejected() {
    for (permits, free) in [(2, 0), (3, 3), (4, 3)] {
        let mut it = Semaphore::new();
        it.ask(1, 1).win(1, 1).resize(3);
        available(&mut it, 2, permits, free);
        check(&it, "P4");
    }
    // That was before its own change.
    let mut it = Semaphore::new();
    it.resize(3);
    available(&mut it, 3, 2, 2);
    check(&it, "P4");
}

#[test]
fn p4_a_server_to_which_a_fault_moves_the_session_may_not_have_what_the_session_wrote() {
    let mut it = Semaphore::new();
    it.resize(3);
    it.story.fault(FaultKind::Move, 3);
    available(&mut it, 3, 2, 2);
    check_good(&it);
}

#[test]
fn p4_a_resize_that_is_answered_is_stored() {
    let mut it = Semaphore::new();
    it.story.invoke_with(3, "resize", json!({ "permits": 3 }));
    it.set(3).story.answer(3, NOTHING);
    check_good(&it);
    it.story.invoke_with(3, "resize", json!({ "permits": 4 })).answer(3, NOTHING);
    check(&it, "P4");
}

#[test]
fn p4_a_number_that_changes_without_a_resize_is_rejected() {
    let mut it = Semaphore::new();
    check(it.set(3), "P4");
    // That one was done before.
    let mut it = Semaphore::new();
    check(it.resize(3).resize(2).set(3), "P4");
    let mut it = Semaphore::new();
    it.story.invoke_with(3, "resize", json!({ "permits": 4 }));
    check(it.set(3), "P4");
}

#[test]
fn p4_a_resize_that_is_given_up_may_be_stored_later() {
    let mut it = Semaphore::new();
    it.story.invoke_with(3, "resize", json!({ "permits": 3 })).answer(3, Outcome::Cancelled);
    check_good(it.set(3));
}

#[test]
fn p4_what_another_program_stores_is_its_own() {
    let mut it = Semaphore::new();
    let (path, data) = (format!("{MOUNT}/leases"), Data::from(vec![0, 0, 0, 9]));
    it.story.commit(session(9), vec![Change::DataSet { path, version: 1, data }]);
    check_good(&it);
}

#[test]
fn p4_the_first_number_is_that_of_the_settings() {
    for (permits, expected) in [(2, &[][..]), (3, &["P4"])] {
        let mut it = Semaphore::unstored();
        it.store(permits);
        let history = configured(&it.story.entries, &json!({ "permits": 2 }));
        assert_breaks(&verdict(&history), expected);
    }
}

#[test]
fn p2_leases_that_are_granted_by_another_number_than_was_stored_are_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 2).ask(2, 1).resize(1);
    let (path, data) = (format!("{MOUNT}/leases"), Data::from(vec![0, 0, 0, 2]));
    let (place, lease) = (it.places[&1].clone(), format!("{MOUNT}/leases/_c_1-lease-0000000009"));
    let other = format!("{MOUNT}/leases/2-_c_1-lease-0000000009");
    let changes = vec![
        Change::Deleted { path: place },
        Change::DataSet { path, version: 2, data },
        created(&lease, session(1)),
        created(&other, session(1)),
    ];
    it.story.ask_all(1, "multi", vec![lease, other]).commit(session(1), changes);
    it.story.answer_ask(1, None);
    // A resize had lowered the number, and it is back.
    assert_breaks(&judge(&it), &["P2", "P4"]);
}

#[test]
fn m1_a_fence_that_is_none_of_the_leases_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 1).take(1, 1, Some(1)).leases.get_mut(&1).unwrap().1 = 7;
    check(it.hold(1), "M1");
}

#[test]
fn m1_leases_of_another_are_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 1).win(1, 1).ask(2, 1);
    let others = it.leases[&1].clone();
    it.leases.insert(2, others);
    check(it.hold(2), "M1");
}

#[test]
fn m1_an_answer_that_leaves_one_lease_out_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 2).take(1, 2, Some(1)).hold(1);
    let (names, fence) = it.leases[&1].clone();
    let value = json!({ "paths": [format!("/leases/{}", names[0])], "fence": fence });
    it.story.answer(1, Outcome::Ok { value, holds: true });
    check(&it, "M1");
}

#[test]
fn m5_a_holder_that_goes_on_when_its_leases_are_long_gone_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 1).win(1, 1);
    let path = format!("{MOUNT}/leases/{}", it.leases[&1].0[0]);
    it.story.commit(session(2), vec![Change::Deleted { path }]);
    check(it.later(3 * TIMEOUT_MS), "M5");
}

#[test]
fn m6_who_takes_permits_before_its_turn_is_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 1).ask(2, 1).win(2, 1), "M6");
}

#[test]
fn m6_who_takes_permits_without_a_place_in_the_queue_is_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 1).cancel(1).take(1, 1, None), "M6");
}

#[test]
fn m6_who_keeps_its_lease_before_its_turn_is_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 1).ask(2, 1).take(2, 1, None), "M6");
}

#[test]
fn m7_a_lease_that_outlives_its_call_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 1).take(1, 1, None).withdraw(1);
    it.story.answer(1, Outcome::Cancelled);
    check(it.later(TIMEOUT_MS + 3000), "M7");
}

#[test]
fn m7_leases_that_are_left_of_a_release_are_rejected() {
    let mut it = Semaphore::new();
    check(it.ask(1, 2).win(1, 2).give_back(1, 1).later(TIMEOUT_MS + 3000), "M7");
}

#[test]
fn w1_permits_that_are_free_do_not_stay_so() {
    let mut it = Semaphore::new();
    check(it.ask(1, 2).later(2500), "W1");
}

#[test]
fn w1_one_that_waits_gets_the_permits_that_are_more_than_before() {
    let mut it = Semaphore::new();
    it.ask(1, 2).win(1, 2).ask(2, 1).later(5000);
    check_good(&it);
    check(it.resize(3).later(2500), "W1");
}

#[test]
fn w1_too_few_permits_and_places_before_are_waited_for() {
    let mut it = Semaphore::new();
    check_good(it.ask(1, 1).win(1, 1).ask(2, 2).later(5000));
}

#[test]
fn w1_who_is_turned_away_without_a_reason_is_rejected() {
    for value in [json!("over-limit"), json!({ "invalid": "there are only 2" })] {
        let mut it = Semaphore::new();
        it.ask(1, 2).withdraw(1).story.answer(1, Outcome::Err { value, holds: false });
        check(&it, "W1");
    }
}

#[test]
fn w1_who_is_turned_away_for_a_reason_is_not() {
    let invalid = || Outcome::Err { value: json!({ "invalid": "…" }), holds: false };
    let mut it = Semaphore::new();
    // More than there are; settings that differ; more than it holds.
    it.ask(1, 3).withdraw(1).story.answer(1, invalid());
    it.resize(3).ask(1, 1).withdraw(1).story.answer(1, invalid());
    it.resize(2).ask(1, 2).win(1, 2);
    it.story.invoke_with(1, "acquire", json!({ "permits": 1 })).answer(1, invalid());
    check_good(&it);
}

#[test]
fn w1_who_asks_for_more_than_is_stored_only_later_is_turned_away_for_a_reason() {
    let invalid = || Outcome::Err { value: json!({ "invalid": "…" }), holds: false };
    for (permits, expected) in [(3, &[][..]), (1, &["W1"])] {
        let mut it = Semaphore::unstored();
        it.ask(1, permits).withdraw(1).story.answer(1, invalid());
        it.store(2).ask(1, 1).win(1, 1);
        assert_breaks(&judge(&it), expected);
    }
}

#[test]
fn w1_who_asks_for_what_nobody_may_have_is_turned_away_for_a_reason() {
    let invalid = || Outcome::Err { value: json!({ "invalid": "…" }), holds: false };
    for permits in [0, 101] {
        let mut it = Semaphore::new();
        it.story.invoke_with(1, "acquire", json!({ "permits": permits })).answer(1, invalid());
        check_good(&it);
    }
}

#[test]
fn h1_who_looks_at_the_leases_before_its_turn_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 2).ask(2, 1);
    it.story.ask(2, "watch-children", &format!("{MOUNT}/leases")).answer_ask(2, None);
    check(&it, "H1");
}

#[test]
fn h1_the_first_in_the_queue_may_look_and_so_may_who_asks_for_nothing() {
    let mut it = Semaphore::new();
    it.ask(1, 2);
    let leases = format!("{MOUNT}/leases");
    it.story.ask(1, "pipeline", &leases).answer_ask(1, None);
    it.story.invoke(2, "available").ask(2, "get-data", &leases).answer_ask(2, None);
    check_good(&it);
}

#[test]
fn h1_a_place_that_goes_wakes_one() {
    let mut it = Semaphore::new();
    it.ask(1, 2).ask(2, 1).ask(3, 1);
    let path = it.places[&1].clone();
    for who in [2, 3] {
        it.story.ask(who, "watch-data", &path).answer_ask(who, None);
    }
    it.take(1, 2, Some(1));
    it.story.event(2, "deleted", &path).event(3, "deleted", &path);
    check(&it, "H1");
}

#[test]
fn h1_a_wait_that_asks_again_and_again_is_rejected() {
    let mut it = Semaphore::new();
    it.ask(1, 1).win(1, 1).ask(2, 2);
    for _ in 0..30 {
        it.story.ask(2, "get-data", &format!("{MOUNT}/leases")).answer_ask(2, None);
    }
    check(it.cancel(2), "H1");
}
