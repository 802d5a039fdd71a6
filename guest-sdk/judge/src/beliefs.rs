//! How long did they believe it? Beliefs against the ensemble's log.

use crate::grants::granted;
use crate::history::{Entry, Outcome, ParticipantId, What};
use crate::people::Belief;
use crate::truth::{Contender, Deletion};
use crate::{Case, Moment, Violation};

/// M5, and E2: nobody believes to hold what has gone to the next, and a participant is told that it
/// lost before it is granted again. When a session runs out, its host has given up before: there is
/// no overlap at all, unless the host was stopped, and then it says nothing and nobody writes under
/// its claim before it has noticed. When somebody else deleted the znode, or the ensemble was made to
/// expire the session, no clock could tell: the news may take a session's timeout. When the
/// participant itself has it deleted, the answer to that is the news. When somebody else deleted it while
/// the participant had asked for that as well, the news may take two timeouts.
///
/// M5, and E3 as `kept`: even if nobody is next, a claim whose znode is gone is given up by a timeout
/// later.
pub fn check(case: &Case<'_>, told: &'static str, kept: &'static str, found: &mut Vec<Violation>) {
    for belief in case.people.beliefs() {
        if let Some(gone) = Gone::of(case, belief) {
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

/// Something that a participant does in the name of a claim that it was granted before: a write, or
/// an answer that says that something is held.
#[derive(Debug)]
pub struct Act<'a> {
    /// The entry.
    pub at: usize,
    /// The claim as the participant knows it.
    pub belief: &'a Belief<'a>,
    who: ParticipantId,
    is_write: bool,
}

/// Everything that is done in the name of a claim. Other judges ask where a fence comes from that was
/// never granted, so that is left out here; without a fence the newest claim is meant.
pub fn acts<'a>(case: &'a Case<'a>) -> impl Iterator<Item = Act<'a>> {
    case.history.iter().enumerate().filter_map(|(at, entry)| {
        let (who, fence) = match &entry.what {
            What::Wrote { participant, fence, .. } => (*participant, Some(*fence)),
            What::Returned {
                participant,
                outcome: Outcome::Ok { holds: true, .. } | Outcome::Err { holds: true, .. },
                ..
            } => (*participant, None),
            _ => return None,
        };
        let mut own = case.people.beliefs_of(who).rev();
        let belief = own
            .find(|belief| belief.since.at < at && fence.is_none_or(|fence| belief.fence == fence));
        belief.map(|belief| Act { at, belief, who, is_write: fence.is_some() })
    })
}

impl Act<'_> {
    /// Whether the participant still knows the claim as its own.
    pub fn is_believed(&self) -> bool {
        self.belief.lasts_beyond(self.at)
    }

    /// The violation, if the participant writes after it was told the end of the claim.
    pub fn after_the_end(&self, id: &'static str) -> Option<Violation> {
        let is_late = self.is_write && !self.is_believed();
        is_late.then(|| {
            let (who, fence) = (self.who, self.belief.fence);
            let sentence = format!(
                "participant {who} wrote with fence {fence} after it was told the end of it"
            );
            Violation::new(id, self.at, sentence).by([who])
        })
    }

    /// The violation, if the claim's znode was gone since that entry and the participant had to know.
    pub fn without_the_znode(
        &self,
        id: &'static str,
        noun: &str,
        path: &str,
        gone_at: usize,
    ) -> Violation {
        let who = self.who;
        let act = if self.is_write { "wrote" } else { "was answered that it holds" };
        let sentence = format!(
            "participant {who} {act} when it had lost {noun}: {path} was gone since entry {gone_at}"
        );
        Violation::new(id, self.at, sentence).involving([gone_at]).by([who])
    }
}

fn check_acts(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for act in acts(case) {
        found.extend(act.after_the_end(id));
        let gone = Gone::of(case, act.belief);
        if let Some(gone) = gone.filter(|gone| act.is_believed() && gone.is_acting_late(act.at)) {
            let (noun, path) = (&case.promise.noun, &gone.contender.path);
            found.push(act.without_the_znode(id, noun, path, gone.when.at));
        }
    }
}

/// How a participant learns that a contender has gone.
enum News {
    /// From the ensemble.
    Event,
    /// From a look behind the participant's own deletion, which was under way when somebody else deleted the
    /// contender: before that look, the host cannot know which of the two has deleted it. Where the connection
    /// is lost meanwhile, the host looks on the next one, and that may have proven contact already.
    LookBehindOwn,
    /// By the answer, at that time, to its own deletion of the contender. What ran under the claim has ended
    /// before a deletion is sent, and only the answer says whether the deletion was carried out.
    Answer(u64),
    /// By the end of its session: its own deletion is never answered.
    Never,
}

impl News {
    /// Of a contender that was deleted by the entry at `at`.
    fn of(case: &Case<'_>, who: ParticipantId, contender: &Contender<'_>, at: usize) -> Self {
        let deletes = |name: &str| matches!(name, "delete" | "multi" | "pipeline");
        let is_of_its_session = |entry: &Entry| match (&entry.what, case.people.person(who)) {
            (What::Txn { session, .. }, Some(person)) => *session == person.session,
            _ => false,
        };
        let Some((before, after)) = case.history.split_at_checked(at) else { return News::Event };
        // A component makes one host call at a time.
        let under_way = before.iter().rev().find_map(|entry| match &entry.what {
            What::HostCall { participant, number, name, paths } if *participant == who => {
                let is_about_it = deletes(name) && paths.iter().any(|path| path == contender.path);
                Some(is_about_it.then_some(*number))
            }
            What::HostCallAnswered { participant, .. } if *participant == who => Some(None),
            _ => None,
        });
        let Some(asked) = under_way.flatten() else { return News::Event };
        if !after.first().is_some_and(is_of_its_session) {
            return News::LookBehindOwn;
        }
        let answered = after.iter().find_map(|entry| match &entry.what {
            What::HostCallAnswered { number, .. } if *number == asked => Some(entry.at_us),
            _ => None,
        });
        answered.map_or(News::Never, News::Answer)
    }
}

/// A belief whose znode was deleted, and not to be held on under another name.
struct Gone<'a> {
    case: &'a Case<'a>,
    belief: &'a Belief<'a>,
    contender: &'a Contender<'a>,
    when: Moment,
    /// When the news must have arrived at a host that runs.
    news: u64,
}

