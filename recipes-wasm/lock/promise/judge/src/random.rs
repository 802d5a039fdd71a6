//! The passes and the search against each other, on runs of a lock drawn at random.

use std::collections::BTreeMap;

use wok_judge::Case;
use wok_judge::history::{FaultKind, Outcome, ParticipantId};
use wok_judge::linear::{is_linearizable, operations};
use wok_judge::stories::Story;
use wok_judge::truth::Truth;

use crate::LOCK;
use crate::tests::verdict;

const RUNS: u64 = 500;
const STEPS: usize = 40;

/// Xorshift: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What a participant of the run does.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Nothing,
    Waiting,
    Holding,
    /// Its session has expired, and it believes to hold.
    Doomed,
}

/// How a run is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Recipe {
    Honest,
    /// Takes the lock now and then though others stand before it.
    Barging,
}

struct Run {
    story: Story,
    dice: Dice,
    line: Vec<ParticipantId>,
    doing: BTreeMap<ParticipantId, Doing>,
    highest: u64,
    counter: u32,
    /// Whether somebody was granted the lock while another had it.
    overlapped: bool,
}

fn run(seed: u64, recipe: Recipe) -> Run {
    let doing = (1..=3).map(|participant| (participant, Doing::Nothing)).collect();
    let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (story, line) = (Story::new(), Vec::new());
    let mut run = Run { story, dice, line, doing, highest: 0, counter: 0, overlapped: false };
    for _ in 0..STEPS {
        let index = usize::try_from(run.dice.below(3)).unwrap();
        let who = *run.doing.keys().nth(index).unwrap();
        run.step(who, recipe);
    }
    run
}

impl Run {
    fn step(&mut self, who: ParticipantId, recipe: Recipe) {
        let luck = self.dice.below(4);
        match self.doing[&who] {
            Doing::Nothing => {
                self.story.acquire(who, self.counter);
                self.counter += 1;
                self.line.push(who);
                self.doing.insert(who, Doing::Waiting);
            }
            Doing::Waiting if luck == 0 => {
                self.leave_line(who);
                self.story.delete(who).answer(who, Outcome::Cancelled);
                self.doing.insert(who, Doing::Nothing);
            }
            Doing::Waiting if self.line[0] == who || recipe == Recipe::Barging => {
                self.overlapped |= self.doing.values().any(|doing| *doing == Doing::Holding);
                self.story.win(who);
                self.doing.insert(who, Doing::Holding);
            }
            Doing::Waiting => {}
            Doing::Holding if luck == 0 => {
                self.leave_line(who);
                self.story.fault(FaultKind::Expiry, who).expire(who);
                self.doing.insert(who, Doing::Doomed);
            }
            Doing::Holding if luck == 1 => self.write(who),
            Doing::Holding => {
                self.leave_line(who);
                self.story.give_up(who, "release");
                self.doing.insert(who, Doing::Nothing);
            }
            Doing::Doomed if luck < 2 => self.write(who),
            Doing::Doomed => {
                self.story.lose(who);
                self.doing.remove(&who);
                let next = who + 3;
                self.story.join(next, next);
                self.doing.insert(next, Doing::Nothing);
            }
        }
    }

    fn leave_line(&mut self, who: ParticipantId) {
        self.line.retain(|waiting| *waiting != who);
    }

    fn write(&mut self, who: ParticipantId) {
        let fence = self.story.fence(who);
        self.story.write(who, fence >= self.highest);
        self.highest = self.highest.max(fence);
    }
}

#[track_caller]
fn has_an_order(story: &Story) -> bool {
    let truth = Truth::of(&story.entries);
    let case = Case::of(&story.entries, &truth, &LOCK);
    let locks = operations(&case);
    locks.values().all(|lock| is_linearizable(lock).expect("the run is short"))
}

#[test]
fn honest_runs_satisfy_the_passes_and_the_search() {
    for seed in 0..RUNS {
        let run = run(seed, Recipe::Honest);
        assert_eq!(verdict(&run.story.entries), [], "seed {seed}");
        assert!(has_an_order(&run.story), "seed {seed}");
    }
}

#[test]
fn what_the_search_rejects_the_passes_reject_and_both_reject_two_holders() {
    let (mut rejected, mut overlapped) = (0, 0);
    for seed in 0..RUNS {
        let run = run(seed, Recipe::Barging);
        let found = verdict(&run.story.entries);
        let has_an_order = has_an_order(&run.story);
        assert!(has_an_order || !found.is_empty(), "seed {seed}");
        assert!(!run.overlapped || !has_an_order, "seed {seed}: {found:#?}");
        // The passes did it themselves: a second opinion counts only where they are content.
        assert!(found.iter().all(|violation| violation.invariant != "M8"), "seed {seed}");
        rejected += u64::from(!has_an_order);
        overlapped += u64::from(run.overlapped);
    }
    assert!(rejected > overlapped && overlapped > RUNS / 4, "{rejected} and {overlapped}");
}

#[test]
fn a_claim_that_stands_is_nobody_elses_and_one_that_is_lost_may_end_at_any_time_or_never() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).win(2);
    assert!(!has_an_order(&story));

    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).fault(FaultKind::Expiry, 1).expire(1);
    assert!(has_an_order(&story));
    assert!(has_an_order(story.win(2)));
}
