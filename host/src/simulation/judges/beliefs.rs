//! How long did they believe it? Beliefs against the ensemble's log.

use super::grants::granted;
use super::people::Belief;
use super::truth::{Contender, Deletion};
use super::{Case, Moment, Violation};
use crate::simulation::history::{Outcome, What};

/// M5, and E2: nobody believes to hold what has gone to the next, and a participant is told that it
/// lost before it is granted again. When a session runs out, its host has given up before: there is
/// no overlap at all, unless the host was stopped, and then it says nothing and nobody writes under
/// its claim before it has noticed. When somebody else deleted the znode, or the ensemble was made to
/// expire the session, no clock could tell: the news may take a session's timeout.
///
/// M5, and E3 as `kept`: even if nobody is next, a claim whose znode is gone is given up by a timeout
/// later.
pub(super) fn check(
    case: &Case<'_>,
    told: &'static str,
    kept: &'static str,
    found: &mut Vec<Violation>,
) {
    for belief in case.people.beliefs() {
        let gone = belief.contender.and_then(|it| Some(Gone::of(case, belief, it, it.deleted?)));
        if let Some(gone) = gone {
            found.extend(gone.overlap(told).or_else(|| gone.too_long(kept)));
        }
    }
    for person in case.people.persons() {
        let own = case.people.beliefs_of(person.id);
        for (earlier, later) in own.zip(case.people.beliefs_of(person.id).skip(1)) {
            if earlier.lasts_beyond(later.since.at) {
                let fence = earlier.fence;
                let sentence = format!("{} while it had {fence}, too", granted(case, later));
                let violation = Violation::new(told, later.since.at, sentence);
                found.push(violation.involving([earlier.since.at]).by([person.id]));
            }
        }
    }
    check_acts(case, told, found);
}

/// What is done in the name of a claim: a write, and the answer that something is held.
fn check_acts(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let (who, fence, act) = match &entry.what {
            What::Wrote { participant, fence, .. } => (*participant, Some(*fence), "wrote"),
            What::Returned {
                participant,
                outcome: Outcome::Ok { holds: true, .. } | Outcome::Err { holds: true, .. },
                ..
            } => (*participant, None, "was answered that it holds"),
            _ => continue,
        };
        let mut own = case.people.beliefs_of(who).rev();
        let belief = own
            .find(|belief| belief.since.at < at && fence.is_none_or(|fence| belief.fence == fence));
        // M3 and W2 ask where the fence comes from, and who holds may hold something else.
        let Some(belief) = belief else { continue };
        let noun = case.interface.noun();
        if !belief.lasts_beyond(at) && fence.is_some() {
            let fence = belief.fence;
            let sentence = format!(
                "participant {who} {act} with fence {fence} after it was told the end of it"
            );
            found.push(Violation::new(id, at, sentence).by([who]));
        }
        let gone = belief.contender.and_then(|it| Some(Gone::of(case, belief, it, it.deleted?)));
        let Some(gone) = gone.filter(|gone| belief.lasts_beyond(at) && gone.is_acting_late(at))
        else {
            continue;
        };
        let sentence = format!(
            "participant {who} {act} when it had lost {noun}: {} was gone since entry {}",
            gone.contender.path, gone.when.at
        );
        found.push(Violation::new(id, at, sentence).involving([gone.when.at]).by([who]));
    }
}

/// A belief whose znode was deleted.
struct Gone<'a> {
    case: &'a Case<'a>,
    belief: &'a Belief<'a>,
    contender: &'a Contender<'a>,
    when: Moment,
    /// When the news must have arrived at a host that runs.
    news: u64,
}

impl<'a> Gone<'a> {
    fn of(
        case: &'a Case<'a>,
        belief: &'a Belief<'a>,
        contender: &'a Contender<'a>,
        deletion: Deletion,
    ) -> Self {
        let Deletion { when, was_foreseeable } = deletion;
        let timeout = case.truth.timeout_us(contender.owner);
        let delay = if was_foreseeable { 0 } else { timeout };
        Gone { case, belief, contender, when, news: when.us.saturating_add(delay) }
    }

    /// When the participant must have been told, since a host that is stopped can tell nothing.
    fn due(&self) -> Option<u64> {
        let person = self.case.people.person(self.belief.who)?;
        self.case.faults.awake(person.host, self.news)
    }

    /// Whether an act at that entry came when the host, asked, had to know.
    fn is_acting_late(&self, at: usize) -> bool {
        let now = self.case.history.get(at).map_or(0, |entry| entry.at_us);
        at > self.when.at && now >= self.news
    }

    /// Somebody else has it, and knows.
    fn overlap(&self, id: &'static str) -> Option<Violation> {
        let Gone { case, belief, contender, when, .. } = *self;
        let due = self.due()?;
        let successors = case.truth.firsts_from(contender.parent, when.at);
        let (next, first) = successors
            .filter_map(|next| Some((next, next.first?)))
            .take_while(|(_, first)| belief.lasts_beyond(first.at))
            .find(|(next, _)| case.people.granted(next).is_some())?;
        let overlap = first.max(belief.since);
        let at = if due <= overlap.us {
            overlap.at
        } else if belief.lasts_after(due) {
            case.first_after(due)?
        } else {
            return None;
        };
        let granted = case.people.granted(next)?;
        let sentence = format!(
            "participant {} still believed to have {} with fence {} when it was participant {}'s \
             with fence {}",
            belief.who,
            case.interface.noun(),
            belief.fence,
            granted.who,
            granted.fence
        );
        let violation = Violation::new(id, at, sentence);
        let entries = [belief.since.at, when.at, first.at];
        Some(violation.involving(entries).by([belief.who, granted.who]))
    }

    /// Nobody else has it, but it is long gone.
    fn too_long(&self, id: &'static str) -> Option<Violation> {
        let Gone { case, belief, contender, when, .. } = *self;
        let due = self.due()?.saturating_add(case.truth.timeout_us(contender.owner));
        let at = case.first_after(due).filter(|_| belief.lasts_after(due))?;
        let (who, noun, path) = (belief.who, case.interface.noun(), contender.path);
        let sentence =
            format!("participant {who} goes on believing to have {noun}, and {path} is long gone");
        Some(Violation::new(id, at, sentence).involving([belief.since.at, when.at]).by([who]))
    }
}
