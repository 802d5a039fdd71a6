//! Who took part: participants, what they were asked and told, and what they believed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::history::{
    CallId, Change, Entry, FaultKind, HostId, Outcome, ParticipantId, Told, What,
};
use crate::truth::{Contender, Truth, split};
use crate::{Moment, Promise, Stay};

/// Everybody of a history, taken down in one pass.
#[derive(Debug, Default)]
pub struct People<'a> {
    persons: BTreeMap<ParticipantId, Person<'a>>,
    calls: Vec<Call<'a>>,
    beliefs: Vec<Belief<'a>>,
    /// Who asked for a contender, by its number.
    askers: BTreeMap<usize, ParticipantId>,
    /// The entry of the `contend` that asked for a contender, by its number.
    asked: BTreeMap<usize, usize>,
    /// The belief that a contender first gave rise to, by its number.
    granted: BTreeMap<usize, usize>,
}

/// A participant.
#[derive(Debug)]
pub struct Person<'a> {
    /// Its number.
    pub id: ParticipantId,
    /// Where it is.
    pub host: HostId,
    /// Its session, as long as it lives.
    pub session: i64,
    /// The absolute path of what it sees as `/`.
    pub mount: &'a str,
    /// The recipe's config for it.
    pub config: &'a Value,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// Its application asked it to leave, and gave up what it holds and what it may come to hold.
    is_leaving: bool,
    calls: Vec<usize>,
    beliefs: Vec<usize>,
}

/// How a participant ended.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// It said so.
    Told(Moment),
    /// With its host.
    Killed(Moment),
}

impl End {
    /// When.
    pub fn when(self) -> Moment {
        match self {
            End::Told(when) | End::Killed(when) => when,
        }
    }
}

/// A call of an operation.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its number.
    pub id: CallId,
    /// Whose.
    pub who: ParticipantId,
    /// What was called.
    pub operation: &'a str,
    /// When it was called.
    pub invoked: Moment,
    /// When it was answered, and with what.
    pub answered: Option<(Moment, &'a Outcome)>,
}

impl Call<'_> {
    /// Whether it was under way at that entry, as far as its caller knew.
    fn covers(&self, at: usize) -> bool {
        self.invoked.at <= at && self.answered.is_none_or(|(answered, _)| answered.at >= at)
    }

    fn was_refused(&self) -> bool {
        matches!(self.answered, Some((_, Outcome::Busy)))
    }
}

/// What a participant was told that it holds, and for how long it could believe so.
#[derive(Debug)]
pub struct Belief<'a> {
    /// Whose.
    pub who: ParticipantId,
    /// The claim's znode.
    pub path: &'a str,
    /// The fence that it was told.
    pub fence: u64,
    /// The entry at which the wait for it began.
    pub asked: usize,
    /// When it was told.
    pub since: Moment,
    /// When and how it ended, if it did.
    pub over: Option<(Moment, Over)>,
    /// The contender of that path, if the log has one.
    pub contender: Option<&'a Contender<'a>>,
}

/// How a belief ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Given up.
    Released,
    /// Another claim of its own is in its place, taken by the txn that gave it up.
    Replaced,
    /// Told, or nobody is there any more to be told.
    Lost,
}

impl Belief<'_> {
    /// Whether it is still believed after that entry.
    pub fn lasts_beyond(&self, at: usize) -> bool {
        self.over.is_none_or(|(over, _)| over.at > at)
    }

    /// Whether it is still believed after that time.
    pub fn lasts_after(&self, us: u64) -> bool {
        self.over.is_none_or(|(over, _)| over.us > us)
    }
}

/// A `contend` that is under way, or was cancelled: the servers may still carry it out.
struct Contending<'a> {
    who: ParticipantId,
    /// The entry of the host call.
    at: usize,
    number: u64,
    session: i64,
    parents: &'a [String],
    /// The contender that it will answer with, or else is taken to have made.
    made: Option<usize>,
}

