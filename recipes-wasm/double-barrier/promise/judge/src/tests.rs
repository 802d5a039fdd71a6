//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::BarrierJudge;

const NOTHING: Outcome = Outcome::Ok { value: Value::Null, holds: false };

/// Longer than it may take that a round opens.
const LONG_MS: u64 = 2 * TIMEOUT_MS + 8000;

/// The story of a barrier of two.
struct Barrier {
    story: Story,
    fences: BTreeMap<u32, u64>,
    generation: u32,
}

impl Barrier {
    fn new() -> Self {
        let mut barrier = Barrier { story: Story::new(), fences: BTreeMap::new(), generation: 0 };
        barrier.next();
        barrier
    }

    fn path(&self) -> String {
        format!("{MOUNT}/gen-{}", self.generation)
    }

    fn member(&self, who: u32) -> String {
        format!("{}/member-{who}", self.path())
    }

    /// The same as the component knows it.
    fn own_path(&self, who: u32) -> String {
        format!("/gen-{}/member-{who}", self.generation)
    }

    /// The next generation is created.
    fn next(&mut self) -> &mut Self {
        self.generation += 1;
        let path = self.path();
        self.story.commit(session(1), vec![created(&path, 0)]);
        self
    }

    /// It calls, and has the next generation and its znode in that created.
    fn come_first(&mut self, who: u32) -> &mut Self {
        self.generation += 1;
        let path = self.path();
        self.story.invoke(who, "enter").ask(who, "multi", &path);
        self.story.commit(session(who), vec![created(&path, 0)]).answer_ask(who, None);
        self.join(who)
    }

    /// It calls and has its znode created.
    fn come(&mut self, who: u32) -> &mut Self {
        self.story.invoke(who, "enter");
        self.join(who)
    }

    /// Its znode is created.
    fn join(&mut self, who: u32) -> &mut Self {
        let path = self.member(who);
        self.story.ask(who, "pipeline", &path);
        self.story.commit(session(who), vec![created(&path, session(who))]);
        self.fences.insert(who, self.story.newest_zxid().unsigned_abs());
        self.story.answer_ask(who, None);
        self
    }

    /// The generation opens for these.
    fn open(&mut self, inside: &[u32]) -> &mut Self {
        let names = inside.iter().map(|who| format!("\nmember-{who}"));
        let data = format!("2{}", names.collect::<String>()).into_bytes();
        let change = Change::DataSet { path: self.path(), version: 1, data: Data::from(data) };
        self.story.commit(session(inside[0]), vec![change]);
        self
    }

    /// It is told to be inside.
    fn hold(&mut self, who: u32) -> &mut Self {
        let (path, fence) = (self.member(who), self.fences[&who]);
        self.story.tell(who, Told::Held { path, fence });
        self
    }

    /// The same, and its call is answered.
    fn enter(&mut self, who: u32) -> &mut Self {
        let value = json!({ "path": self.own_path(who), "fence": self.fences[&who] });
        self.hold(who).story.answer(who, Outcome::Ok { value, holds: true });
        self
    }

    /// It calls, and gives its znode up.
    fn finish(&mut self, who: u32) -> &mut Self {
        self.story.invoke(who, "leave");
        self.go(who)
    }

    /// Its znode is deleted.
    fn go(&mut self, who: u32) -> &mut Self {
        let path = self.member(who);
        self.story.tell(who, Told::Released { path: path.clone() });
        self.story.commit(session(who), vec![Change::Deleted { path }]);
        self
    }

    /// It has left.
    fn left(&mut self, who: u32) -> &mut Self {
        self.story.answer(who, NOTHING);
        self
    }

    /// The generation goes.
    fn bury(&mut self) -> &mut Self {
        let path = self.path();
        self.story.commit(session(1), vec![Change::Deleted { path }]);
        self
    }

    /// Two enter.
    fn round(&mut self) -> &mut Self {
        self.come(1).come(2).open(&[1, 2]).enter(1).enter(2)
    }
}

fn verdict(history: &[Entry]) -> Vec<Violation> {
    BarrierJudge { size: 2 }.verdict(history)
}

fn judge(barrier: &Barrier) -> Vec<Violation> {
    verdict(&barrier.story.entries)
}

#[track_caller]
fn check(barrier: &Barrier, expected: &str) {
    assert_breaks(&judge(barrier), &[expected]);
}

