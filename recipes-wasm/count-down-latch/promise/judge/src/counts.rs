//! Which ids are counted, by the ensemble's own log.

use std::collections::BTreeSet;

use wok_judge::history::{Change, Entry, What};
use wok_judge::{Moment, Violation};

use crate::Made;

/// What stands before the id in a child's name.
const COUNTED: &str = "count-";

/// All that became of one latch, in order.
#[derive(Debug)]
pub(crate) struct Counts<'a> {
    /// How many make it open.
    pub(crate) needed: usize,
    /// The ids, and when each of them was counted, and on which session's request.
    pub(crate) counted: Vec<Counted<'a>>,
    /// What was written to remain, with how many were counted by then.
    written: Vec<Written<'a>>,
    /// The entries at which what says that an id was counted went.
    taken_back: Vec<(usize, &'a str)>,
    /// The entries of what a waiter has to know: the latch is made, and its gate changes.
    pub(crate) gate: Vec<usize>,
    /// The entries of all changes of the latch's own znode.
    pub(crate) changes: Vec<usize>,
}

/// An id that was counted.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    /// Which.
    pub(crate) id: &'a str,
    /// When.
    pub(crate) when: Moment,
    session: i64,
}

#[derive(Debug)]
struct Written<'a> {
    at: usize,
    data: &'a [u8],
    counted: usize,
}

impl<'a> Counts<'a> {
    /// Of the latch at `mount`.
    pub(crate) fn of(history: &'a [Entry], mount: &str, needed: usize) -> Self {
        let (counted, written, taken_back) = (Vec::new(), Vec::new(), Vec::new());
        let (gate, changes) = (Vec::new(), Vec::new());
        let mut counts = Counts { needed, counted, written, taken_back, gate, changes };
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            let when = Moment::of(at, entry);
            for change in changes {
                counts.note(change, mount, when, *session);
            }
            // A txn is one step: what stood between its changes was never the case.
            let counted = counts.counted.len();
            let written = counts.written.iter_mut().rev().take_while(|written| written.at == at);
            written.for_each(|written| written.counted = counted);
        }
        counts
    }

    fn note(&mut self, change: &'a Change, mount: &str, when: Moment, session: i64) {
        let (Change::Created { path, .. }
        | Change::Deleted { path }
        | Change::DataSet { path, .. }) = change
        else {
            return;
        };
        let Some(below) = path.strip_prefix(mount) else { return };
        match (below.strip_prefix('/'), change) {
            (Some("gate"), _) => self.gate.push(when.at),
            (Some(name), Change::Created { .. }) => {
                if let Some(id) = name.strip_prefix(COUNTED) {
                    self.counted.push(Counted { id, when, session });
                }
            }
            (Some(name), Change::Deleted { .. }) => {
                let id = name.strip_prefix(COUNTED);
                self.taken_back.extend(id.map(|id| (when.at, id)));
            }
            (None, Change::Created { data, .. } | Change::DataSet { data, .. })
                if below.is_empty() =>
            {
                self.changes.push(when.at);
                // Nobody has made a latch yet of a znode that has no data.
                if !data.is_empty() {
                    let data = data.bytes();
                    self.written.push(Written { at: when.at, data, counted: 0 });
                }
            }
            _ => {}
        }
    }

    /// When the last one that was needed was counted.
    pub(crate) fn opened(&self) -> Option<Moment> {
        let last = self.needed.checked_sub(1)?;
        self.counted.get(last).map(|counted| counted.when)
    }

    /// How many were counted before that entry.
    pub(crate) fn before(&self, at: usize) -> usize {
        self.counted.partition_point(|counted| counted.when.at < at)
    }

    /// How many remain when so many were counted.
    pub(crate) fn remaining(&self, counted: usize) -> usize {
        self.needed.saturating_sub(counted)
    }
}

/// C2: an id is counted once, after somebody has asked for it, and stays so; and what is written to
/// remain is what the ids that are counted leave.
pub(super) fn check(
    calls: &[Made<'_, '_>],
    counts: &Counts<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let mut known = BTreeSet::new();
    for counted in &counts.counted {
        let at = counted.when.at;
        if !known.insert(counted.id) {
            let sentence = format!("the id {:?} was counted twice", counted.id);
            found.push(Violation::new(id, at, sentence));
        }
        let asks = |made: &Made<'_, '_>| {
            made.id == Some(counted.id)
                && made.call.operation == "count-down"
                && made.call.invoked.at < at
                && made.person.session == counted.session
        };
        if !calls.iter().any(asks) {
            let sentence = format!("the id {:?} was counted, and nobody had asked", counted.id);
            found.push(Violation::new(id, at, sentence));
        }
    }
    for (at, taken_back) in &counts.taken_back {
        let sentence = format!("the id {taken_back:?} is not counted any more");
        found.push(Violation::new(id, *at, sentence));
    }
    for written in &counts.written {
        let remaining = counts.remaining(written.counted);
        let expected = format!("{remaining} of {}", counts.needed);
        if written.data == expected.as_bytes() {
            continue;
        }
        let data = written.data.escape_ascii();
        let sentence = format!(
            "\"{data}\" was written, and {} ids were counted, so it is \"{expected}\"",
            written.counted
        );
        found.push(Violation::new(id, written.at, sentence));
    }
}
