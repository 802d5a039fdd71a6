//! What a seat promises.
//!
//! `wok test` hands over the history of a run, after the run. It is judged from outside: by what the
//! ensemble committed and what users were told, never by what the recipe thought.
//!
//! | id | broken if |
//! |---|---|
//! | T1 | two are told that they have the seat while both their znodes are there |

use std::collections::{BTreeMap, BTreeSet};

use wok_judge::history::{Change, Entry, ParticipantId, Told, What};
use wok_judge::{Judge, Violation, first_of_each};

/// The judge of seats.
#[derive(Debug)]
pub struct RecipeJudge;

impl Judge for RecipeJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] =
        &[("T1", "one participant has the seat at a time")];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(RecipeJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut znodes = BTreeSet::new();
        // By the znode that it is had with: who has it, and the entry at which that was told.
        let mut taken: BTreeMap<&str, (ParticipantId, usize)> = BTreeMap::new();
        for (at, entry) in history.iter().enumerate() {
            match &entry.what {
                What::Txn { changes, .. } => {
                    for change in changes {
                        match change {
                            Change::Created { path, .. } => drop(znodes.insert(path.as_str())),
                            Change::Deleted { path } => {
                                znodes.remove(path.as_str());
                                taken.remove(path.as_str());
                            }
                            _ => {}
                        }
                    }
                }
                // Who was stopped meanwhile is told late: its znode may have gone to nobody's harm.
                What::Told { participant, notice: Told::Held { path, .. } }
                    if znodes.contains(path.as_str()) =>
                {
                    taken.insert(path, (*participant, at));
                    if taken.len() > 1 {
                        found.push(too_many(at, taken.values().copied()));
                    }
                }
                _ => {}
            }
        }
        first_of_each(found)
    }
}

fn too_many(at: usize, taken: impl Iterator<Item = (ParticipantId, usize)>) -> Violation {
    let (who, since): (Vec<ParticipantId>, Vec<usize>) = taken.unzip();
    let names: Vec<String> = who.iter().map(|who| format!("participant {who}")).collect();
    let sentence = format!("{} had the seat at the same time", names.join(" and "));
    Violation::new("T1", at, sentence).involving(since).by(who)
}

wok_judge::export!(RecipeJudge);

#[cfg(test)]
mod tests {
    use wok_judge::proofs::{
        assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
    };
    use wok_judge::stories::{Story, good_lock};

    use super::*;

    fn verdict(history: &[Entry]) -> Vec<Violation> {
        let judge = RecipeJudge::begin("null").expect("the settings may be left out");
        judge.verdict(history)
    }

    #[test]
    fn a_good_run_is_good_wherever_it_is_cut_off() {
        // The holder of a lock has it as a participant has the seat.
        assert_good_wherever_cut_off(&good_lock(), verdict);
    }

    #[test]
    fn a_history_without_its_beginning_does_not_confuse_the_judge() {
        assert_judged_without_beginning(&good_lock(), verdict);
    }

    #[test]
    fn two_at_the_same_time_are_found_and_named() {
        let mut story = Story::new();
        story.acquire(1, 0).win(1).acquire(2, 1).win(2);
        let found = verdict(&story.entries);
        assert_breaks(&found, &["T1"]);
        let expected = "participant 1 and participant 2 had the seat at the same time";
        let sentences: Vec<_> = found.iter().map(|violation| &*violation.sentence).collect();
        assert_eq!(sentences, [expected]);
    }
}