/// Two rounds, members that withdraw, one of which comes back, one that comes when the round is full, one that dies inside.
fn good() -> Barrier {
    let mut barrier = Barrier::new();
    barrier.come(3).go(3).story.answer(3, Outcome::Cancelled);
    barrier.come(1).go(1).story.answer(1, Outcome::Cancelled);
    barrier.round().finish(1).finish(2).left(2).left(1);
    barrier.next().come(1).come(2).come(3).open(&[1, 2]).enter(1).enter(2).go(3);
    barrier.finish(2).story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS);
    let (path, session) = (barrier.member(1), session(1));
    let changes = vec![Change::Deleted { path }, Change::SessionClosed { session }];
    barrier.story.commit(session, changes);
    barrier.left(2).story.push(What::Calm).wait(1000);
    barrier
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
fn a_judge_wants_to_know_how_many_make_a_round() {
    assert!(BarrierJudge::begin("{\"size\": 3}").is_ok());
    assert!(BarrierJudge::begin("null").is_err());
}

#[test]
fn d1_who_enters_alone_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.come(1).open(&[1]).enter(1), "D1");
}

#[test]
fn d1_a_member_that_has_gone_does_not_count() {
    let mut barrier = Barrier::new();
    check(barrier.come(1).come(2).go(1).open(&[1, 2]).enter(2), "D1");
}

#[test]
fn d1_who_enters_before_it_opens_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.come(1).come(2).enter(1).open(&[1, 2]), "D1");
}

#[test]
fn d1_who_enters_by_the_opening_of_the_round_before_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.round().come(3).enter(3), "D1");
}

#[test]
fn d1_who_enters_though_it_opened_for_others_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.come(3).come(1).come(2).open(&[1, 2]).enter(3), "D1");
}

#[test]
fn d1_a_fence_that_is_none_of_the_znodes_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.come(1).come(2).open(&[1, 2]).fences.insert(1, 7);
    check(barrier.hold(1), "D1");
}

#[test]
fn d1_an_answer_of_what_is_not_held_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.come(1).come(2).open(&[1, 2]);
    let value = json!({ "path": barrier.own_path(1), "fence": barrier.fences[&1] });
    barrier.story.answer(1, Outcome::Ok { value, holds: false });
    check(&barrier, "D1");
}

#[test]
fn d2_who_leaves_before_the_others_have_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.round().finish(1).left(1), "D2");
}

#[test]
fn d2_a_wait_for_members_that_are_gone_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.round().finish(1).finish(2).left(2).story.push(What::Calm).wait(LONG_MS);
    barrier.story.invoke(3, "leave");
    check(&barrier, "D2");
}

#[test]
fn d2_a_wait_for_a_member_that_is_inside_is_none_of_these() {
    let mut barrier = Barrier::new();
    barrier.round().finish(1).story.push(What::Calm).wait(LONG_MS);
    barrier.story.invoke(3, "leave");
    assert_eq!(judge(&barrier), []);
}

#[test]
fn d3_a_round_that_opens_for_too_many_is_rejected() {
    let mut barrier = Barrier::new();
    check(barrier.come(1).come(2).come(3).open(&[1, 2, 3]).enter(1), "D3");
}

#[test]
fn d3_as_many_as_make_a_round_do_not_wait_for_ever() {
    let mut barrier = Barrier::new();
    barrier.come(1).come(2).story.push(What::Calm).wait(LONG_MS).invoke(3, "leave");
    check(&barrier, "D3");
}

#[test]
fn d3_fewer_may_wait_for_ever() {
    let mut barrier = Barrier::new();
    barrier.come(1).story.push(What::Calm).wait(LONG_MS).invoke(3, "leave");
    assert_eq!(judge(&barrier), []);
}

#[test]
fn d3_who_is_turned_away_without_a_fault_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.story.invoke(1, "enter");
    barrier.story.answer(1, Outcome::Err { value: json!("over-limit"), holds: false });
    check(&barrier, "D3");
}

#[test]
fn d4_a_round_that_is_over_and_left_behind_is_rejected() {
    for is_buried in [true, false] {
        let mut barrier = Barrier::new();
        barrier.round().finish(1).finish(2).left(1).left(2);
        if is_buried {
            barrier.bury();
        }
        barrier.come_first(1).come(2).open(&[1, 2]).enter(1).enter(2);
        match is_buried {
            true => assert_eq!(judge(&barrier), []),
            false => assert_breaks(&judge(&barrier), &["D4"]),
        }
    }
}

#[test]
fn m7_a_member_that_outlives_its_call_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.come(1).story.answer(1, Outcome::Cancelled).wait(TIMEOUT_MS + 3000);
    barrier.story.invoke(3, "leave");
    check(&barrier, "M7");
}

#[test]
fn h1_a_wait_that_asks_again_and_again_is_rejected() {
    let mut barrier = Barrier::new();
    barrier.come(1);
    let path = barrier.path();
    for _ in 0..20 {
        barrier.story.ask(1, "get-children", &path).answer_ask(1, None);
    }
    barrier.story.answer(1, Outcome::Cancelled);
    barrier.go(1);
    check(&barrier, "H1");
}
