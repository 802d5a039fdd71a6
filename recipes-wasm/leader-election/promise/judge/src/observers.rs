//! What those who look on are told of an election.

use std::collections::BTreeMap;

use serde_json::Value;

use wok_judge::grants::fence_of;
use wok_judge::history::{CallId, Outcome, ParticipantId, Told, What};
use wok_judge::lines::moments;
use wok_judge::people::{Call, Person};
use wok_judge::truth::Contender;
use wok_judge::{Case, Moment, Violation};

use crate::due;

/// What an observer knows.
#[derive(Debug, Default)]
struct View {
    /// The highest term it has heard of.
    highest: Option<Heard>,
    /// The term it was told last without asking again.
    told: Option<Heard>,
}

/// A term, and the entry at which it was heard of.
type Heard = (u64, usize);

/// E4: what an observer is told, by `leader-changed` and by the answers of `leader` and `observe`,
/// is a part of the true sequence of terms: each was one, none is told twice as news, and no view is
/// older than what was known when it was asked for.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut views: BTreeMap<ParticipantId, View> = BTreeMap::new();
    let mut asked: BTreeMap<CallId, (&str, Option<Heard>)> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let (who, fence, floor) = match &entry.what {
            What::Invoked { participant, call, operation, .. }
                if operation == "leader" || operation == "observe" =>
            {
                let view = views.entry(*participant).or_default();
                asked.insert(*call, (operation, view.highest));
                continue;
            }
            What::Returned { participant, call, outcome: Outcome::Ok { value, .. } } => {
                let Some((operation, floor)) = asked.remove(call) else { continue };
                let Some(fence) = value.get("fence").and_then(fence_of) else { continue };
                if operation == "observe" {
                    views.entry(*participant).or_default().told = Some((fence, at));
                }
                (*participant, fence, floor.filter(|(known, _)| fence < *known))
            }
            What::Told { participant, notice: Told::Emitted { event, detail } }
                if event == "leader-changed" =>
            {
                let fence = detail.get("fence").cloned().map(Value::String);
                let Some(fence) = fence.as_ref().and_then(fence_of) else { continue };
                let told = &mut views.entry(*participant).or_default().told;
                let before = told.replace((fence, at));
                (*participant, fence, before.filter(|(before, _)| fence <= *before))
            }
            _ => continue,
        };
        if let Some((before, since)) = floor {
            let sentence = format!("participant {who} was told of term {fence} after {before}");
            found.push(Violation::new(id, at, sentence).involving([since]).by([who]));
        } else if !was_term(case, who, fence, at) {
            let sentence = format!("participant {who} was told of term {fence}, which never was");
            found.push(Violation::new(id, at, sentence).by([who]));
        }
        let highest = &mut views.entry(who).or_default().highest;
        *highest = (*highest).max(Some((fence, at)));
    }
}

/// Whether a candidate of that `czxid` had become first below the participant's mount by then.
fn was_term(case: &Case<'_>, who: ParticipantId, fence: u64, at: usize) -> bool {
    let mount = case.people.person(who).map_or("/", |person| person.mount);
    let mut led = i64::try_from(fence).into_iter().flat_map(|czxid| case.truth.created_by(czxid));
    led.any(|it| it.parent == mount && it.first.is_some_and(|first| first.at < at))
}

/// Who led from an entry on; none if nobody did.
#[derive(Clone, Copy, Debug)]
struct Reign<'a> {
    from: Moment,
    leader: Option<&'a Contender<'a>>,
}

