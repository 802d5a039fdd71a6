//! Whether what people hear of revisions is true, and only goes forward.

use std::collections::BTreeMap;

use crate::Violation;
use crate::history::ParticipantId;

/// That a participant hears of a revision.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// Where in the history.
    pub at: usize,
    /// Which participant.
    pub who: ParticipantId,
    /// The zxid of the transaction that made the revision. It is 0 where the directory does not exist;
    /// then it is not compared with others.
    pub revision: u64,
    /// How it hears.
    pub how: How,
}

/// How a participant hears of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// A call is answered.
    Answer {
        /// Where the participant made the call. What it hears while the call is under way may overtake
        /// the answer: events and answers reach it by ways of their own.
        invoked: usize,
        /// Whether news of what comes after this revision is asked for.
        begins: bool,
    },
    /// An event tells, without being asked again.
    News,
}

/// What a participant knows.
#[derive(Debug, Default)]
struct Known {
    /// Each revision that was the highest that it had heard of, with the place where it heard of it.
    highest: Vec<(usize, u64)>,
    /// The highest one after which it is told news, and where it heard of that one.
    told: (usize, u64),
}

impl Known {
    fn highest_before(&self, at: usize) -> (usize, u64) {
        let before = self.highest.partition_point(|(since, _)| *since < at);
        before.checked_sub(1).and_then(|last| self.highest.get(last)).copied().unwrap_or_default()
    }
}

/// Each revision that somebody hears of was one by then, which `was` says of a revision and a place in
/// the history. An answer is not older than what the same participant knew when it asked; news is later
/// than all news before it, and than the answer of the call that asked for news.
pub fn check(
    mut heard: Vec<Heard>,
    was: impl Fn(u64, usize) -> bool,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    heard.sort_by_key(|heard| heard.at);
    let mut known: BTreeMap<ParticipantId, Known> = BTreeMap::new();
    for Heard { at, who, revision, how } in heard.into_iter().filter(|heard| heard.revision > 0) {
        let known = known.entry(who).or_default();
        let (floor, least) = match how {
            How::Answer { invoked, .. } => {
                let floor = known.highest_before(invoked);
                (floor, floor.1)
            }
            How::News => (known.told, known.told.1.saturating_add(1)),
        };
        if revision < least {
            let sentence = format!("participant {who} was told of {revision} after {}", floor.1);
            found.push(Violation::new(id, at, sentence).involving([floor.0]).by([who]));
        } else if !was(revision, at) {
            let sentence =
                format!("participant {who} was told of the revision {revision}, which never was");
            found.push(Violation::new(id, at, sentence).by([who]));
        }
        if known.highest.last().is_none_or(|(_, highest)| *highest < revision) {
            known.highest.push((at, revision));
        }
        let is_told = matches!(how, How::News | How::Answer { begins: true, .. });
        if is_told && revision > known.told.1 {
            known.told = (at, revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBSERVED: How = How::Answer { invoked: 3, begins: true };
    const ASKED: How = How::Answer { invoked: 3, begins: false };

    const NOTHING: [usize; 0] = [];

    /// What is wrong with what one participant hears.
    fn wrong(heard: &[(usize, u64, How)]) -> Vec<usize> {
        let heard = heard.iter().map(|(at, revision, how)| Heard {
            at: *at,
            who: 1,
            revision: *revision,
            how: *how,
        });
        let mut found = Vec::new();
        check(heard.collect(), |revision, at| revision < at as u64 * 100, "X1", &mut found);
        found.iter().map(|violation| violation.at).collect()
    }

    #[test]
    fn an_answer_is_not_older_than_what_was_known_when_it_was_asked_for() {
        for how in [ASKED, OBSERVED] {
            assert_eq!(wrong(&[(2, 7, How::News), (5, 7, how)]), NOTHING);
            assert_eq!(wrong(&[(2, 7, How::News), (5, 6, how)]), [5]);
            // Told while the call is under way.
            assert_eq!(wrong(&[(4, 7, How::News), (5, 6, how)]), NOTHING);
            assert_eq!(wrong(&[(1, 0, how), (5, 6, how)]), NOTHING);
        }
    }

    #[test]
    fn news_is_later_than_all_that_was_told_before() {
        assert_eq!(wrong(&[(1, 7, How::News), (2, 8, How::News)]), NOTHING);
        assert_eq!(wrong(&[(1, 7, How::News), (2, 7, How::News)]), [2]);
        assert_eq!(wrong(&[(5, 7, OBSERVED), (6, 7, How::News)]), [6]);
        assert_eq!(wrong(&[(5, 7, ASKED), (6, 7, How::News)]), NOTHING);
        // An answer that is overtaken does not make what is told later news again.
        assert_eq!(wrong(&[(4, 7, How::News), (5, 6, OBSERVED), (6, 7, How::News)]), [6]);
    }

    #[test]
    fn a_revision_that_is_told_was_one_by_then() {
        assert_eq!(wrong(&[(1, 200, How::News)]), [1]);
        assert_eq!(wrong(&[(1, 200, ASKED)]), [1]);
    }
}