impl<'a> People<'a> {
    /// Of a history.
    pub fn of(history: &'a [Entry], truth: &'a Truth<'a>, promise: &Promise) -> Self {
        let mut people = People::default();
        let made = contenders_made(history, truth);
        let mut contending: Vec<Contending<'a>> = Vec::new();
        for (at, entry) in history.iter().enumerate() {
            let now = Moment::of(at, entry);
            match &entry.what {
                What::Joined { participant, host, session, mount, config } => {
                    people.join(*participant, *host, *session, mount, config);
                }
                What::Invoked { .. } | What::Returned { .. } => {
                    people.note_call(now, &entry.what);
                }
                What::Leaving { participant } => {
                    people.end_beliefs(*participant, now, Over::Released, |_| true);
                    if let Some(person) = people.persons.get_mut(participant) {
                        person.is_leaving = true;
                    }
                }
                What::Told { participant, notice } => {
                    people.hear(now, *participant, notice, truth, promise);
                }
                What::Fault { fault: FaultKind::HostKill, host, .. } => people.kill(now, *host),
                What::HostCall { participant, number, name, paths } if contends(name) => {
                    let Some(person) = people.persons.get(participant) else {
                        continue;
                    };
                    contending.push(Contending {
                        who: *participant,
                        at,
                        number: *number,
                        session: person.session,
                        parents: paths,
                        made: made.get(number).copied(),
                    });
                }
                What::HostCallAnswered { participant, number, answer, .. } => {
                    if let Some(created) = made.get(number) {
                        people.askers.insert(*created, *participant);
                        let asking = contending.iter().find(|it| it.number == *number);
                        people.asked.extend(asking.map(|asking| (*created, asking.at)));
                    }
                    if answer != CANCELLED {
                        contending.retain(|it| it.number != *number);
                    }
                }
                What::Txn { changes, .. } => {
                    people.guess_askers(at, changes, truth, &mut contending);
                }
                _ => {}
            }
        }
        people
    }

