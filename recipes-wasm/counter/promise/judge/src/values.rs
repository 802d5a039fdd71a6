//! The values that a counter had, by the ensemble's own log.

use wok_judge::Violation;
use wok_judge::history::{Change, Data, Entry, What};

/// All that became of one counter's znode, in order.
#[derive(Debug)]
pub(crate) struct Values {
    changes: Vec<Written>,
}

/// A value that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The entry of the txn.
    pub(crate) at: usize,
    /// Who asked for it.
    pub(crate) session: i64,
    /// What the counter was before.
    pub(crate) from: i64,
    /// What it was from then on.
    pub(crate) to: i64,
}

impl Values {
    /// Of the counter at `mount`. What is no counter's data is told as a violation of A1.
    pub(crate) fn of(history: &[Entry], mount: &str, found: &mut Vec<Violation>) -> Self {
        let mut values = Values { changes: Vec::new() };
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            for change in changes {
                let data = match change {
                    // Nobody has counted yet in a znode that is made without data.
                    Change::Created { path, data, .. } if path == mount && !data.is_empty() => data,
                    Change::DataSet { path, data, .. } if path == mount => data,
                    _ => continue,
                };
                let from = values.last();
                match value(data) {
                    Some(to) => values.changes.push(Written { at, session: *session, from, to }),
                    None => {
                        let bytes = data.bytes().len();
                        let sentence =
                            format!("{mount} was written {bytes} bytes, which are no counter");
                        found.push(Violation::new("A1", at, sentence));
                    }
                }
            }
        }
        values
    }

    /// What was written, in order.
    pub(crate) fn written(&self) -> &[Written] {
        &self.changes
    }

    /// The values that the counter had at some moment between two entries.
    pub(crate) fn between(&self, from: usize, until: usize) -> impl Iterator<Item = i64> {
        let before = self.changes.iter().rev().find(|written| written.at < from);
        let during = self.changes.iter().filter(move |it| from <= it.at && it.at <= until);
        std::iter::once(before.map_or(0, |written| written.to)).chain(during.map(|it| it.to))
    }

    fn last(&self) -> i64 {
        self.changes.last().map_or(0, |written| written.to)
    }
}

/// Eight bytes, the most significant first, as Curator writes them.
fn value(data: &Data) -> Option<i64> {
    data.bytes().try_into().ok().map(i64::from_be_bytes)
}
