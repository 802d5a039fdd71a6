//! A history that is judged, and what is said of it.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use serde::Serialize;
use serde_json::Value;

use crate::faults::Faults;
use crate::history::{Change, Entry, ParticipantId, What};
use crate::people::{Call, People, Person};
use crate::truth::{Contender, Truth, split};

/// Violations of one invariant that are told: the first says what is wrong, the rest mostly follow.
const MOST_OF_A_KIND: usize = 3;

/// How long a host may take to delete a contender, beyond one session timeout without faults.
const CLEAN_UP_US: u64 = 2_000_000;

/// What the passes over a line of contenders have to know of a recipe.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// What is held, such as "the lock".
    pub noun: &'static str,
    /// The operations that ask to stand in line, and are answered with the grant.
    pub asks: &'static [&'static str],
    /// Those of them that wait for as long as it takes, and so turn nobody away.
    pub waits: &'static [&'static str],
    /// How long a participant stays in line after it has asked.
    pub stay: Stay,
    /// The recipe's own events that tell a grant, with its fence.
    pub events: &'static [&'static str],
    /// The operations with which a participant looks on, and may watch what it does not wait for.
    pub looks: &'static [&'static str],
}

/// How long a contender stays in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It is its call's, which waits and is answered with the grant.
    WithCall,
    /// It goes on by itself after its call was answered.
    BeyondCall,
}

impl Promise {
    /// What is known of a recipe of which nothing is known.
    pub const NONE: Promise = Promise {
        noun: "the claim",
        asks: &[],
        waits: &[],
        stay: Stay::BeyondCall,
        events: &[],
        looks: &[],
    };
}

/// A promise that a run broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The invariant's id.
    pub invariant: Cow<'static, str>,
    /// What happened, for people.
    pub sentence: String,
    /// The entry at which it is broken.
    pub at: usize,
    /// The entries that led there, in their order.
    pub involved: Vec<usize>,
    /// Who took part.
    pub participants: Vec<ParticipantId>,
}

impl Violation {
    /// What was broken at that entry.
    pub fn new(invariant: impl Into<Cow<'static, str>>, at: usize, sentence: String) -> Self {
        let (involved, participants) = (vec![at], Vec::new());
        Violation { invariant: invariant.into(), sentence, at, involved, participants }
    }

    /// The same, with entries that led there.
    #[must_use]
    pub fn involving(mut self, entries: impl IntoIterator<Item = usize>) -> Self {
        self.involved.extend(entries);
        self.involved.sort_unstable();
        self.involved.dedup();
        self
    }

    /// The same, with participants that took part.
    #[must_use]
    pub fn by(mut self, participants: impl IntoIterator<Item = ParticipantId>) -> Self {
        self.participants.extend(participants);
        self
    }
}

/// Violations in the order in which the promises were broken, a few of each at most.
pub fn first_of_each(mut found: Vec<Violation>) -> Vec<Violation> {
    found.sort_by_key(|violation| violation.at);
    let mut told: Vec<Violation> = Vec::new();
    for violation in found {
        let of_its_kind = || told.iter().filter(|other| other.invariant == violation.invariant);
        // Two judges may find the same.
        let is_known = |other: &Violation| {
            other.at == violation.at && other.participants == violation.participants
        };
        if of_its_kind().count() < MOST_OF_A_KIND && !of_its_kind().any(is_known) {
            told.push(violation);
        }
    }
    told
}

/// A place in the history: the number of an entry, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The entry's number.
    pub at: usize,
    /// Its time.
    pub us: u64,
}

impl Moment {
    /// That of an entry.
    pub fn of(at: usize, entry: &Entry) -> Self {
        Moment { at, us: entry.at_us }
    }
}

/// A history, and what can be looked up in it.
#[derive(Debug)]
pub struct Case<'a> {
    /// What is known of the recipe.
    pub promise: &'a Promise,
    /// What happened.
    pub history: &'a [Entry],
    /// By the ensemble's log.
    pub truth: &'a Truth<'a>,
    /// Who took part.
    pub people: People<'a>,
    /// What the simulator did.
    pub faults: Faults,
}