    /// Everybody, in the order of their numbers.
    pub fn persons(&self) -> impl Iterator<Item = &Person<'a>> {
        self.persons.values()
    }

    /// One of them.
    pub fn person(&self, id: ParticipantId) -> Option<&Person<'a>> {
        self.persons.get(&id)
    }

    /// The beliefs in the order in which they began.
    pub fn beliefs(&self) -> &[Belief<'a>] {
        &self.beliefs
    }

    /// A participant's beliefs in the order in which they began.
    pub fn beliefs_of(&self, id: ParticipantId) -> impl DoubleEndedIterator<Item = &Belief<'a>> {
        let own = self.persons.get(&id).map_or(&[][..], |person| person.beliefs.as_slice());
        own.iter().filter_map(|index| self.beliefs.get(*index))
    }

    /// The calls in the order in which they were made.
    pub fn calls(&self) -> &[Call<'a>] {
        &self.calls
    }

    /// The call that its component was busy with at that entry.
    pub fn call_at(&self, id: ParticipantId, at: usize) -> Option<&Call<'a>> {
        let own = self.persons.get(&id)?.calls.as_slice();
        let earlier = own.partition_point(|index| {
            self.calls.get(*index).is_some_and(|call| call.invoked.at <= at)
        });
        let earlier = own.iter().take(earlier).rev().filter_map(|index| self.calls.get(*index));
        // One at a time is worked at; what comes meanwhile is refused.
        earlier.filter(|call| !call.was_refused()).take_while(|call| call.covers(at)).last()
    }

    /// Who asked for a contender, if that can be known.
    pub fn asker(&self, contender: &Contender<'_>) -> Option<&Person<'a>> {
        self.persons.get(self.askers.get(&contender.id)?)
    }

    /// The entry at which a contender was asked for, if that can be known. A `contend` that is cancelled
    /// may be carried out when its participant is busy with another call.
    pub fn asked_at(&self, contender: &Contender<'_>) -> Option<usize> {
        self.asked.get(&contender.id).copied()
    }

    /// What its participant believed when it was told to hold the contender, if it was.
    pub fn granted(&self, contender: &Contender<'_>) -> Option<&Belief<'a>> {
        self.beliefs.get(*self.granted.get(&contender.id)?)
    }

    fn join(
        &mut self,
        id: ParticipantId,
        host: HostId,
        session: i64,
        mount: &'a str,
        config: &'a Value,
    ) {
        let (calls, beliefs) = (Vec::new(), Vec::new());
        let (end, is_leaving) = (None, false);
        let person = Person { id, host, session, mount, config, end, is_leaving, calls, beliefs };
        self.persons.insert(id, person);
    }

    fn note_call(&mut self, now: Moment, what: &'a What) {
        match what {
            What::Invoked { participant, call, operation, .. } => {
                if let Some(person) = self.persons.get_mut(participant) {
                    person.calls.push(self.calls.len());
                }
                self.calls.push(Call {
                    id: *call,
                    who: *participant,
                    operation,
                    invoked: now,
                    answered: None,
                });
            }
            What::Returned { participant, call, outcome } => {
                if let Some(call) = self.own_call(*participant, *call) {
                    call.answered.get_or_insert((now, outcome));
                }
            }
            _ => {}
        }
    }

    fn own_call(&mut self, who: ParticipantId, id: CallId) -> Option<&mut Call<'a>> {
        let own = &self.persons.get(&who)?.calls;
        let is_it = |index: &&usize| self.calls.get(**index).is_some_and(|call| call.id == id);
        let index = *own.iter().rev().find(is_it)?;
        self.calls.get_mut(index)
    }

    fn hear(
        &mut self,
        now: Moment,
        who: ParticipantId,
        notice: &'a Told,
        truth: &'a Truth<'a>,
        promise: &Promise,
    ) {
        match notice {
            Told::Waiting { path } => {
                if let Some(contender) = truth.find(path, now.at) {
                    self.askers.insert(contender.id, who);
                }
            }
            Told::Held { path, fence } => {
                let contender = truth.find(path, now.at);
                if let Some(contender) = contender {
                    self.askers.entry(contender.id).or_insert(who);
                }
                self.believe(now, who, (path, *fence), contender, truth, promise);
                if self.persons.get(&who).is_some_and(|person| person.is_leaving) {
                    self.end_beliefs(who, now, Over::Released, |_| true);
                }
            }
            Told::Released { path } => {
                self.end_beliefs(who, now, Over::Released, |belief| belief.path == path);
            }
            Told::Lost { .. } => self.end_beliefs(who, now, Over::Lost, |_| true),
            Told::Ended { .. } => {
                self.end_beliefs(who, now, Over::Lost, |_| true);
                if let Some(person) = self.persons.get_mut(&who) {
                    person.end.get_or_insert(End::Told(now));
                }
            }
            Told::Suspended | Told::Resumed | Told::Emitted { .. } => {}
        }
    }

    fn believe(
        &mut self,
        since: Moment,
        who: ParticipantId,
        (path, fence): (&'a str, u64),
        contender: Option<&'a Contender<'a>>,
        truth: &'a Truth<'a>,
        promise: &Promise,
    ) {
        let is_known = |belief: &Belief<'_>| {
            belief.over.is_none() && belief.path == path && belief.fence == fence
        };
        if self.beliefs_of(who).next_back().is_some_and(is_known) {
            return;
        }
        let replaced = i64::try_from(fence).map_or(&[][..], |fence| truth.deleted_with(fence));
        self.end_beliefs(who, since, Over::Replaced, |belief| replaced.contains(&belief.path));
        let invoked = self.call_at(who, since.at).map(|call| call.invoked.at);
        let created = contender.map(|contender| contender.created.at);
        let asked = match promise.stay {
            Stay::WithCall => invoked.or(created),
            // Those go on by themselves, and no call may be under way, or another one.
            Stay::BeyondCall => invoked.into_iter().chain(created).min(),
        };
        let asked = asked.unwrap_or(since.at);
        let index = self.beliefs.len();
        if let Some(person) = self.persons.get_mut(&who) {
            person.beliefs.push(index);
        }
        if let Some(contender) = contender {
            self.granted.entry(contender.id).or_insert(index);
        }
        self.beliefs.push(Belief { who, path, fence, asked, since, over: None, contender });
    }

    fn end_beliefs(
        &mut self,
        who: ParticipantId,
        now: Moment,
        how: Over,
        which: impl Fn(&Belief<'_>) -> bool,
    ) {
        let own = self.persons.get(&who).map_or(&[][..], |person| person.beliefs.as_slice());
        for index in own {
            let belief = self.beliefs.get_mut(*index);
            if let Some(belief) = belief.filter(|it| it.over.is_none() && which(it)) {
                belief.over = Some((now, how));
            }
        }
    }

    fn kill(&mut self, now: Moment, host: Option<HostId>) {
        let on_it = |person: &&Person<'_>| host.is_none_or(|host| person.host == host);
        let killed: Vec<_> = self.persons.values().filter(on_it).map(|person| person.id).collect();
        for id in killed {
            self.end_beliefs(id, now, Over::Lost, |_| true);
            if let Some(person) = self.persons.get_mut(&id) {
                person.end.get_or_insert(End::Killed(now));
            }
        }
    }

    /// A contender whose `contend` is not answered with it belongs to the one whose `contend` made another of
    /// its name, or else to the only one that can have asked.
    fn guess_askers(
        &mut self,
        at: usize,
        changes: &[Change],
        truth: &'a Truth<'a>,
        contending: &mut [Contending<'_>],
    ) {
        for change in changes {
            let Change::Created { path, ephemeral_owner, .. } = change else {
                continue;
            };
            let Some((contender, (parent, _))) = truth.find(path, at).zip(split(path)) else {
                continue;
            };
            // Who gives a place up for it has asked for both.
            if let Some(asker) = contender.replaces.and_then(|old| self.askers.get(&old)).copied() {
                self.askers.insert(contender.id, asker);
                continue;
            }
            let could_ask = |asking: &Contending<'_>| {
                asking.session == *ephemeral_owner && asking.parents.iter().any(|it| it == parent)
            };
            let has_its_name = |asking: &Contending<'_>| {
                let made = asking.made.and_then(|made| truth.contender(made));
                made.is_some_and(|made| made.is_of_one_request_with(contender))
            };
            let has_made_no_other =
                |asking: &Contending<'_>| asking.made.is_none_or(|made| made == contender.id);
            let named = contending.iter().position(|it| could_ask(it) && has_its_name(it));
            let asking = named.or_else(|| {
                let asking = contending.iter().enumerate();
                let mut asking = asking.filter(|(_, it)| could_ask(it) && has_made_no_other(it));
                asking.next().filter(|_| asking.next().is_none()).map(|(only, _)| only)
            });
            if let Some(asking) = asking.and_then(|asking| contending.get_mut(asking)) {
                asking.made.get_or_insert(contender.id);
                self.askers.entry(contender.id).or_insert(asking.who);
                self.asked.entry(contender.id).or_insert(asking.at);
            }
        }
    }
}

