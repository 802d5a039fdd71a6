//! When a barrier was up, by the ensemble's own log.

use wok_judge::Moment;
use wok_judge::history::{Change, Entry, What};

/// All that became of one barrier, in order.
#[derive(Debug, Default)]
pub(crate) struct States<'a> {
    /// Each time that it was up.
    pub(crate) ups: Vec<Up<'a>>,
    /// The entries of all changes of its znode, those of its data included.
    pub(crate) changes: Vec<usize>,
}

/// A time for which it was up.
#[derive(Debug)]
pub(crate) struct Up<'a> {
    /// When it was raised, and by which session; none if it was up when the history began.
    pub(crate) raised: Option<Changed>,
    /// What its znode held, one after the other.
    pub(crate) data: Vec<&'a [u8]>,
    /// When it was lowered, and by which session, if it was.
    pub(crate) lowered: Option<Changed>,
}

/// A change of the barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    /// When.
    pub(crate) when: Moment,
    /// On whose request.
    pub(crate) session: i64,
}

impl Up<'_> {
    /// The entry from which on it was up.
    pub(crate) fn from(&self) -> usize {
        self.raised.map_or(0, |raised| raised.when.at)
    }

    /// The entry from which on it was not up any more.
    pub(crate) fn until(&self) -> usize {
        self.lowered.map_or(usize::MAX, |lowered| lowered.when.at)
    }

    /// Whether it was up at some moment between two entries.
    pub(crate) fn is_during(&self, from: usize, until: usize) -> bool {
        self.from() < until && from < self.until()
    }
}

impl<'a> States<'a> {
    /// The states of the barrier at `mount`. If the history says nothing of it, nobody knows them.
    pub(crate) fn of(history: &'a [Entry], mount: &str) -> Self {
        let mut states = States::default();
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            let now = Changed { when: Moment::of(at, entry), session: *session };
            for change in changes {
                match change {
                    Change::Created { path, data, .. } if path == mount => {
                        let data = vec![data.bytes()];
                        states.ups.push(Up { raised: Some(now), data, lowered: None });
                    }
                    Change::Deleted { path } if path == mount => {
                        states.last_up().lowered = Some(now);
                    }
                    Change::DataSet { path, data, .. } if path == mount => {
                        states.last_up().data.push(data.bytes());
                    }
                    _ => continue,
                }
                states.changes.push(at);
            }
        }
        states
    }

    /// The one that is up; where nothing was heard of it before, it was up when the history began.
    fn last_up(&mut self) -> &mut Up<'a> {
        if self.ups.last().is_none_or(|up| up.lowered.is_some()) {
            self.ups.push(Up { raised: None, data: Vec::new(), lowered: None });
        }
        let last = self.ups.len() - 1;
        #[allow(clippy::indexing_slicing, reason = "there is one, or one was just added")]
        &mut self.ups[last]
    }

    /// The time for which it was up from the one entry to the other, without an end.
    pub(crate) fn up_all_the_time(&self, from: usize, until: usize) -> Option<&Up<'a>> {
        self.ups.iter().find(|up| up.from() <= from && until <= up.until())
    }
}