/// E4 of what is not told: an observer that is idle knows who leads, or that nobody does, once that has been
/// so for long enough. A term, or a time without a leader, that is shorter may be left out.
pub(super) fn check_silence(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut all: BTreeMap<&str, Vec<Reign<'_>>> = BTreeMap::new();
    for call in case.people.calls().iter().filter(|call| call.operation == "observe") {
        let Some((since, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let reigns = all.entry(person.mount).or_insert_with(|| reigns(case, person.mount));
        let mut later = case.people.calls().iter().filter(|it| it.who == call.who);
        let again = later.find(|it| it.operation == "observe" && it.invoked.at > call.invoked.at);
        let until = again.map_or(usize::MAX, |again| again.invoked.at);
        let observed = Observed { call, person, since, answer: value, until };
        for (reign, next) in with_ends(reigns) {
            let is_meanwhile = reign.from.at < until && next.is_none_or(|end| end.at > since.at);
            if is_meanwhile {
                found.extend(observed.untold(case, reign, next, id));
            }
        }
    }
}

/// An observation that goes on.
struct Observed<'o, 'a> {
    call: &'o Call<'a>,
    person: &'o Person<'a>,
    since: Moment,
    answer: &'o Value,
    /// The entry at which its participant begins another one.
    until: usize,
}

impl Observed<'_, '_> {
    fn untold(
        &self,
        case: &Case<'_>,
        reign: Reign<'_>,
        next: Option<Moment>,
        id: &'static str,
    ) -> Option<Violation> {
        let (person, who) = (self.person, self.call.who);
        let from = reign.from.max(self.since);
        let mut by = due(case, person, from)?;
        // A component is woken when none of its operations is under way.
        let own = case.people.calls().iter().filter(|it| it.who == who);
        for busy in own.filter(|it| it.answered.is_none_or(|(answered, _)| answered.at > from.at)) {
            if busy.invoked.us <= by {
                by = by.max(due(case, person, busy.answered?.0)?);
            }
        }
        let at = case.first_after(by)?;
        let is_short = next.is_some_and(|end| end.at < at);
        if is_short || self.until < at || self.knows(case, reign, at) || is_over(case, person, by) {
            return None;
        }
        let what =
            reign.leader.map_or("nobody leads".to_owned(), |it| format!("{} leads", it.path));
        let sentence = format!("participant {who} observes, and was not told that {what}");
        Some(Violation::new(id, at, sentence).involving([reign.from.at, self.since.at]).by([who]))
    }

    /// Whether it was told by then. Of a leader it was if it ever heard of that term or a later one, which
    /// is news once. That nobody leads is the last that it heard; an event may reach its follower before
    /// the answer of the call that came before that event.
    fn knows(&self, case: &Case<'_>, reign: Reign<'_>, by: usize) -> bool {
        let events = case.history.iter().enumerate().take(by).skip(self.call.invoked.at);
        let events = events.filter_map(|(at, entry)| match &entry.what {
            What::Told { participant, notice: Told::Emitted { event, detail } }
                if *participant == self.call.who && event == "leader-changed" =>
            {
                Some((at, detail.get("fence").map_or(0, |told| told.parse().unwrap_or_default())))
            }
            _ => None,
        });
        let events: Vec<(usize, u64)> = events.collect();
        let answered = self.answer.get("fence").and_then(fence_of).unwrap_or_default();
        match reign.leader {
            Some(leader) => {
                let term = leader.czxid.unsigned_abs();
                answered >= term || events.iter().any(|(_, fence)| *fence >= term)
            }
            None => {
                let last = events.last();
                let is_answered_last = last.is_none_or(|(at, _)| *at < self.since.at);
                last.is_some_and(|(_, fence)| *fence == 0) || (is_answered_last && answered == 0)
            }
        }
    }
}

/// Who led when below a mount.
fn reigns<'a>(case: &'a Case<'_>, mount: &str) -> Vec<Reign<'a>> {
    let mut reigns: Vec<Reign<'a>> = Vec::new();
    for at in moments(case, &[mount], 0..case.history.len()) {
        let Some(entry) = case.history.get(at) else { continue };
        let leader = case.truth.line_at(mount, at).first().copied();
        let before = reigns.last().map(|reign| reign.leader.map(|it| it.id));
        if before != Some(leader.map(|it| it.id)) {
            reigns.push(Reign { from: Moment::of(at, entry), leader });
        }
    }
    reigns
}

/// Each of them, and when it was over.
fn with_ends<'r, 'a>(
    reigns: &'r [Reign<'a>],
) -> impl Iterator<Item = (Reign<'a>, Option<Moment>)> + 'r {
    let ends = reigns.iter().skip(1).map(|next| Some(next.from)).chain([None]);
    reigns.iter().copied().zip(ends)
}

/// Whether the participant had ended by then, or was about to: it was asked to leave, or its session was lost.
fn is_over(case: &Case<'_>, person: &Person<'_>, by: u64) -> bool {
    let ends = |what: &What| match what {
        What::Leaving { participant } => *participant == person.id,
        What::SessionLost { session, .. } => *session == person.session,
        _ => false,
    };
    let mut until = case.history.iter().take_while(|entry| entry.at_us <= by);
    person.end.is_some_and(|end| end.when().us <= by) || until.any(|entry| ends(&entry.what))
}
