//! A second opinion that needs no log: is there an order in which all this could have happened?
//!
//! The search is Wing and Gong's, with the memory that Lowe added: take any operation that no other
//! had to precede, and go on from the state it leads to, never twice from the same. It takes time
//! that grows exponentially at worst, so it is for short runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Outcome, ParticipantId};
use crate::people::{Belief, Over};
use crate::{Case, Violation};

/// Operations on one lock that are searched at most; a run with more has the other judges alone.
const MOST_OPERATIONS: usize = 60;

/// Something done to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Who did it.
    pub who: ParticipantId,
    /// What was done.
    pub action: Action,
    /// The entry before which it cannot have happened.
    pub from: usize,
    /// The entry by which it has. None: it may happen later, or never.
    pub until: Option<usize>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Taken with a fence, which is higher than all before. Never by its present holder.
    Acquire(u64),
    /// What was taken with this fence is given back, or lost.
    End(u64),
    /// Given back by somebody who must have had it.
    Release,
}

/// M8: what callers saw of a lock is what a non-reentrant mutex with growing fences can show.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (mount, operations) in operations(case) {
        if is_linearizable(&operations) == Some(false) {
            let last = operations.iter().filter_map(|operation| operation.until).max();
            let participants: BTreeSet<_> = operations.iter().map(|it| it.who).collect();
            let sentence = format!(
                "no order of the {} operations on the lock {mount} explains their answers",
                operations.len()
            );
            let entries = operations.iter().map(|operation| operation.from);
            let violation = Violation::new(id, last.unwrap_or_default(), sentence);
            found.push(violation.involving(entries).by(participants));
        }
    }
}

/// The operations of each lock, as those who called them saw them. Calls that were withdrawn or never
/// answered may have taken the lock in between and given it back; no fence of theirs was seen, so
/// they explain nothing and are left out.
pub fn operations<'a>(case: &'a Case<'_>) -> BTreeMap<&'a str, Vec<Operation>> {
    let mut locks: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
    for belief in case.people.beliefs() {
        let Some(person) = case.people.person(belief.who) else { continue };
        let lock = locks.entry(person.mount).or_default();
        let (who, action) = (belief.who, Action::Acquire(belief.fence));
        lock.push(Operation { who, action, from: belief.asked, until: Some(belief.since.at) });
        lock.extend(end_of(case, belief));
    }
    for call in case.people.calls().iter().filter(|call| call.operation == "release") {
        let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
        let Some(person) = case.people.person(call.who) else { continue };
        let ends = |belief: &Belief<'_>| {
            belief.over.is_some_and(|(over, _)| call.invoked.at < over.at && over.at < answered.at)
        };
        if !case.people.beliefs_of(call.who).any(ends) {
            let (from, until) = (call.invoked.at, Some(answered.at));
            let operation = Operation { who: call.who, action: Action::Release, from, until };
            locks.entry(person.mount).or_default().push(operation);
        }
    }
    locks
}

/// How a claim ended: when it was given up, and by when that was confirmed; or when it was lost, and
/// nobody need have noticed.
fn end_of(case: &Case<'_>, belief: &Belief<'_>) -> Option<Operation> {
    let deleted = belief.contender.and_then(|it| it.deleted_at()).map(|deleted| deleted.at);
    let released = belief.over.filter(|(_, how)| *how == Over::Released).map(|(over, _)| over.at);
    let call = released.and_then(|released| case.people.call_at(belief.who, released));
    let until = call.and_then(|call| match call.answered {
        Some((answered, Outcome::Ok { .. })) => Some(answered.at),
        _ => None,
    });
    let from = released.into_iter().chain(deleted).min()?;
    Some(Operation { who: belief.who, action: Action::End(belief.fence), from, until })
}

/// Whether there is an order; none if there are too many operations to tell.
pub fn is_linearizable(operations: &[Operation]) -> Option<bool> {
    if operations.len() > MOST_OPERATIONS {
        return None;
    }
    let search = &mut Search { operations, seen: BTreeSet::new() };
    Some(search.goes_on(Done(0), Mutex::default()))
}

/// A mutex, as far as it is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Mutex {
    holder: Option<ParticipantId>,
    /// The highest fence so far.
    fence: u64,
}

impl Mutex {
    /// What it becomes; none if that cannot be done to it.
    fn after(self, operation: &Operation) -> Option<Mutex> {
        let is_holder = self.holder == Some(operation.who);
        match operation.action {
            Action::Acquire(fence) => (self.holder.is_none() && fence > self.fence)
                .then_some(Mutex { holder: Some(operation.who), fence }),
            Action::End(fence) => {
                (is_holder && fence == self.fence).then_some(Mutex { holder: None, ..self })
            }
            Action::Release => is_holder.then_some(Mutex { holder: None, ..self }),
        }
    }
}

/// The operations that have happened, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Done(u64);

impl Done {
    fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    fn with(self, index: usize) -> Self {
        Done(self.0 | 1 << index)
    }
}

struct Search<'a> {
    operations: &'a [Operation],
    /// What was reached before, and led nowhere.
    seen: BTreeSet<(Done, Mutex)>,
}

impl Search<'_> {
    /// Whether what is not done can be done from here, or left undone if it need not happen. As deep
    /// as there are operations.
    fn goes_on(&mut self, done: Done, mutex: Mutex) -> bool {
        let operations = self.operations;
        let left = || operations.iter().enumerate().filter(|(index, _)| !done.has(*index));
        let Some(next_answer) = left().filter_map(|(_, operation)| operation.until).min() else {
            return true;
        };
        if !self.seen.insert((done, mutex)) {
            return false;
        }
        left().filter(|(_, operation)| operation.from <= next_answer).any(|(index, operation)| {
            mutex.after(operation).is_some_and(|next| self.goes_on(done.with(index), next))
        })
    }
}