impl<'a> Case<'a> {
    /// Takes down what can be looked up.
    pub fn of(history: &'a [Entry], truth: &'a Truth<'a>, promise: &'a Promise) -> Self {
        let people = People::of(history, truth, promise);
        Case { promise, history, truth, people, faults: Faults::of(history) }
    }

    /// The arguments that an operation was called with.
    pub fn arguments(&self, call: &Call<'_>) -> Option<&'a Value> {
        match &self.history.get(call.invoked.at)?.what {
            What::Invoked { arguments, .. } => Some(arguments),
            _ => None,
        }
    }

    /// The first entry later than that; none if the history does not reach so far.
    pub fn first_after(&self, us: u64) -> Option<usize> {
        let at = self.history.partition_point(|entry| entry.at_us <= us);
        (at < self.history.len()).then_some(at)
    }

    /// The entry by which the contender should have gone, if it had no business there any more from
    /// that moment on, has not gone, and its session goes on.
    pub fn overdue(
        &self,
        person: &Person<'_>,
        contender: &Contender<'_>,
        from: Moment,
    ) -> Option<usize> {
        self.outstays(person, contender.owner, contender.deleted_at(), from)
    }

    /// The same of any ephemeral znode, given its session and when it went.
    pub fn outstays(
        &self,
        person: &Person<'_>,
        session: i64,
        deleted: Option<Moment>,
        from: Moment,
    ) -> Option<usize> {
        let patience = self.truth.timeout_us(session).saturating_add(CLEAN_UP_US);
        let due = self.faults.due(person.host, from.us, patience)?;
        let is_before = |end: Option<Moment>| end.is_some_and(|end| end.us <= due);
        if is_before(deleted) || is_before(self.truth.session(session)?.lost) {
            return None;
        }
        self.first_after(due)
    }

    /// The entry up to which, at least, the server that answers a call's reads has what was committed. A
    /// read that nothing confirms may be older than the call, since the server may be behind the others. But
    /// where no fault makes a session go to another server, its server has what the session itself had
    /// committed before the call.
    pub fn known_to_server(&self, call: &Call<'_>, answered: Moment) -> usize {
        let Some(person) = self.people.person(call.who) else { return 0 };
        let before = self.history.get(..call.invoked.at).unwrap_or_default();
        let mut own = before.iter().enumerate().rev().filter(|(_, entry)| {
            matches!(entry.what, What::Txn { session, .. } if session == person.session)
        });
        let Some((at, entry)) = own.next() else { return 0 };
        if self.is_undisturbed(entry.at_us, answered.us) { at } else { 0 }
    }

    /// The same for reads that are sent behind a `sync`: they show what was committed before the call. But a
    /// leader that is cut off answers a `sync` though it has missed what the others have committed.
    pub fn known_behind_sync(&self, call: &Call<'_>, answered: Moment) -> usize {
        let is_so = self.is_undisturbed(call.invoked.us, answered.us);
        if is_so { call.invoked.at } else { 0 }
    }

    /// Whether no fault was near any host in that time: a cut of one host's server concerns all hosts that are
    /// connected there.
    pub fn is_undisturbed(&self, from: u64, until: u64) -> bool {
        let timeout = self.truth.longest_timeout_us();
        self.people.persons().all(|person| self.faults.spared(person.host, from, until, timeout))
    }

    /// The first entry that is later than the answer for sure. What happens in the instant of the answer may be
    /// taken down behind it.
    pub fn end_of(&self, answered: Moment) -> usize {
        self.first_after(answered.us).unwrap_or(self.history.len())
    }

    /// How many children a znode had, at the least and at the most, after the first of these entries and
    /// after each one that follows.
    pub fn children_of(&self, parent: &str, within: Range<usize>) -> RangeInclusive<u64> {
        let is_child = |path: &str| split(path).is_some_and(|(of, _)| of == parent);
        let (mut now, mut least, mut most) = (0_u64, u64::MAX, 0);
        for (at, entry) in self.history.iter().enumerate().take(within.end) {
            if let What::Txn { changes, .. } = &entry.what {
                for change in changes {
                    match change {
                        Change::Created { path, .. } if is_child(path) => now += 1,
                        Change::Deleted { path } if is_child(path) => now = now.saturating_sub(1),
                        _ => {}
                    }
                }
            }
            if at >= within.start {
                (least, most) = (least.min(now), most.max(now));
            }
        }
        least..=most
    }
}