/// What a host call is answered with that its component has withdrawn.
const CANCELLED: &str = "cancelled";

/// The contender that each `contend` is answered with, by the call's number.
fn contenders_made(history: &[Entry], truth: &Truth<'_>) -> BTreeMap<u64, usize> {
    let answered = history.iter().enumerate().filter_map(|(at, entry)| match &entry.what {
        What::HostCallAnswered { number, created: Some(path), .. } => {
            Some((*number, truth.find(path, at)?.id))
        }
        _ => None,
    });
    answered.collect()
}

/// Whether a host call makes a contender.
fn contends(host_call: &str) -> bool {
    matches!(host_call, "contend" | "contend-and-list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stories::{MOUNT, Story, created, joined, session};

    /// Participants 4 and 5 contend on one session. The call of 4 is cancelled before its contender is
    /// there; 5 has its contender, and is answered or not. Answers whose the two contenders are, that of
    /// 5 first.
    fn askers(is_answered: bool) -> Vec<Option<ParticipantId>> {
        let (mut story, shared) = (Story::new(), session(1));
        for participant in [4, 5] {
            story.push(joined(participant, 1, shared));
        }
        let paths = [5, 4].map(|who| format!("{MOUNT}/_c_{who}-lock-{who:010}"));
        story.ask(4, "contend-and-list", MOUNT);
        let answer = CANCELLED.to_owned();
        story.push(What::HostCallAnswered { participant: 4, number: 1, answer, created: None });
        story.ask(5, "contend-and-list", MOUNT);
        for path in &paths {
            story.commit(shared, vec![created(path, shared)]);
        }
        if is_answered {
            story.answer_ask(5, Some(&paths[0]));
        }
        let truth = Truth::of(&story.entries);
        let people = People::of(&story.entries, &truth, &Promise::NONE);
        let askers = truth.contenders().iter().map(|it| people.asker(it).map(|person| person.id));
        askers.collect()
    }

    #[test]
    fn what_a_cancelled_call_makes_is_told_from_what_another_is_answered_with() {
        assert_eq!(askers(true), [Some(5), Some(4)]);
    }

    /// The reply is lost, somebody deletes what was made, and the host makes it again.
    #[test]
    fn what_is_made_again_because_somebody_deleted_it_is_told_by_its_name() {
        let (mut story, shared) = (Story::new(), session(1));
        for participant in [4, 5] {
            story.push(joined(participant, 1, shared));
        }
        let path = |counter: u32| {
            format!("{MOUNT}/_c_c98b2198-dd5f-4cfb-ad50-604b62c63be1-lock-{counter:010}")
        };
        // That of 4 is never made, which nobody knows.
        story.ask(4, "contend-and-list", MOUNT);
        let answer = CANCELLED.to_owned();
        story.push(What::HostCallAnswered { participant: 4, number: 1, answer, created: None });
        story.ask(5, "contend-and-list", MOUNT);
        story.commit(shared, vec![created(&path(7), shared)]);
        story.commit(session(2), vec![Change::Deleted { path: path(7) }]);
        story.commit(shared, vec![created(&path(8), shared)]);
        story.answer_ask(5, Some(&path(8)));
        let truth = Truth::of(&story.entries);
        let people = People::of(&story.entries, &truth, &Promise::NONE);
        let askers = truth.contenders().iter().map(|it| people.asker(it).map(|person| person.id));
        assert_eq!(askers.collect::<Vec<_>>(), [Some(5), Some(5)]);
    }

    #[test]
    fn a_contender_is_nobody_s_where_two_may_have_asked_for_it() {
        assert_eq!(askers(false), [None, None]);
    }
}