impl<'a> Gone<'a> {
    fn of(case: &'a Case<'a>, belief: &'a Belief<'a>) -> Option<Self> {
        let contender = belief.contender?;
        let Deletion { when, was_foreseeable } = contender.deleted?;
        let replaced = contender.replaced_by.and_then(|id| case.truth.contender(id));
        if replaced.is_some_and(|it| case.people.granted(it).is_some()) {
            return None;
        }
        let timeout = case.truth.timeout_us(contender.owner);
        let told =
            |us: u64, was_foreseeable| us.saturating_add(if was_foreseeable { 0 } else { timeout });
        let under_way = replaced.and(case.people.call_at(belief.who, when.at));
        let news = match under_way {
            None => match News::of(case, belief.who, contender, when.at) {
                News::Event => told(when.us, was_foreseeable),
                News::LookBehindOwn => when.us.saturating_add(timeout.saturating_mul(2)),
                News::Answer(us) => told(us, false),
                News::Never => return None,
            },
            // The participant asked for the exchange itself, so it relies on no more than the new
            // contender. It must know better once its call is answered, or the new one has gone.
            Some(call) => {
                let answered = call.answered.map(|(answered, _)| told(answered.us, false));
                let gone = replaced.and_then(|it| it.deleted);
                let gone = gone.map(|gone| told(gone.when.us, gone.was_foreseeable));
                answered.into_iter().chain(gone).min()?
            }
        };
        Some(Gone { case, belief, contender, when, news })
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
        let successors = case.truth.successors(contender, when.at);
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
            belief.who, case.promise.noun, belief.fence, granted.who, granted.fence
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
        let (who, noun, path) = (belief.who, case.promise.noun, contender.path);
        let sentence =
            format!("participant {who} goes on believing to have {noun}, and {path} is long gone");
        Some(Violation::new(id, at, sentence).involving([belief.since.at, when.at]).by([who]))
    }
}
